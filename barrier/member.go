package barrier

// A party that has entered a double barrier, and leaving.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Causes of the contexts of members and parties, besides their session's.
var (
	// ErrLeft is the cause after Leave.
	ErrLeft = errors.New("left the barrier")
	// ErrDeleted is the cause after another client, such as an operator's, deleted the node.
	ErrDeleted = errors.New("the party's node was deleted by another client")
)

// Member is a party inside a double barrier. It belongs to one session. Its methods may be called from any goroutine.
type Member struct {
	double *Double
	sess   *zk.Session
	ctx    context.Context //nolint:containedctx // the membership's own
	end    context.CancelCauseFunc
	guard  sync.Once // which looks after the node for ctx
	node   nodeName
	name   string // of its node
	czxid  int64  // of its node

	// Members that came before this transaction are of our round: that which created the ready node, or a later one
	// before the round's end. 0 if it is not known.
	round   int64
	lowest  string          // the member with the lowest name at that time; empty if that is not known
	version int32           // of the barrier's node when this member came
	news    *news           // of a member that has come again; or nil
	signal  *zk.Watch       // on the ready node, if there are no news; or nil
	changed <-chan struct{} // closed if the connection has changed since before this member came, or signal was set
	mute    bool            // we may not write to the ready node

	once    chan struct{}    // has one slot, which the first Leave takes; closed when that has returned
	left    error            // what it returned
	removal *attempt.Removal // of the node; nil before it was sent
	removed bool             // the server has removed the node, on our request
}

func newMember(e *entrant) *Member {
	m := &Member{
		double: e.double, sess: e.sess, node: e.name, name: e.name.String(), czxid: e.czxid, version: e.version,
		news: e.news, changed: e.changed, once: make(chan struct{}, 1),
	}
	m.ctx, m.end = context.WithCancelCause(e.sess.Context())
	m.once <- struct{}{}
	return m
}

// Context returns the membership's context. It ends when the session does, with zk.ErrLost, zk.ErrExpired or
// zk.ErrClosed as its cause; with ErrDeleted when another client has deleted the member's node; and with ErrLeft when
// Leave is called. Once the session has ended or the node is gone, the other parties may leave without this one. The
// first call sets a watch on the node.
func (m *Member) Context() context.Context {
	m.guard.Do(func() { go m.watchNode() })
	return m.ctx
}

// watchNode ends the membership's context when another client deletes the node. Leave ends it before it does so itself.
func (m *Member) watchNode() {
	if attempt.AwaitGone(m.ctx, m.sess, m.Path(), m.czxid) {
		m.end(ErrDeleted)
	}
}

// Path returns the path of the member's node.
func (m *Member) Path() string { return m.path(m.name) }

func (m *Member) path(name string) string { return m.double.path + "/" + name }

// Leave waits until all members are ready to leave, and returns when they have left. It goes on through lost
// connections.
//
// If the session ends before the server has removed the member's node, Leave returns the cause: the others may have
// left before Leave was called. So it does after another client has deleted the node, if the context heard of that. If
// the session ends later, Leave goes on under the client's next session. If ctx ends first it returns ctx's cause; the
// member's own context will do, which Leave ends. In any case the party does not count any more, or its node is still
// being removed in the background. A second Leave waits for the first and returns the same.
func (m *Member) Leave(ctx context.Context) error {
	ctx, stop := attempt.Outlive(ctx, ErrLeft)
	defer stop()
	first, err := m.takeOnce(ctx)
	if err != nil {
		return m.double.failed(err)
	}
	if !first {
		return m.left
	}
	if err := m.leave(ctx); err != nil {
		m.left = m.double.failed(err)
	}
	close(m.once)
	return m.left
}

