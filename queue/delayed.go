package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Delayed items lie in buckets: chains named for the span of time in which their items are due. A bucket far ahead is wide, so that there are
// never many; when its time begins, its items move to narrower ones, and from the narrowest into their lines.
//
// In which bucket an item is put follows from what its producer believes about the servers' time. When it is due does not: that is
// the time that the server has put into its node, plus its delay. A producer never believes in a time that is ahead of the servers'
// (see clock), so no bucket begins after an item of its is due.
var widths = []struct {
	code  string
	width time.Duration
	upTo  time.Duration // delays of items that go there
}{
	{"a", time.Second, time.Minute},
	{"b", time.Minute, time.Hour},
	{"c", time.Hour, 24 * time.Hour},
	{"d", 24 * time.Hour, maxDelay + 1},
}

const narrowest = "a"

// bucket returns the chain of items that are due at the given time, which is so many ms ahead.
func (q *Queue) bucket(due, ahead int64) *chain {
	for _, w := range widths {
		if ahead <= w.upTo.Milliseconds() {
			return q.bucketAt(bucketName(due, w.code, w.width))
		}
	}
	w := widths[len(widths)-1]
	return q.bucketAt(bucketName(due, w.code, w.width))
}

func bucketName(due int64, code string, width time.Duration) string {
	return fmt.Sprintf("b%s%014d", code, due-due%width.Milliseconds())
}

// keptBuckets is how many buckets a Queue remembers. They come and go.
const keptBuckets = 1000

func (q *Queue) bucketAt(name string) *chain {
	if q.buckets.Add(1)%keptBuckets == 0 {
		q.chains.Range(func(dir, c any) bool {
			if c.(*chain).bell == q.path(dirDelayed) {
				q.chains.Delete(dir)
			}
			return true
		})
	}
	return q.chain(q.path(dirDelayed, name), q.path(dirDelayed))
}

// parseBucket returns when a bucket's time begins, and whether it is of the narrowest kind.
func parseBucket(name string) (start int64, narrow, ok bool) {
	for _, w := range widths {
		if n, ok := number(name, "b"+w.code); ok {
			return int64(n), w.code == narrowest, true
		}
	}
	return 0, false, false
}

// promote moves what is due into the lines, and learns when the next item is due. Several consumers may do so at the same time: of two that
// move the same item one is refused.
func (d *desk) promote(ctx context.Context) error {
	names, stat, err := d.sess.Children(ctx, d.q.path(dirDelayed))
	if err != nil {
		return err
	}
	d.q.mu.Lock()
	due := d.nextDue
	d.q.mu.Unlock()
	if stat.Version == d.delays && (due == 0 || d.q.clock.now() < due) {
		return nil // nothing was put since, and nothing is due
	}
	next := int64(0)
	sooner := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _, _ := parseBucket(a)
		y, _, _ := parseBucket(b)
		return int(x - y)
	})
	for _, name := range names {
		start, narrow, ok := parseBucket(name)
		switch {
		case !ok:
		case start > d.q.clock.now():
			sooner(start)
		default:
			at, err := d.empty(ctx, name, narrow)
			if err != nil {
				return err
			}
			sooner(at)
		}
	}
	d.q.mu.Lock()
	d.nextDue = next
	d.q.mu.Unlock()
	d.delays = stat.Version
	return nil
}

// empty moves what it can out of a bucket whose time has begun, and removes the bucket when nothing is left. It returns when the next of its
// items is due, 0 if there is none.
func (d *desk) empty(ctx context.Context, name string, narrow bool) (int64, error) {
	bucket := d.q.bucketAt(name)
	list, err := bucket.segments(ctx, d.sess)
	if err != nil {
		return 0, err
	}
	next := int64(0)
	left := false
	for i, n := range list {
		names, _, err := d.sess.Children(ctx, bucket.segment(n))
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return 0, err
		}
		items := numbers(names, parseItem)
		for len(items) > 0 {
			k := min(len(items), readChunk)
			at, err := d.moveDue(bucket.segment(n), items[:k], narrow)
			if err != nil {
				return 0, err
			}
			if at > 0 && (next == 0 || at < next) {
				next = at
			}
			items = items[k:]
		}
		if next > 0 {
			left = true
			continue
		}
		if i < len(list)-1 {
			_ = d.sess.Delete(ctx, bucket.segment(n), -1) // refused if it is not empty; then somebody removes it later
		}
	}
	if len(list) > 0 && !left {
		err := bucket.drop(ctx, d.sess, list[len(list)-1])
		// It is refused if something is in it: what is no item, which stays, or an item that was put just now, which has rung the bell.
		if err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.NotEmpty) {
			return 0, err
		}
	}
	return next, nil
}

