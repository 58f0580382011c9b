package cache

// A pass over nodes: reading them, with several requests in flight.

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

const (
	maxFlight = 8         // requests in flight
	maxTasks  = 256       // operations of a request
	maxReply  = 512 << 10 // the expected size of a reply in bytes
	minTasks  = 16        // fewer operations wait if two requests are in flight
	sample    = 3         // how many children of a node are read before the sizes of the others are estimated
	maxLists  = 4096      // how many nodes may wait to be listed before they go first
)

// sizes says how large requests are.
type sizes struct {
	tasks  int // operations of a request
	reply  int // the expected size of its reply
	sample int
	data   float64 // the average size of data, of late
}

func newSizes() sizes { return sizes{tasks: maxTasks, reply: maxReply, sample: sample, data: 1024} }

// shrink makes requests smaller, after a reply was too large.
func (s *sizes) shrink(tasks int) {
	s.tasks = max(1, min(s.tasks, tasks)/2)
	s.reply = max(1, s.reply/2)
	s.sample = max(1, s.sample/2)
}

// A task is to read a node or to list its children.
type task struct {
	rel  string
	list bool
	of   *listing // that the node is in; nil if list is set
}

// A listing is a list of nodes to read.
type listing struct {
	dir     string // their parent; "" if names are relative paths
	names   []string
	asked   int     // how many were asked for
	data    float64 // the average size of data; negative before the first reply
	sampled bool
	parked  bool // not on the stack until the first reply
}

func (l *listing) next() string {
	name := l.names[l.asked]
	l.asked++
	if l.dir == "" {
		return name
	}
	return l.dir + "/" + name
}

// A pass reads nodes and, if it verifies, all nodes below them.
type pass struct {
	*engine
	verify bool
	fresh  bool       // the copy was empty
	gets   []*listing // stack
	lists  []string   // stack
	flight []*request
}

// pass reads nodes into the copy. With verify it lists each node, reads its children and so on, and removes from the
// copy what it does not find. It returns errAgain if events were missed meanwhile.
func (e *engine) pass(ctx context.Context, verify bool, gets []string) error {
	p := &pass{engine: e, verify: verify, fresh: e.tree.n == 0}
	if len(gets) > 0 {
		slices.Sort(gets)
		p.gets = []*listing{{names: gets, sampled: true, data: e.load.data}}
	}
	defer p.abandon()
	for {
		p.send()
		if len(p.flight) == 0 {
			return nil
		}
		r := p.flight[0]
		p.flight = append(p.flight[:0], p.flight[1:]...)
		results, err := r.results(ctx)
		e.poll() // first: an event that came before the reply must be known when the reply is processed
		if err == nil && e.again {
			err = errAgain
		}
		if err != nil {
			r.abandon()
			return p.failed(r, err)
		}
		for i := range results {
			if err := p.apply(r.tasks[i], &results[i]); err != nil {
				r.abandon()
				return err
			}
		}
	}
}

// failed returns the error of a request.
func (p *pass) failed(r *request, err error) error {
	if !errors.Is(err, zk.ErrReplyTooLarge) || len(r.tasks) == 1 {
		return err
	}
	p.load.shrink(len(r.tasks))
	p.missed()
	return errAgain
}

// abandon gives up the requests in flight.
func (p *pass) abandon() {
	for _, r := range p.flight {
		r.abandon()
	}
}

// send sends requests while there are enough tasks.
func (p *pass) send() {
	for len(p.flight) < maxFlight && (len(p.flight) < 2 || p.ready()) {
		tasks := p.take()
		if len(tasks) == 0 {
			return
		}
		p.flight = append(p.flight, p.request(tasks))
	}
}

// ready reports whether a request of a decent size can be made.
func (p *pass) ready() bool {
	n := len(p.lists)
	for i := len(p.gets) - 1; i >= 0 && n < minTasks; i-- {
		n += len(p.gets[i].names) - p.gets[i].asked
	}
	return n >= minTasks
}

// take returns the tasks of the next request. They come in about the order of the table, which is fastest.
func (p *pass) take() []task {
	var tasks []task
	for size := 0.0; len(tasks) < p.load.tasks && (size < float64(p.load.reply) || len(tasks) == 0); {
		if n := len(p.lists); n > 0 && (len(p.gets) == 0 || n > maxLists) {
			tasks = append(tasks, task{rel: p.lists[n-1], list: true})
			p.lists = p.lists[:n-1]
			size += 4096 + p.length(tasks)
			continue
		}
		n := len(p.gets)
		if n == 0 {
			break
		}
		l := p.gets[n-1]
		if tasks == nil {
			tasks = make([]task, 0, min(p.load.tasks, len(l.names)-l.asked+8))
		}
		tasks = append(tasks, task{rel: l.next(), of: l})
		size += 128 + p.length(tasks)
		if size += p.load.data; l.sampled {
			size += l.data - p.load.data
		}
		switch {
		case l.asked == len(l.names):
			p.gets = p.gets[:n-1]
		case !l.sampled && l.asked >= p.load.sample:
			l.parked = true
			p.gets = p.gets[:n-1]
		}
	}
	return tasks
}

