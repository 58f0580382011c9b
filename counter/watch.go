package counter

// Following a value.

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Watch yields the value: now, and after every change. That the node is missing is a value, too. A slow caller misses
// values, but never the last one, and never gets an older value after a newer one: their order is that of Mzxid
// (CURATOR-688). Watch continues across reconnects and sessions; without a connection, the last value may be outdated.
//
// It ends with an error: ctx's cause, the client's error if the client is closed, or the server's refusal.
func (v *Value) Watch(ctx context.Context) iter.Seq2[Versioned, error] {
	return func(yield func(Versioned, error) bool) {
		w := watcher{value: v, yield: yield}
		for {
			sess, err := v.reg.client.Session(ctx)
			if err == nil {
				err = w.follow(ctx, sess)
			}
			switch {
			case w.stopped:
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
			case sess != nil && sess.Context().Err() != nil:
				continue // Session returns an error if there is no next one
			case sess != nil && line.Transient(err):
				_ = line.AwaitRetry(ctx, sess, err) // if ctx ends meanwhile, Session returns its cause
				continue
			}
			yield(Versioned{}, v.reg.failed("watch", err))
			return
		}
	}
}

// watcher is one iteration of Watch.
type watcher struct {
	value   *Value
	yield   func(Versioned, error) bool
	newest  int64 // the largest Mzxid that was yielded
	exists  bool  // what was yielded last
	told    bool  // anything was yielded
	stopped bool  // the caller has left the loop
}

// follow yields the values that sess sees, until it fails or the caller leaves the loop.
func (w *watcher) follow(ctx context.Context, sess *zk.Session) error {
	// The session's server may lag behind the one that answered before: it may not know the node yet, or still know one
	// that was deleted.
	if err := sess.Sync(ctx, w.value.reg.path); err != nil {
		return err
	}
	for {
		now, watch, err := w.read(ctx, sess)
		if err != nil {
			return err
		}
		if watch == nil {
			continue // the node is there meanwhile
		}
		// The watch is set before the caller runs, so no change is missed meanwhile.
		if w.isNews(now) {
			w.newest, w.exists, w.told = max(w.newest, now.Mzxid), now.Exists, true
			if w.stopped = !w.yield(now, nil); w.stopped {
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

// isNews reports whether now is to be yielded behind what was.
func (w *watcher) isNews(now Versioned) bool {
	if now.Exists {
		return now.Mzxid > w.newest
	}
	return w.exists || !w.told
}

// read returns the value with a watch on it. It returns no watch if the node was created meanwhile.
func (w *watcher) read(ctx context.Context, sess *zk.Session) (Versioned, *zk.Watch, error) {
	path := w.value.reg.path
	data, stat, watch, err := sess.GetW(ctx, path)
	if !errors.Is(err, zk.NoNode) {
		return versioned(content{exists: true, data: data, stat: stat}), watch, err
	}
	_, exists, watch, err := sess.ExistsW(ctx, path)
	if err == nil && exists {
		watch.Close()
		return Versioned{}, nil, nil
	}
	return Versioned{}, watch, err
}
