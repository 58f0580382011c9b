package attempt

// Following what changes.

import (
	"context"
	"iter"

	"github.com/seed-a3166700/turnstile/zk"
)

// Follow yields what look finds: now, and after each change, under each session in turn. Look returns the state with a
// watch that fires when it changes; it returns no watch if the state has changed while it looked, and is called again.
// A slow caller misses states, never the last one: the watch is set before the caller runs. The first look of a session
// comes behind a sync of path, because its server may lag behind the one that answered before.
//
// After a refusal that does not pass, Follow yields the error. If the caller continues its loop, Follow pauses and
// tries again: a permission may come back. It yields ctx's cause, or the client's error if there is no next session,
// and ends.
func Follow[T any](
	ctx context.Context, client *zk.Client, path string, look func(*zk.Session) (T, *zk.Watch, error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for tries := 0; ; tries++ {
			sess, err := client.Session(ctx)
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(none, err)
				return
			}
			f := follower[T]{look: func() (T, *zk.Watch, error) { return look(sess) }, yield: yield}
			err = f.run(ctx, sess, path)
			if f.stopped {
				return
			}
			if f.told {
				tries = 0
			}
			if err = again(ctx, sess, err, tries); err == nil || ctx.Err() != nil || sess.Err() != nil {
				continue
			}
			if !yield(none, err) {
				return
			}
			_ = Pause(ctx, sess, tries) // the next round sees why it was cut short
		}
	}
}

// follower is Follow under one session.
type follower[T any] struct {
	look    func() (T, *zk.Watch, error)
	yield   func(T, error) bool
	told    bool // anything was yielded
	stopped bool // the caller has left the loop
}

// run yields states until something fails or the caller leaves the loop.
func (f *follower[T]) run(ctx context.Context, sess *zk.Session, path string) error {
	if err := sess.Sync(ctx, path); err != nil {
		return err
	}
	for {
		now, watch, err := f.look()
		if err != nil {
			return err
		}
		if watch == nil {
			continue
		}
		f.told = true
		if f.stopped = !f.yield(now, nil); f.stopped {
			watch.Close()
			return nil
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return err
		}
	}
}