// length returns that of the last task's path. It counts, because requests must fit into a packet of the server, too.
func (p *pass) length(tasks []task) float64 {
	return float64(len(p.root) + len(tasks[len(tasks)-1].rel))
}

// learn notes the size of a node's data, and continues with the nodes that waited for it.
func (p *pass) learn(l *listing, size int) {
	p.load.data += (float64(size) - p.load.data) / 64
	if !l.sampled {
		l.sampled, l.data = true, float64(size)
	}
	l.data += (float64(size) - l.data) / 8
	if l.parked {
		l.parked = false
		p.gets = append(p.gets, l)
	}
}

// apply stores a reply in the copy.
func (p *pass) apply(t task, r *result) error {
	if t.of != nil {
		p.learn(t.of, len(r.data))
	}
	if p.dirty[t.rel].deleted {
		// The reply may be older than that, and the state in the copy is; the next round reads the node again.
		p.tree.removeTree(t.rel)
		return nil
	}
	switch {
	case errors.Is(r.err, zk.NoNode) && t.list:
		return nil // reading the node tells
	case errors.Is(r.err, zk.NoNode), errors.Is(r.err, zk.NoAuth) && t.rel != "":
		p.tree.removeTree(t.rel)
		if errors.Is(r.err, zk.NoAuth) {
			p.denied[t.rel] = true
		}
		return nil
	case r.err != nil:
		return r.err
	case t.list:
		p.listed(t.rel, r.names)
	default:
		p.read(t.rel, r)
	}
	return nil
}

// read stores the state of a node, and has it listed if necessary.
func (p *pass) read(rel string, r *result) {
	if !p.verify && !p.tree.hasParent(rel) {
		// The parent may not be read: a pass over everything would not find the node. Or the parent is gone: then so is
		// the node, or it is created again, which is another event.
		return
	}
	s := &r.stat
	rec := record{
		czxid: s.Czxid, mzxid: s.Mzxid, ctime: s.Ctime, mtime: s.Mtime,
		owner: s.EphemeralOwner, version: s.Version, size: int(s.DataLength), data: r.data,
	}
	if p.cfg.NoData {
		rec.data, rec.null = nil, true
	} else {
		rec.size, rec.null = len(r.data), r.data == nil
	}
	before, had := p.tree.put(rel, &rec)
	if p.denied[rel] {
		delete(p.denied, rel)
		if !p.verify {
			p.allowed = append(p.allowed, rel)
		}
	}
	if p.level(rel) >= p.depth {
		return
	}
	fresh := !had || before.czxid != s.Czxid
	switch {
	case s.EphemeralOwner != 0:
		if had && fresh {
			p.tree.removeBelow(rel)
		}
	case p.verify && s.NumChildren == 0:
		if !p.fresh {
			p.tree.removeBelow(rel)
		}
	case p.verify:
		p.lists = append(p.lists, rel)
	}
}

// level returns how many levels a node is below the root.
func (e *engine) level(rel string) int {
	if rel == "" {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

// listed compares the children of a node with those in the copy, and has them read.
func (p *pass) listed(rel string, names []string) {
	slices.Sort(names)
	if p.cfg.Exclude != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return p.cfg.Exclude(p.path(rel, name)) })
	}
	if !p.fresh {
		p.compare(rel, names)
	}
	if len(names) == 0 {
		return
	}
	if rel == "" {
		p.gets = append(p.gets, &listing{names: names})
		return
	}
	p.gets = append(p.gets, &listing{dir: rel, names: names})
}

// compare removes the children that are not among names from the copy. The names are sorted.
func (p *pass) compare(rel string, names []string) {
	var gone []string
	p.tree.children(rel, func(c *cursor) bool {
		name := c.name()
		if _, found := slices.BinarySearch(names, name); !found {
			gone = append(gone, name)
		}
		return true
	})
	for _, name := range gone {
		p.tree.removeTree(below(rel, name))
	}
}

func (e *engine) path(rel, name string) string { return join(e.root, below(rel, name)) }

// below returns the relative path of a child.
func below(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}
