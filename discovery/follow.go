package discovery

// Following the instances of a service, as a cache of its nodes sees them.

import (
	"context"
	"iter"
	"strings"

	"github.com/seed-a3166700/turnstile/cache"
)

// open opens a cache of a service's nodes.
func (r *Registry) open(service string) (*cache.Children, error) {
	return cache.OpenChildren(r.client, r.Path(service), cache.Config{ACL: r.cfg.ACL, AnyACL: r.cfg.AnyACL})
}

// follow yields the instances in a cache's nodes, ordered by the names of their nodes, whenever one has changed. It
// yields the errors of cache.Children.Views, and ends with one.
func (r *Registry) follow(ctx context.Context, nodes *cache.Children) iter.Seq2[[]found, error] {
	return func(yield func([]found, error) bool) {
		known := map[string]parsed{}
		for view, err := range nodes.Views(ctx) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			next := make(map[string]parsed, len(known))
			var all []found
			for e := range view.Children(nodes.Path()) {
				p, ok := known[e.Path]
				if !ok || p.mzxid != e.Mzxid || p.born != e.Czxid {
					p = r.parse(e)
				}
				next[e.Path] = p
				if p.ok {
					all = append(all, p.found)
				}
			}
			known = next
			if !yield(all, nil) {
				return
			}
		}
	}
}

// parsed is what a node has. A node is parsed once for each time that it is set.
type parsed struct {
	found
	mzxid int64
	ok    bool // it is an instance
}

func (r *Registry) parse(e cache.Entry) parsed {
	p := parsed{mzxid: e.Mzxid}
	p.name, p.born = e.Path[strings.LastIndexByte(e.Path, '/')+1:], e.Czxid
	p.instance, p.ok = r.instance(e.Path, e.Data)
	return p
}
