//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// drain takes everything out of a queue, as a consumer that is alone, and checks that nothing else is left.
func (e *epoch) drain(place string, sess *zk.Session) error {
	path := e.root + "/" + place
	for _, dir := range []string{"/consumers", "/waiters", "/periodic"} {
		if err := e.noOrphans(path + dir); err != nil {
			return err
		}
	}
	ctx, came, stop := e.unlessStuck("got no item")
	defer stop()
	d := &drainer{consumer: consumer{place: place, alone: sess}, journal: e.journal, came: came}
	fail := func(what string, err error) {
		e.t.Errorf("drain %s: %s: %v", place, what, err)
	}
	d.queueClient = &queueClient{worker: &worker{out: d}, client: e.client, number: -1, fail: fail}
	d.Root = e.root
	d.q = d.open(place, false)
	asked := clock()
	if err := passBarrier(ctx, sess, path); err != nil {
		return err
	}
	d.learn(asked)
	d.lookAtPause(ctx)
	if err := d.q.Resume(ctx); err != nil { // a client was killed that had paused it
		return err
	}
	d.lookAtPause(ctx)
	if queueKinds[place].rate.Items > 0 {
		if err := d.lift(ctx); err != nil {
			return err
		}
	}
	if queueKinds[place].every > 0 {
		if err := d.goesOn(ctx); err != nil {
			return err
		}
	}
	err := d.drain(ctx)
	if err == nil && queueKinds[place].requeues {
		err = d.raise(ctx)
	}
	dead, deadErr := d.dead(ctx)
	var left []string
	listErr := unbroken(ctx, func() (err error) {
		left, _, err = sess.Children(ctx, marks(path))
		return err
	})
	e.journal.(*queueJournal).found(place, dead, left)
	err = errors.Join(err, deadErr, listErr, d.q.Close(ctx))
	for _, dir := range []string{"/claims", "/consumers", "/waiters"} {
		err = errors.Join(err, awaitNone(ctx, sess, path+dir))
	}
	return err
}

// drainer is a consumer in the test's own process.
type drainer struct {
	consumer
	journal journal
	came    func() // called for each item
}

// Encode adds the drainer's reports to the journal.
func (d *drainer) Encode(what any) error {
	r := what.(report)
	if r.Delivery == nil {
		d.journal.note(r)
		return nil
	}
	delivery := *r.Delivery
	d.journal.note(report{Place: r.Place, Delivery: &delivery})
	return nil
}

// drain acknowledges items until none is left. It takes one after the other, and so in order.
func (d *drainer) drain(ctx context.Context) error {
	const flights = 16
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, flights)
	for {
		known, asked := d.known.Load(), clock()
		item, err := d.q.TryTake(ctx)
		if err == nil {
			d.came()
			seen := d.receive(item, asked, known)
			slots <- struct{}{}
			wg.Go(func() {
				d.finish(item, seen, fate{Finish: lincheck.Finish{Fate: lincheck.Acknowledged}})
				<-slots
			})
			continue
		}
		if !errors.Is(err, queue.ErrEmpty) {
			return err
		}
		wg.Wait()
		n, err := d.q.Len(ctx)
		if err != nil {
			return err
		}
		if n.Ready+n.Delayed+n.Claimed == 0 {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%s is not empty: %+v", d.place, n)
		}
	}
}

// raise puts back all dead letters and drains the queue again.
func (d *drainer) raise(ctx context.Context) error {
	dead, err := d.dead(ctx)
	if err != nil {
		return err
	}
	r := lincheck.Requeue{
		Client: d.number, Serial: int(d.serial.Add(1)), Seen: dead, Asked: clock(),
		Session: d.alone.ID(),
	}
	for _, x := range dead {
		r.Items = append(r.Items, x.Item)
	}
	if r.N, err = d.q.Requeue(ctx, r.Items...); err != nil || r.N != len(dead) {
		return fmt.Errorf("got %d of %d dead letters put back: %w", r.N, len(dead), err)
	}
	r.Done = clock()
	d.journal.note(report{Place: d.place, Requeue: &r})
	return d.drain(ctx)
}

func (c *consumer) dead(ctx context.Context) ([]lincheck.Dead, error) {
	var list []lincheck.Dead
	for x, err := range c.q.DeadLetters(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, lincheck.Dead{Item: x.ID, Body: tagOf(x.Body), Attempts: x.Attempts, Reason: x.Reason})
	}
	return list, nil
}

// awaitNone waits until a node has no children.
func awaitNone(ctx context.Context, sess *zk.Session, path string) error {
	for {
		names, _, err := sess.Children(ctx, path)
		if err == nil && len(names) == 0 {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return errors.Join(fmt.Errorf("got children of %s: %v", path, names), err)
		}
	}
}
