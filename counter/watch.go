package counter

// Following a value.

import (
	"context"
	"errors"
	"iter"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Watch yields the value: now, and after every change. That the node is missing is a value, too. A slow caller misses
// values, but never the last one, and never gets an older value after a newer one: their order is that of Mzxid
// (CURATOR-688), which begins again if the ensemble was rebuilt, or restored from a copy. Watch continues across
// reconnects and sessions; without a connection, the last value may be outdated.
//
// A server's refusal is yielded as an error; a caller that continues its loop gets the value again when the refusal
// has passed. Watch ends with an error: ctx's cause, or the client's error if the client is closed.
func (v *Value) Watch(ctx context.Context) iter.Seq2[Versioned, error] {
	return func(yield func(Versioned, error) bool) {
		w := watcher{value: v}
		look := func(sess *zk.Session) (Versioned, *zk.Watch, error) {
			if err := v.reg.mayUse(ctx, sess); err != nil {
				return Versioned{}, nil, err
			}
			return w.look(ctx, sess)
		}
		for now, err := range attempt.Follow(ctx, v.reg.client, v.reg.path, look) {
			switch {
			case err != nil && !yield(Versioned{}, v.reg.failed("watch", err)):
				return
			case err == nil && w.isNews(now) && !yield(now, nil):
				return
			}
		}
	}
}

// watcher is one iteration of Watch.
type watcher struct {
	value *Value
	sess  *zk.Session // under which the value was read last
	last  Versioned   // that was yielded
	told  bool        // anything was yielded
	fresh bool        // nothing was read under sess before
}

// isNews reports whether now is to be yielded behind what was. Within a session, no value is older than the one before.
// The first value of a session was read behind a sync, and replaces whatever was known: the transaction ids of an
// ensemble that was rebuilt since are small again.
func (w *watcher) isNews(now Versioned) bool {
	same := now.Exists == w.last.Exists && now.Mzxid == w.last.Mzxid && now.Czxid == w.last.Czxid
	older := !w.fresh && now.Exists && now.Mzxid < w.last.Mzxid
	if w.told && (same || older) {
		return false
	}
	w.last, w.told = now, true
	return true
}

// look returns the value with a watch on it. It returns no watch if the node was created meanwhile.
func (w *watcher) look(ctx context.Context, sess *zk.Session) (Versioned, *zk.Watch, error) {
	path := w.value.reg.path
	w.fresh, w.sess = w.sess != sess, sess
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
