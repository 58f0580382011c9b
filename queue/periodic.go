package queue

// Items that are put again and again, at the times of a schedule.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Schedule tells the times of a periodic item. The schedules of github.com/robfig/cron/v3 are such.
type Schedule interface {
	// Next returns the first time after t, or the zero Time if there is none. It must return the same for the same t
	// in all processes.
	Next(t time.Time) time.Time
}

// Periodic is an item that Repeat puts at the times of a schedule.
type Periodic struct {
	// Name tells it from others in the queue. Processes that give the same name must give the same schedule.
	Name     string
	Schedule Schedule
	// Message returns what to put for a time of the schedule. It is called on a goroutine of Repeat's own, as Put is.
	Message func(due time.Time) Message
	// Put, unless nil, is called after this process has put an item.
	Put func(due time.Time, id string)

	_ struct{}
}

func (p *Periodic) check() error {
	switch {
	case p.Name == "" || p.Name == "." || p.Name == "..":
		return fmt.Errorf("%w: a periodic item needs a name, not %q", zk.BadArguments, p.Name)
	case p.Schedule == nil || p.Message == nil:
		return fmt.Errorf("%w: the periodic item %q needs a Schedule and a Message", zk.BadArguments, p.Name)
	}
	return nil
}

// Repeat puts an item at each time of each schedule, until ctx ends. Then it returns nil. Any number of processes may
// repeat the same names: each time's item is put exactly once, by the one that is elected, and when that one leaves or
// crashes, another takes its place.
//
// The first Repeat of a name begins with the first time after it, by the servers' clock. If no process repeats the name
// for a while, or the servers cannot be reached, one item is put for the first of the times that were missed, and the
// others are left out. If the servers' clock was ahead for a while, the time that was put then is not put again when it
// comes, but the schedule does not wait for the clock to catch up: of later times, those that an item was put for may
// have a second one. A schedule is asked with times in UTC, whatever time.Local is, so that one without a location of
// its own, as cron.ParseStandard returns, has the same times in all processes. Its times are rounded up to whole
// milliseconds; those that are the same then count as one.
//
// It returns an error if a message is refused (a TooLargeError, or zk.BadArguments), Next of a schedule returns a time
// that is not after the one it was given (zk.BadArguments), the servers refuse the client's
// credentials, or the queue is closed (ErrClosed). If the queue is full, it waits for room.
func (q *Queue) Repeat(ctx context.Context, items ...Periodic) error {
	for i := range items {
		if err := items[i].check(); err != nil {
			return q.failed("repeat", err)
		}
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(q.ctx, stop)()
	var wg sync.WaitGroup
	errs := make([]error, len(items))
	for i := range items {
		wg.Go(func() {
			p := repeater{Periodic: &items[i], q: q, dir: q.layout.path(dirPeriodic, url.PathEscape(items[i].Name))}
			if err := p.run(running); running.Err() == nil {
				errs[i] = q.failed(fmt.Sprintf("repeat %q in", items[i].Name), err)
				stop()
			}
		})
	}
	wg.Go(func() {
		<-running.Done() // also if there are no items
	})
	wg.Wait()
	if q.ctx.Err() != nil && ctx.Err() == nil {
		return q.failed("repeat", ErrClosed)
	}
	return errors.Join(errs...)
}

// repeater repeats one item. Those of all processes stand in line below the item's node, whose data is the last time
// that was dealt with, in ms since 1970. Being first in line only saves work: what makes the puts exactly once is that
// each sets the node in its own transaction, on condition of the version that it has seen.
type repeater struct {
	*Periodic
	q   *Queue
	dir string
}

// run repeats the item until ctx ends, or something is wrong for good, under one session after the other.
func (p *repeater) run(ctx context.Context) error {
	return p.q.do(ctx, func(sess *zk.Session) error { return p.lead(ctx, sess) })
}

// lead waits until this process is first in line, and puts the items as long as the session lasts.
func (p *repeater) lead(ctx context.Context, sess *zk.Session) error {
	// Not left to the line, which would make a container: servers remove those when no process stands in line.
	_, err := sess.CreateNode(ctx, p.q.layout.node(p.dir, nil, zk.Persistent))
	if err != nil && !errors.Is(err, zk.NodeExists) {
		return err
	}
	place, err := line.Enter(ctx, sess, &line.Line{
		Dir:     p.dir,
		There:   true,
		Prefix:  func(guid string) string { return guid + "-wait-" },
		Markers: []line.Marker{"wait-"},
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return nil },
		ACL:     p.q.cfg.ACL,
		AnyACL:  p.q.cfg.AnyACL,
	})
	if err != nil {
		return err
	}
	defer place.Release()
	if !place.First() {
		if err := place.Await(ctx); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(sess.Context(), func() { end(context.Cause(sess.Context())) })()
	for {
		err := p.putNext(ctx, sess)
		switch {
		case ctx.Err() != nil: // what is unresolved then, the node tells under the next session
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}

// retryFull is how long a periodic item waits before it tries again to get into a full queue.
const retryFull = time.Second

// putNext waits for the next time and puts its item, unless another process does.
func (p *repeater) putNext(ctx context.Context, sess *zk.Session) error {
	last, version, err := p.last(ctx, sess)
	if err != nil {
		return err
	}
	due := p.next(time.UnixMilli(last))
	if due.IsZero() {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if due.UnixMilli() <= last { // or it would put one item after the other
		return attempt.Bad("the Schedule's next time after %v is %v, want a later one, or none",
			time.UnixMilli(last).UTC(), due)
	}
	now := p.q.clock.now()
	// Sub does not overflow if due is more than 292 years ahead.
	if left := due.Sub(time.UnixMilli(now)); left > 0 {
		// The wait is cut into parts that are short enough for the clock to be known when it is over.
		return rest(ctx, min(left, clockLasts-clockLasts/4))
	}
	// Times that have passed meanwhile are left out.
	done := due.UnixMilli()
	if next := p.next(due); !next.IsZero() && next.UnixMilli() <= now {
		done = now
	}
	id, err := p.q.Put(ctx, p.Message(due), zk.SetOp(p.dir, encodeTime(done), version))
	switch {
	case errors.Is(err, ErrFull):
		return rest(ctx, retryFull)
	case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NoNode): // another process has put it, or removed the node
		return nil
	case errors.Is(err, ErrUnresolved) && ctx.Err() == nil: // the node tells whether it was put
		return nil
	case err != nil:
		return err
	}
	if p.Put != nil {
		p.Put(due, id)
	}
	return nil
}

// last returns the last time that was dealt with, in ms since 1970, and the version of the node that says so. It makes
// sure that the servers' time is known. A name that is new begins now.
func (p *repeater) last(ctx context.Context, sess *zk.Session) (last int64, version int32, err error) {
	for {
		node, err := latest(ctx, sess, p.dir)
		if err != nil {
			return 0, 0, err
		}
		last, err := strconv.ParseInt(string(node.Data), 10, 64)
		data := node.Data
		switch now := p.q.clock.now(); {
		case !p.q.clock.fresh(): // a write tells the time
		case err != nil || last <= 0 || p.skipped(now, last):
			data = encodeTime(now) // new, written by another program, or by a server whose clock was ahead
		default:
			return last, node.Stat.Version, nil
		}
		_, err = p.q.producer.apply(ctx, zk.SetOp(p.dir, data, node.Stat.Version))
		unknown := errors.Is(err, attempt.ErrUnresolved) && ctx.Err() == nil // the next look tells
		if err != nil && !unknown && !errors.Is(err, zk.BadVersion) {
			return 0, 0, err
		}
	}
}

// next returns the first time of the schedule after t. Both are in UTC: see Repeat. It is rounded up to what the node
// can store: the schedule's next time after that must be a later one.
func (p *repeater) next(t time.Time) time.Time {
	return p.Schedule.Next(t.UTC()).UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// clockSkew is by how much clocks of servers may differ, in ms, without a time of a schedule being put twice.
const clockSkew = int64(time.Minute / time.Millisecond)

// skipped reports whether times of the schedule would be left out if it went on after last, which was dealt with when
// the servers' clock was ahead of now. One such time's item has been put. If there are more, they would have to wait
// until the clock is where it was, which can be years.
func (p *repeater) skipped(now, last int64) bool {
	if last <= now+clockSkew {
		return false
	}
	first := p.next(time.UnixMilli(now))
	if first.IsZero() || first.UnixMilli() > last {
		return false
	}
	second := p.next(first)
	return !second.IsZero() && second.UnixMilli() <= last
}

func encodeTime(ms int64) []byte { return strconv.AppendInt(nil, ms, 10) }

// rest waits for d.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, time.Nanosecond)) // never zero: golang/go#78156
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
