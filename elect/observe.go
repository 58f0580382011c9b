package elect

// Following who leads.

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Observe yields the leader: now, and after every change of the leader or of its proclaimed value. Having no leader
// is a change, too. A slow caller misses changes, but never the last one. Observe continues across reconnects and
// sessions; without a connection, the last leader it yielded may be outdated.
//
// It yields the server's refusals; a caller that continues its loop waits until the server relents. It ends with ctx's
// cause, or the client's error if the client is closed. Observing does not make a candidate, and costs nothing when
// candidates behind the leader come and go.
func (c *Candidate) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		o := observer{candidate: c}
		look := func(sess *zk.Session) (Leader, *zk.Watch, error) {
			leader, watch, err := o.read(ctx, sess)
			if watch == nil || err != nil {
				return leader, watch, err
			}
			if err := c.access.Check(ctx, sess, c.path); err != nil {
				watch.Close()
				return Leader{}, nil, err
			}
			return leader, watch, nil
		}
		for leader, err := range attempt.Follow(ctx, c.client, c.path, look) {
			if err == nil && o.told && leader.same(o.last) {
				continue
			}
			if o.last, o.told = leader, err == nil; err != nil {
				err = c.failed(err)
			}
			if !yield(leader, err) {
				return
			}
		}
	}
}

// observer is one iteration of Observe.
type observer struct {
	candidate *Candidate
	last      Leader
	told      bool // last was yielded
}

// read returns the leader and a watch that fires when the leader changes: on the leader's own node, because later
// candidates queue behind it; on the line while it is empty; on the path while it does not exist. It returns no watch
// if the node went before it could be watched.
func (o *observer) read(ctx context.Context, sess *zk.Session) (Leader, *zk.Watch, error) {
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
		if stat.EphemeralOwner == 0 { // no candidate: all wait for it to be deleted
			return Leader{}, watch, nil
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

// await returns a watch on the empty line.
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
