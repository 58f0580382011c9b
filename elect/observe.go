package elect

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Observe yields who leads: now, and after every change of the leader or of what it proclaims. That nobody leads is a Leader, too. A
// slow caller misses changes, never the last. It goes on over reconnects and sessions; while there is no connection, what was
// yielded last may be out of date.
//
// It ends with an error: ctx's cause, the client's if that is closed, or the server's refusal. Observing does not make a candidate, and
// wakes nobody when candidates come and go behind the leader.
func (c *Candidate) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		o := observer{candidate: c, tell: yield}
		for {
			sess, err := c.client.Session(ctx)
			if err == nil {
				err = o.follow(ctx, sess)
			}
			switch {
			case o.stopped:
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case sess != nil && sess.Context().Err() != nil:
				continue // Session tells when there is no next one
			case sess != nil && line.Transient(err):
				_ = line.AwaitRetry(ctx, sess, err) // if ctx ends meanwhile, the next session's error says so
				continue
			}
			yield(Leader{}, c.failed(err))
			return
		}
	}
}

// observer is one loop over Observe.
type observer struct {
	candidate *Candidate
	tell      func(Leader, error) bool
	last      Leader
	told      bool // last was told
	stopped   bool // the caller wants no more
}

// follow tells of the leaders that sess sees until it cannot, or until the caller has had enough.
func (o *observer) follow(ctx context.Context, sess *zk.Session) error {
	// The server that the session is connected to may be behind the one that we have heard from before.
	if err := sess.Sync(ctx, o.candidate.path); err != nil {
		return err
	}
	for {
		leader, watch, err := o.look(ctx, sess)
		if err != nil {
			return err
		}
		if watch == nil {
			continue // what we looked at has gone meanwhile
		}
		// The watch was set before the caller is told: nothing that happens while it is busy is missed.
		if !o.told || !leader.same(o.last) {
			o.last, o.told = leader, true
			if o.stopped = !o.tell(leader, nil); o.stopped {
				watch.Close()
				return nil
			}
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return err
		}
	}
}

// look returns the leader and a watch that fires when that changes: on the leader's own node, because whoever comes later stands behind
// it; on the line while nobody stands there; on the path while there is none. It returns no watch if it was too late for one.
func (o *observer) look(ctx context.Context, sess *zk.Session) (Leader, *zk.Watch, error) {
	dir := o.candidate.path
	children, _, err := sess.Children(ctx, dir)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return Leader{}, nil, err
	}
	first, ok := o.first(children)
	if ok {
		path := dir + "/" + first.Name
		data, stat, watch, err := sess.GetW(ctx, path)
		if errors.Is(err, zk.NoNode) {
			return Leader{}, nil, nil
		}
		if err != nil {
			return Leader{}, nil, err
		}
		leader, err := describe(path, data, stat)
		if err != nil {
			watch.Close()
			return Leader{}, nil, err
		}
		return leader, watch, nil
	}
	if err == nil {
		return o.await(ctx, sess)
	}
	_, exists, watch, err := sess.ExistsW(ctx, dir)
	if err == nil && exists {
		watch.Close()
		return Leader{}, nil, nil
	}
	return Leader{}, watch, err
}

// await returns a watch on the line, in which nobody stands.
func (o *observer) await(ctx context.Context, sess *zk.Session) (Leader, *zk.Watch, error) {
	children, _, watch, err := sess.ChildrenW(ctx, o.candidate.path)
	if errors.Is(err, zk.NoNode) {
		return Leader{}, nil, nil
	}
	if err != nil {
		return Leader{}, nil, err
	}
	if _, ok := o.first(children); ok {
		watch.Close()
		return Leader{}, nil, nil
	}
	return Leader{}, watch, nil
}

func (o *observer) first(children []string) (line.Contender, bool) {
	contenders := line.Contenders(children, o.candidate.line.Markers)
	if len(contenders) == 0 {
		return line.Contender{}, false
	}
	line.Sort(contenders)
	return contenders[0], true
}
