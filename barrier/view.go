package barrier

// Whether an open double barrier is in use, and closing one that is not.

import (
	"context"
	"errors"
	"path"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A view is a double barrier as it is seen from outside.
type view struct {
	stat  zk.Stat // of the barrier's node
	data  []byte  // of the barrier's node
	open  bool    // whether the ready node is there
	ready zk.Stat // of the ready node
	names []string
}

// view reads the barrier. If fresh is set, it sees at least what was done before it was called, and the members. The
// barrier is open then only if the ready node was the same before the list and after it: so the barrier was open at the
// moment of the list.
func (d *Double) view(ctx context.Context, sess *zk.Session, fresh bool) (view, error) {
	return attempt.Ask(ctx, sess, func() (v view, err error) {
		b := sess.Batch()
		passed := func(context.Context) error { return nil }
		var listed *zk.Future[zk.Children]
		var still *zk.Future[zk.Existence]
		if fresh {
			passed = attempt.Fence(b)
		}
		dir, ready := b.Get(d.path), b.Exists(d.ready())
		if fresh {
			listed, still = b.Children(d.path), b.Exists(d.ready())
		}
		b.Send()
		if err := passed(ctx); err != nil {
			return v, err
		}
		node, err := dir.Get(ctx)
		if err != nil {
			return v, err
		}
		r, err := ready.Get(ctx)
		if err != nil {
			return v, err
		}
		v = view{stat: node.Stat, data: node.Data, open: r.Exists, ready: r.Stat}
		if fresh {
			children, err := listed.Get(ctx)
			if err != nil {
				return v, err
			}
			v.names = members(children.Names)
			now, err := still.Get(ctx)
			if err != nil {
				return v, err
			}
			v.open = v.open && now.Stat.Czxid == r.Stat.Czxid
		}
		return v, nil
	})
}

// admission waits until a party may come: until the barrier is closed, or parties that came before it was opened are
// still inside. It makes the barrier's node if it is missing.
//
// An open barrier without such parties is over: either its last parties are just leaving, or all of them have died. A
// party that came in then would be alone.
func (d *Double) admission(ctx context.Context, sess *zk.Session) (view, error) {
	for fresh := false; ; {
		_, changed := sess.State()
		v, err := d.view(ctx, sess, fresh)
		switch {
		case errors.Is(err, zk.NoNode):
			if err := d.dirs(attempt.WhileUsed).Make(ctx, sess, d.path); err != nil {
				return v, err
			}
			continue
		case err != nil || !v.open:
			return v, err
		case !fresh:
			fresh = true
			continue
		}
		if len(v.names) == 0 {
			if err := d.closeUnused(ctx, sess, v); err != nil {
				return v, err
			}
			continue
		}
		inside, err := d.olderThan(ctx, sess, v.names, v.ready.Czxid, 1)
		if err != nil || len(inside) > 0 {
			return v, err
		}
		if err := d.awaitDeletion(ctx, sess, changed, readyName, v.names[0]); err != nil {
			return v, err
		}
	}
}

// closeUnused deletes the ready node of a barrier that has no members. The transaction is refused if another party has
// done so since v was read: the ready node may then be that of a new round. Without the right to write to the barrier's
// node it closes the barrier as peers do, without a trace.
func (d *Double) closeUnused(ctx context.Context, sess *zk.Session, v view) error {
	_, err := sess.Multi(ctx, zk.SetOp(d.path, v.data, v.stat.Version), zk.DeleteOp(d.ready(), -1))
	if errors.Is(err, zk.NoAuth) {
		_, err = sess.Multi(ctx, zk.CheckOp(d.path, v.stat.Version), zk.DeleteOp(d.ready(), -1))
	}
	if err == nil || errors.Is(err, zk.BadVersion) || errors.Is(err, zk.NoNode) {
		return nil
	}
	return attempt.Again(ctx, sess, err)
}

// olderThan returns names of members that came before zxid, all of them or at least the given number.
func (d *Double) olderThan(
	ctx context.Context, sess *zk.Session, names []string, zxid int64, enough int,
) ([]string, error) {
	var older []string
	for len(names) > 0 && len(older) < enough {
		part := names[:min(len(names), smallBarrier)]
		names = names[len(part):]
		there, err := exist(ctx, sess, part, func(name string) string { return d.path + "/" + name })
		if err != nil {
			return nil, err
		}
		for i, e := range there {
			if e.Exists && e.Stat.Czxid < zxid {
				older = append(older, part[i])
			}
		}
	}
	return older, nil
}

// awaitDeletion waits until one of the children is gone, or the session's state changes.
func (d *Double) awaitDeletion(
	ctx context.Context, sess *zk.Session, changed <-chan struct{}, names ...string,
) error {
	var watches []*zk.Watch
	defer func() {
		for _, w := range watches {
			w.Close()
		}
	}()
	for _, name := range names {
		_, _, watch, err := sess.GetW(ctx, path.Join(d.path, name))
		if errors.Is(err, zk.NoNode) {
			return nil
		}
		if err != nil {
			return attempt.Again(ctx, sess, err)
		}
		watches = append(watches, watch)
	}
	if _, err := next(ctx, changed, watches...); err != nil {
		return attempt.Again(ctx, sess, err)
	}
	return nil
}

// next waits for an event of one of the watches and returns it. It returns no event and no error when changed is closed
// first, and ctx's cause if ctx ends. An event that is there counts more than either.
func next(ctx context.Context, changed <-chan struct{}, watches ...*zk.Watch) (zk.Event, error) {
	fired := make(chan struct{}, len(watches))
	for _, w := range watches {
		w.AfterFunc(func() { fired <- struct{}{} })
	}
	var err error
	select {
	case <-fired:
	case <-changed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	for _, w := range watches {
		if event, ok := w.Poll(); ok {
			return event, nil
		}
	}
	return zk.Event{}, err
}
