package line

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

// A part is a node that a creation is to make.
type part struct {
	dir    string
	prefix string // its name up to the number; only we can have chosen it, and no two parts have the same (ZOOKEEPER-4695)
}

func (p part) path() string { return join(p.dir, p.prefix) }

// find looks for the nodes that the session has made of parts: none if there are none. It asks for a sync first, so that a server that lags
// behind the one that broke off cannot hide a node. A creation that was on its way when the connection broke cannot be applied after
// that: a session that has moved to a new connection is no longer served over the old one.
func find(ctx context.Context, sess *zk.Session, parts []part) ([]zk.Created, error) {
	for {
		found, err := findOnce(ctx, sess, parts)
		if err == nil {
			return found, nil
		}
		err = settle(ctx, sess, err)
		switch {
		case err == nil:
		case ctx.Err() == nil && sess.Err() == nil && zk.OutcomeOf(err) == zk.Refused && !errors.Is(err, zk.NoAuth):
			// A refusal that passes: a server that is overloaded, that the session has moved away from, or that may only read and
			// so cannot know of our node.
			if err := pause(ctx, sess); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func findOnce(ctx context.Context, sess *zk.Session, parts []part) ([]zk.Created, error) {
	names, err := list(ctx, sess, parts)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range parts {
		for _, name := range names[p.dir] {
			if strings.HasPrefix(name, p.prefix) {
				paths = append(paths, join(p.dir, name))
			}
		}
	}
	b := sess.Batch()
	seen := make([]*zk.Future[zk.Existence], len(paths))
	for i, path := range paths {
		seen[i] = b.Exists(path)
	}
	b.Send()
	found := make([]zk.Created, 0, len(paths))
	for i, path := range paths {
		e, err := seen[i].Get(ctx)
		if err != nil {
			return nil, err
		}
		if e.Exists && e.Stat.EphemeralOwner == sess.ID() {
			found = append(found, zk.Created{Path: path, Stat: e.Stat})
		}
	}
	return found, nil
}

// list lists the directories of parts as they are now, whatever the server knew before.
func list(ctx context.Context, sess *zk.Session, parts []part) (map[string][]string, error) {
	b := sess.Batch()
	synced, listed := map[string]*zk.Future[struct{}]{}, map[string]*zk.Future[zk.Children]{}
	for _, p := range parts {
		if synced[p.dir] == nil {
			synced[p.dir], listed[p.dir] = b.Sync(p.dir), b.Children(p.dir)
		}
	}
	b.Send()
	names := map[string][]string{}
	for dir := range synced {
		if _, err := synced[dir].Get(ctx); err != nil {
			return nil, err
		}
		children, err := listed[dir].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		names[dir] = children.Names
	}
	return names, nil
}

// withdraw removes what a creation that nobody waits for any more has made, or may have made.
func withdraw(sess *zk.Session, parts []part, created func(context.Context) ([]zk.Created, error)) {
	nodes, err := created(context.Background())
	if err != nil && zk.OutcomeOf(err) == zk.Unknown {
		// Find ends with the session, and it does not miss a node that was made.
		nodes, err = find(sess.Context(), sess, parts)
	}
	if err == nil && len(nodes) > 0 {
		OwnBundle(sess, nodes...).Leave()
	}
}

// single makes a list of the answer to the creation of one node.
func single(created func(context.Context) (zk.Created, error)) func(context.Context) ([]zk.Created, error) {
	return func(ctx context.Context) ([]zk.Created, error) {
		c, err := created(ctx)
		return []zk.Created{c}, err
	}
}
