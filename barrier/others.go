package barrier

// The other members of a double barrier, as a member that leaves sees them.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A crowd is the other members of a member's round.
type crowd struct {
	names   []string        // sorted
	version int32           // of the barrier's node at that time
	open    bool            // whether the ready node is there
	watch   *zk.Watch       // on the children of the barrier's node; nil if there is none
	changed <-chan struct{} // closed if the connection has changed since before the watch was set
}

func (c *crowd) close() {
	if c.watch != nil {
		c.watch.Close()
	}
}

// await waits until a member comes or goes, or the connection has changed.
func (c *crowd) await(ctx context.Context, sess *zk.Session) error {
	if _, err := next(ctx, c.changed, c.watch); err != nil {
		return attempt.Again(ctx, sess, err)
	}
	return nil
}

// others returns the other members of our round. The lowest member of a small barrier watches all of them, because it
// waits for all: to wait for one after the other, as the peers do, is slower.
//
// Members that came after our round's end are not among them: to wait for those could be to wait for ever. While our
// own node is there, or the round's ready node is, the round lasts.
func (m *Member) others(ctx context.Context, sess *zk.Session) (*crowd, error) {
	type answer struct {
		crowd *crowd
		ready zk.Existence
	}
	d := m.double
	watched := m.inside(sess) && m.lowest == m.name && d.parties <= smallBarrier
	a, err := attempt.Ask(ctx, sess, func() (a answer, err error) {
		a.crowd = &crowd{}
		_, a.crowd.changed = sess.State()
		b := sess.Batch()
		list := d.list(b, watched)
		ready := b.Exists(d.ready())
		b.Send()
		if a.crowd.names, a.crowd.version, a.crowd.watch, err = list(ctx); err != nil {
			return a, err
		}
		if a.ready, err = ready.Get(ctx); err != nil {
			a.crowd.close()
		}
		return a, err
	})
	if err != nil {
		return nil, err
	}
	c := a.crowd
	c.open = a.ready.Exists
	if m.round == 0 {
		m.round = m.presumedRound(a.ready)
	}
	inside := slices.Contains(c.names, m.name)
	c.names = slices.DeleteFunc(c.names, func(name string) bool { return name == m.name })
	ours := c.open && a.ready.Stat.Czxid == m.round
	if !inside && !ours && len(c.names) > 0 {
		c.names, err = d.olderThan(ctx, sess, c.names, m.round, len(c.names))
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// presumedRound is the round of a member whose connection broke before it learned that, and after it sent its deletion.
//
// If the barrier is open it is this round, or one that was opened without this member; it does no harm to wait for the
// end of that. If the barrier is closed, the round is over, and all have left; only a party of kazoo's closes it when
// it begins to leave. Members that came before this one are of its round in any case. To wait for others that came
// after it could be to wait for ever, because they may wait for this member to come again.
func (m *Member) presumedRound(ready zk.Existence) int64 {
	if ready.Exists {
		return ready.Stat.Czxid
	}
	return m.czxid
}

// list adds to b the question for the members. The function takes the answer, with the version of the barrier's node at
// that moment; if watched is set it has a watch.
func (d *Double) list(b *zk.Batch, watched bool) func(context.Context) ([]string, int32, *zk.Watch, error) {
	if watched {
		listed := b.ChildrenW(d.path)
		return func(ctx context.Context) ([]string, int32, *zk.Watch, error) {
			children, err := listed.Get(ctx)
			if err != nil {
				listed.Abandon()
			}
			return members(children.Names), children.Stat.Version, children.Watch, unlessNoNode(err)
		}
	}
	listed := b.Children(d.path)
	return func(ctx context.Context) ([]string, int32, *zk.Watch, error) {
		children, err := listed.Get(ctx)
		return members(children.Names), children.Stat.Version, nil, unlessNoNode(err)
	}
}

// unlessNoNode is err, or nil if it says that there is no node.
func unlessNoNode(err error) error {
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	return err
}

// empty reports whether a large barrier is known to be empty: that costs less than to list its members.
func (m *Member) empty(ctx context.Context, sess *zk.Session) (bool, error) {
	if m.double.parties <= smallBarrier || m.inside(sess) {
		return false, nil
	}
	return attempt.Ask(ctx, sess, func() (bool, error) {
		stat, exists, err := sess.Exists(ctx, m.double.path)
		return err == nil && (!exists || stat.NumChildren == 0), err
	})
}
