package queue

// Buckets of delayed items.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// Delayed items lie in buckets: lists named for the span of time in which their items are due. A bucket far ahead is
// wide, so that there are never many; when its time begins, its items move to narrower ones, and from the narrowest
// into their ready lists. See promote.go.
//
// A producer's idea of the servers' time decides in which bucket it puts an item. It does not decide when the item is
// due: that is the time that the server has put into its node, plus its delay. A producer never believes in a time
// ahead of the servers' (see clock), so no bucket begins after one of its items is due.

// width is a kind of bucket. Each width is a multiple of the one before, so that a narrower bucket lies within one
// wider one.
type width struct {
	code  string
	ms    int64
	ahead int64 // how far ahead, in ms, items go there
}

var widths = []width{
	{"a", time.Second.Milliseconds(), time.Minute.Milliseconds()},
	{"b", time.Minute.Milliseconds(), time.Hour.Milliseconds()},
	{"c", time.Hour.Milliseconds(), 24 * time.Hour.Milliseconds()},
	{"d", 24 * time.Hour.Milliseconds(), maxDelay.Milliseconds() + 1},
}

// bucket is a span of time in which items are due.
type bucket struct {
	kind  int // an index into widths
	start int64
}

// bucketFor returns the bucket of items that are due at the given time, which is so many ms ahead.
func bucketFor(due, ahead int64) bucket {
	kind := slices.IndexFunc(widths, func(w width) bool { return ahead <= w.ahead })
	if kind < 0 {
		kind = len(widths) - 1
	}
	return bucketOf(due, kind)
}

func bucketOf(due int64, kind int) bucket { return bucket{kind, due - due%widths[kind].ms} }

// end returns the first time after the bucket's.
func (b bucket) end() int64 { return b.start + widths[b.kind].ms }

func (b bucket) name() string { return fmt.Sprintf("b%s%014d", widths[b.kind].code, b.start) }

// compare orders buckets by their beginning. Of those that begin together the widest is first: it may have items for
// the others.
func (b bucket) compare(o bucket) int {
	return cmp.Or(cmp.Compare(b.start, o.start), cmp.Compare(o.kind, b.kind))
}

// within reports whether it lies within a wider one of the others.
func (b bucket) within(others map[bucket]bool) bool {
	for kind := b.kind + 1; kind < len(widths); kind++ {
		if others[bucketOf(b.start, kind)] {
			return true
		}
	}
	return false
}

// parseBucket returns the bucket with that name, and false if it is not the name of one.
func parseBucket(name string) (bucket, bool) {
	for kind, w := range widths {
		of := func(n int) bucket { return bucketOf(int64(n), kind) }
		if n, ok := segment.Number(name, "b"+w.code, func(n int) string { return of(n).name() }); ok {
			return of(n), true
		}
	}
	return bucket{}, false
}

// eachBucket calls f with every bucket, in order.
//
// A consumer may meanwhile move a bucket's items to narrower ones, which come behind it in this order, but may not have
// been there. So if buckets came or went, it lists them again, as often as there are widths at most, and calls f with
// those that lie within others that it has listed before. If again is set, it calls f with all that it lists: items may
// have moved to one that f has seen before, too.
func (r reader) eachBucket(ctx context.Context, again bool, f func(*segment.List) error) error {
	seen := make(map[bucket]bool)
	var last int64
	for range widths {
		buckets, stat, err := r.buckets(ctx)
		if err != nil || stat.Pzxid == last {
			return err
		}
		first := last == 0
		last = stat.Pzxid
		for _, b := range buckets {
			if !again && !first && (seen[b] || !b.within(seen)) {
				continue
			}
			if err := f(r.layout.bucket(b)); err != nil {
				return err
			}
		}
		for _, b := range buckets {
			seen[b] = true
		}
	}
	return nil
}

// buckets returns all buckets in order, and the Stat of the node above them.
func (r reader) buckets(ctx context.Context) (buckets []bucket, stat zk.Stat, err error) {
	err = r.do(ctx, func(sess *zk.Session) error {
		// A server that lags behind may not know yet of items that were put, or where they are now.
		if err := sess.Sync(ctx, r.layout.root); err != nil {
			return err
		}
		var names []string
		names, stat, err = sess.Children(ctx, r.layout.path(dirDelayed))
		buckets = nil
		for _, name := range names {
			if b, ok := parseBucket(name); ok {
				buckets = append(buckets, b)
			}
		}
		return err
	})
	slices.SortFunc(buckets, bucket.compare)
	return buckets, stat, err
}

// askTime learns the servers' time if it is unknown, or was learned so long ago that it may have changed: by a write
// to the consumer's own node, since only a write tells it.
func (co *claimant) askTime(ctx context.Context) error {
	if co.q.clock.fresh() {
		return nil
	}
	stat, err := co.sess.Set(ctx, co.node, co.about, -1)
	if err == nil && co.replaced(stat) {
		err = zk.NoNode
	}
	switch {
	case err == nil:
		co.q.clock.saw(stat.Mtime)
		return nil
	case errors.Is(err, zk.NoNode):
		co.Gone(co.node)
		return co.err()
	}
	return err
}