// takeOnce reports whether this Leave is the first, which does its work even if ctx has ended. Another one waits until
// the first has returned.
func (m *Member) takeOnce(ctx context.Context) (first bool, err error) {
	select {
	case _, first = <-m.once:
		return first, nil
	default:
	}
	select {
	case _, first = <-m.once:
		return first, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

func (m *Member) leave(ctx context.Context) error {
	if err := m.sess.Err(); err != nil {
		return fmt.Errorf("the session ended inside: %w", err)
	}
	m.end(ErrLeft)
	defer m.forget()
	if cause := context.Cause(m.ctx); errors.Is(cause, ErrDeleted) { //nolint:contextcheck // the member's, not ours
		return cause
	}
	over, err := m.leaveEarly(ctx)
	if !over && err == nil {
		err = m.follow(ctx, m.sess)
	}
	if lost := m.sess.Err(); err != nil && lost != nil && !m.removed {
		return fmt.Errorf("the session ended inside: %w", lost)
	}
	if err != nil && ctx.Err() == nil {
		_, err = attempt.Run(ctx, m.double.client, func(sess *zk.Session) (none struct{}, err error) {
			return none, m.follow(ctx, sess)
		})
	}
	if err != nil {
		m.giveUp()
	}
	return err
}

// inside reports whether the member's node may be there, and is to be.
func (m *Member) inside(sess *zk.Session) bool {
	return sess == m.sess && m.removal == nil && !m.removed
}

// remove sends the removal of the member's node, which goes on in the background.
func (m *Member) remove() {
	if m.removal == nil {
		m.removal = attempt.Remove(m.sess, m.Path())
	}
}

// giveUp removes the node, and closes the barrier if no member is left, in the background.
func (m *Member) giveUp() {
	m.remove()
	removal := m.removal
	attempt.RemoveBy(func() error {
		if err := removal.Wait(m.sess.Context()); err != nil || m.sess.Err() != nil {
			return err
		}
		return m.double.tidy(m.sess.Context(), m.sess)
	})
}

// tidy closes the barrier if it has no members.
func (d *Double) tidy(ctx context.Context, sess *zk.Session) error {
	for {
		v, err := d.view(ctx, sess, true)
		if errors.Is(err, zk.NoNode) || err == nil && (!v.open || len(v.names) > 0) {
			return nil
		}
		if err == nil {
			err = d.closeUnused(ctx, sess, v)
		}
		if err != nil {
			return err
		}
	}
}

// follow leaves by the protocol that Curator and kazoo have: the member with the lowest name waits for all others, and
// goes last. All others delete their nodes and wait for the lowest.
func (m *Member) follow(ctx context.Context, sess *zk.Session) error {
	if sess == m.sess && m.lowest != "" && m.lowest != m.name && m.double.parties > smallBarrier {
		// So that not each of many parties lists all of them.
		if err := m.await(ctx, sess, m.lowest, true); err != nil {
			return err
		}
	}
	for {
		empty, err := m.empty(ctx, sess)
		if err != nil || empty {
			return err
		}
		c, err := m.others(ctx, sess)
		if err != nil {
			return err
		}
		inside := m.inside(sess)
		switch {
		case len(c.names) == 0 && inside:
			err = m.leaveLast(ctx, c)
		case len(c.names) == 0:
			return m.leftAll(ctx, sess, c.open)
		case inside && m.name < c.names[0] && c.watch != nil:
			err = c.await(ctx, sess)
		case inside && m.name < c.names[0]:
			err = m.await(ctx, sess, c.names[len(c.names)-1], false)
		default:
			err = m.await(ctx, sess, c.names[0], inside)
		}
		c.close()
		if err != nil {
			return err
		}
	}
}

// leaveLast ends the round: the last member's node and the ready node are deleted together, so that no moment is left
// in which a new party finds an open barrier without members. Those that listen to the ready node are told of a change
// to it, see leaveEarly. As long as the member's node is there the ready node is that of its round; so a transaction
// that is done late does no harm. Nor does a party that came late: see announce.
func (m *Member) leaveLast(ctx context.Context, c *crowd) error {
	ops := []zk.Op{zk.DeleteOp(m.Path(), -1), zk.CheckOp(m.double.path, c.version)}
	if c.open && !m.mute {
		ops = append(ops, zk.SetOp(m.double.ready(), nil, -1))
	}
	if c.open {
		ops = append(ops, zk.DeleteOp(m.double.ready(), -1))
	}
	_, err := m.sess.Multi(ctx, ops...)
	failed, _ := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		m.removed = true
		m.leftClosed()
		return nil
	case failed != nil && failed.Index == 0 && failed.Err == zk.NoNode:
		m.removed = true
		return nil
	case failed != nil && (failed.Err == zk.NoNode || failed.Err == zk.BadVersion):
		return nil
	case failed != nil && failed.Err == zk.NoAuth && !m.mute:
		m.mute = true
		return nil
	default:
		return attempt.Again(ctx, m.sess, err)
	}
}

// leftAll makes sure that the barrier is closed before a party can come again. The last member closes it; one of
// Curator's does so only after its node is gone, and one that died does not.
func (m *Member) leftAll(ctx context.Context, sess *zk.Session, open bool) error {
	if open {
		return m.double.tidy(ctx, sess)
	}
	return nil
}

// await waits until a member is gone, or the connection has changed. If remove is set, it removes our node first, with
// the watch set.
func (m *Member) await(ctx context.Context, sess *zk.Session, name string, remove bool) error {
	_, changed := sess.State()
	b := sess.Batch()
	watched := b.GetW(m.path(name))
	b.Send()
	if remove {
		m.remove()
	}
	w, err := watched.Get(ctx)
	if err == nil {
		defer w.Watch.Close()
	} else {
		watched.Abandon()
	}
	if remove {
		// Or our node might still count when we come again.
		if err := m.removal.Wait(ctx); err != nil {
			return err
		}
		m.removed = sess.Err() == nil
	}
	switch {
	case errors.Is(err, zk.NoNode):
		return nil
	case err != nil:
		return attempt.Again(ctx, sess, err)
	}
	if _, err = next(ctx, changed, w.Watch); err != nil {
		return attempt.Again(ctx, sess, err)
	}
	return nil
}