// delayedItem is an item of a bucket, on its way.
type delayedItem struct {
	path string
	due  int64
	rec  *record
	dead bool // it goes to the dead letters
}

// moveDue moves those of a segment's items that are due into their lines, in the order of their times, and the others of a wide bucket into
// narrower ones. What is no item goes to the dead letters. It returns when the first of those that stay is due.
func (d *desk) moveDue(segment string, items []int, narrow bool) (int64, error) {
	stock, err := d.read(segment, "", items)
	if err != nil {
		return 0, err
	}
	now := d.q.clock.now()
	next := int64(0)
	var moving []delayedItem
	for _, s := range stock {
		if s.rec.priority == corrupt {
			dead := &record{id: s.rec.id, enqueued: s.created, reason: errRecord.Error(), body: s.rec.body}
			moving = append(moving, delayedItem{segment + "/" + itemName(s.seq), s.created, dead, true})
			continue
		}
		due := s.rec.dueAt(s.created)
		if narrow && due > now {
			if next == 0 || due < next {
				next = due
			}
			continue
		}
		moved := *s.rec
		moved.delay, moved.due = 0, 0
		if due > now {
			moved.due, moved.delay = due, due-now
		}
		if moved.enqueued == 0 {
			moved.enqueued = s.created
		}
		moving = append(moving, delayedItem{segment + "/" + itemName(s.seq), due, &moved, false})
	}
	slices.SortStableFunc(moving, func(a, b delayedItem) int { return int(a.due - b.due) })
	for len(moving) > 0 {
		n, err := d.move(moving)
		if err != nil {
			return 0, err
		}
		moving = moving[n:]
	}
	return next, nil
}

// move moves as many items as fit into one transaction, and returns how many. It returns errAgain if it is not known to have: then the items'
// nodes tell, when they are read again.
func (d *desk) move(items []delayedItem) (int, error) {
	q := d.q
	var guards []zk.Op
	size := 0
	for i := range items {
		size += 4*opSize + len(items[i].path) + len(items[i].rec.body) + headroom/4
		if i > 0 && (size > q.cfg.MaxPacket-headroom || i >= readChunk) {
			break
		}
		guards = append(guards, zk.DeleteOp(items[i].path, -1))
	}
	p := q.newPlan(guards...)
	n := 0
	for i := range guards {
		data := items[i].rec.encode()
		c := q.graveyard()
		if !items[i].dead {
			c = q.target(items[i].rec)
		}
		// One chain a transaction: bells and ends of more would not fit into a packet that one large item fills.
		if len(p.tails) > 0 && !p.has(c) {
			break
		}
		if err := p.at(d.ctx, d.sess, c); err != nil {
			return 0, err
		}
		p.append(p.same(c), data)
		n++
	}
	p.guards = n
	p.ops = slices.Delete(p.ops, n, len(guards))
	p.ring()
	results, err := d.sess.Multi(d.ctx, p.ops...)
	failed, refused := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		p.done(results)
		for i := range items[:n] {
			if hook := q.cfg.Hooks.Dead; hook != nil && items[i].dead {
				hook(d.ctx, items[i].rec.name(), items[i].rec.reason)
			}
		}
		return n, nil
	case p.stale(err), refused && failed.Index < n, errors.Is(err, zk.ErrConnectionLost):
		return 0, errAgain
	case d.err() != nil:
		return 0, d.err()
	default:
		return 0, err
	}
}

// has reports whether the plan appends to the chain, or to another value that stands for the same.
func (p *plan) has(c *chain) bool { return p.same(c) != c || p.tails[c].segment > 0 }

// same returns the chain of the plan that stands for the same nodes as c, c if there is none.
func (p *plan) same(c *chain) *chain {
	for x := range p.tails {
		if x.dir == c.dir {
			return x
		}
	}
	return c
}
