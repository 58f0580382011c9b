package line

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// A part is a node that a creation is to make.
type part struct {
	dir    string
	prefix string // its name up to the number; only we can have chosen it, and no two parts have the same (ZOOKEEPER-4695)
}

func (p part) path() string { return join(p.dir, p.prefix) }

// find looks for the nodes that the session has made of parts: none if there are none. It looks behind a barrier: what was on its way when
// the connection broke has been applied by then, or will not be, but for what sweep is for.
func find(ctx context.Context, sess *zk.Session, parts []part) ([]zk.Created, error) {
	for {
		found, err := findOnce(ctx, sess, parts)
		if err == nil {
			return found, nil
		}
		err = Settle(ctx, sess, err)
		switch {
		case err == nil:
		case ctx.Err() == nil && sess.Err() == nil && zk.OutcomeOf(err) != zk.NotSent && !errors.Is(err, zk.NoAuth):
			// What passes: a server that is overloaded, that the session has moved away from, or that may only read and so cannot know
			// of our node; or an answer that makes no sense, which has cost its server the connection.
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
	passed, listed := Barrier(b, parts[0].path()), map[string]*zk.Future[zk.Children]{}
	for _, p := range parts {
		if listed[p.dir] == nil {
			listed[p.dir] = b.Children(p.dir)
		}
	}
	b.Send()
	if err := passed(ctx); err != nil {
		return nil, err
	}
	names := map[string][]string{}
	for dir := range listed {
		children, err := listed[dir].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		names[dir] = children.Names
	}
	return names, nil
}

// Barrier adds to b a request that is answered when everything that its session has asked for before was done or never will be, over
// whichever connection and by whichever server; passed waits for that. What b asks for behind it sees all of it. Path is any name of the
// caller's own.
//
// It is a write, of nothing: the deletion of a node that nobody makes. A session that has moved to a new connection is no longer served
// over the old one, so that nothing of its old requests comes to the leader any more, and writes are done in the order in which they come
// there. A sync would not do. The leader answers one at once to those who are connected to it, as a read, although a write that came by
// way of another server is still on its way through the quorum (ZOOKEEPER-1675).
func Barrier(b *zk.Batch, path string) (passed func(context.Context) error) {
	done := b.Delete(path+"-none", -1)
	return func(ctx context.Context) error {
		_, err := done.Get(ctx)
		if errors.Is(err, zk.NoNode) || errors.Is(err, zk.NoAuth) { // which of the two is for the looks behind it to find out
			return nil
		}
		return err
	}
}

// withdraw removes what a creation that nobody waits for any more has made, or may have made.
func withdraw(sess *zk.Session, parts []part, created func(context.Context) ([]zk.Created, error)) {
	nodes, err := created(context.Background())
	switch {
	case err == nil:
		undo(sess, parts, nodes)
	case zk.OutcomeOf(err) == zk.Unknown, errors.Is(err, zk.NodeExists): // by an attempt before that
		retract(sess, parts)
	}
}

// retract removes what a creation of unknown outcome has made, or makes later. It ends with the session.
func retract(sess *zk.Session, parts []part) {
	nodes, err := find(sess.Context(), sess, parts) // it does not miss a node that was made
	if err == nil {
		undo(sess, parts, nodes)
	}
}

// undo removes the nodes that were found of parts or, if there are none, those that come into being later.
func undo(sess *zk.Session, parts []part, nodes []zk.Created) {
	if len(nodes) > 0 {
		OwnBundle(sess, nodes...).Leave()
		return
	}
	sweep(sess, parts)
}

// Withdraw removes, in the background, the node that a creation has made whose outcome nobody knows, or that it makes
// later. Nobody else can have chosen its name, and it is not used again.
func Withdraw(sess *zk.Session, dir, name string) { go retract(sess, []part{{dir, name}}) }

// sweep removes nodes that come into being after find has found none (see lookLater). Their names must not be used for
// another attempt.
func sweep(sess *zk.Session, parts []part) {
	lookLater(sess, func() bool {
		nodes, err := find(sess.Context(), sess, parts)
		if len(nodes) > 0 {
			OwnBundle(sess, nodes...).Leave()
		}
		return err != nil || len(nodes) > 0
	})
}

// lookLater looks now and then for what a creation of unknown outcome may make after the search for it has found
// nothing, which takes a partition. The creation is held up between a follower and its leader; the client tries in vain
// to come back to that follower, and goes on with another server. When the link heals, the creation and the attempt
// arrive together, and the leader may take the attempt for a return before it looks whether the creation still counts
// (see TestCreationMayBeDoneAfterALaterWriteOfItsSession).
//
// A link that stays silent for longer than a server bears (syncLimit) is closed, and what it held is lost; the last
// look is after fifteen session timeouts. LookLater returns then, or when look says that it is done, or when the
// session ends, which takes the nodes along.
func lookLater(sess *zk.Session, look func() (done bool)) {
	for wait := sess.Timeout(); wait <= 8*sess.Timeout(); wait *= 2 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sess.Context().Done():
			timer.Stop()
			return
		}
		if look() {
			return
		}
	}
}

// single makes a list of the answer to the creation of one node.
func single(created func(context.Context) (zk.Created, error)) func(context.Context) ([]zk.Created, error) {
	return func(ctx context.Context) ([]zk.Created, error) {
		c, err := created(ctx)
		return []zk.Created{c}, err
	}
}
