//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

const queueJob = "queues"

// queueClient is a client that puts and takes items.
type queueClient struct {
	*worker

	client *zk.Client
	number int
	quiet  bool
	serial atomic.Int64
	acked  sync.Map // item to delivery, for those that Consume is to acknowledge
	fail   func(what string, err error)
}

// useQueues starts a client's goroutines, which put items into queues and take them out again. At the end they finish
// all items and take no more. One client of the first process, and later its replacement, is the only consumer of a
// queue; so is one of the second process.
func useQueues(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	h := &queueClient{worker: w, client: client, number: w.First + i*goroutinesPerClient, quiet: quiet(i)}
	h.fail = func(what string, err error) {
		fmt.Fprintf(os.Stderr, "worker: client %d: %s: error without a fault that explains it: %v\n", h.number, what,
			err)
		os.Exit(1)
	}
	var mine []string
	for _, place := range w.Places {
		if kind := queueKinds[place]; (isSlow(place) || !quiet(i)) &&
			(!kind.lone || kind.home == w.Index && i == loneClient) {
			mine = append(mine, place)
		}
	}
	wg.Go(func() {
		// The journal knows of a session before anything is claimed under it. It may not know of a later session that
		// ends at once.
		sess, err := client.Session(ctx)
		if err != nil {
			return
		}
		h.lives(mine)
		wg.Go(func() { h.live(ctx, sess, mine) })
		if !quiet(i) {
			wg.Go(func() { h.produce(ctx, h.random(0), firstQueues) })
			wg.Go(func() { h.produce(ctx, h.random(1), otherQueues) })
			wg.Go(func() { h.produce(ctx, h.random(lastRole), lastQueues) })
		}
		for k, place := range mine {
			if queueKinds[place].every > 0 {
				wg.Go(func() { h.repeat(ctx, place, func() {}) })
			}
			if queueKinds[place].lone {
				wg.Go(func() { h.consumeAlone(ctx, place, h.random(2+2*k)) })
				continue
			}
			q := h.open(place, false)
			var takers sync.WaitGroup
			for n := range queueKinds[place].takers {
				takers.Go(func() {
					c := &consumer{queueClient: h, place: place, q: q}
					c.consume(ctx, h.random(2+2*k+n))
				})
			}
			wg.Go(func() {
				takers.Wait()
				h.close(ctx, q)
			})
		}
	})
	return nil
}

// lastRole is that of a client's last producer. Those of consumers are below.
const lastRole = 255

// random returns the random numbers of one goroutine.
func (h *queueClient) random(role int) *rand.Rand {
	return rand.New(rand.NewPCG(h.Seed, uint64(h.number)<<8|uint64(role)))
}

// open returns a queue whose puts wait for room, or do not.
func (h *queueClient) open(place string, waits bool) *queue.Queue {
	cfg := queueKinds[place].cfg
	cfg.Hooks.Done = func(_ context.Context, item *queue.Item) {
		if d, ok := h.acked.LoadAndDelete(item); ok {
			d := d.(*lincheck.Delivery)
			d.Finish.Done = clock()
			h.report(report{Place: place, Delivery: d})
		}
	}
	if h.Deaf {
		cfg.MaxItems = 0
	}
	cfg.WaitWhenFull = waits && cfg.MaxItems > 0
	q, err := queue.New(h.client, h.Root+"/"+place, cfg)
	if err != nil {
		h.fail("open", err)
	}
	return q
}

func (h *queueClient) close(ctx context.Context, q *queue.Queue) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := q.Close(ctx); err != nil { // the session has ended, or the claims are found later
		fmt.Fprintf(os.Stderr, "worker: client %d: %v\n", h.number, err)
	}
}

// lives reports that consumers have begun a session.
func (h *queueClient) lives(places []string) {
	for _, place := range places {
		h.report(report{Place: place, Life: true})
	}
}

// live reports every session after the first.
func (h *queueClient) live(ctx context.Context, sess *zk.Session, places []string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-sess.Context().Done():
		}
		next, err := h.client.Session(ctx)
		if err != nil {
			return
		}
		if next != sess {
			h.lives(places)
		}
		sess = next
	}
}

// consumer takes items of one queue.
type consumer struct {
	*queueClient

	place string
	q     *queue.Queue

	alone *zk.Session  // it is alone as long as it has this session
	known atomic.Int64 // it knows everything before this time

	basket []held
}

// consume takes items, in every manner, until ctx ends.
func (c *consumer) consume(ctx context.Context, rnd *rand.Rand) {
	for ctx.Err() == nil {
		c.turn(ctx, newTakePlan(rnd, c.place))
	}
	c.empty()
}

// turn follows one plan.
func (c *consumer) turn(ctx context.Context, t takePlan) {
	switch t.chore {
	case none:
	case purges:
		c.purge(ctx, t)
		return
	case requeue:
		c.requeue(ctx, t)
		return
	case pauses:
		c.pause(ctx, t)
		return
	}
	known, asked := c.known.Load(), clock()
	waiting, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	var items []*queue.Item
	var item *queue.Item
	var err error
	switch t.manner {
	case consumes:
		if err := c.q.Consume(waiting, min(t.n, 2), c.handler(t.fates, asked)); err != nil {
			c.fail("consume", err)
		}
	case triesToTake:
		item, err = c.q.TryTake(ctx)
	case takesMany:
		items, err = c.q.TakeBatch(waiting, t.n)
	default:
		item, err = c.q.Take(waiting)
	}
	if err != nil && waiting.Err() == nil && !errors.Is(err, queue.ErrEmpty) {
		c.fail("take", err)
	}
	if item != nil {
		items = append(items, item)
	}
	var seen []*lincheck.Delivery
	for _, item := range items {
		seen = append(seen, c.receive(item, asked, known))
	}
	if len(items) > 0 && queueKinds[c.place].rate.Items > 0 {
		_ = c.lookAtRate(ctx, false) // there may be no answer now
	}
	for i := range items {
		i = len(items) - 1 - i // so that their places, and not the order of their ends, order them
		c.hold(items[i], seen[i], t.fates[i].hold)
		if f := t.fates[i]; t.together && f.Fate == lincheck.Acknowledged && !f.Marked {
			c.basket = append(c.basket, held{items[i], seen[i]})
		} else {
			c.finish(items[i], seen[i], f)
		}
	}
	if len(c.basket) >= batchSize || len(items) == 0 {
		c.empty()
	}
	if len(items) == 0 && queueKinds[c.place].pauses {
		c.resumeForOthers(ctx)
	}
	pause(ctx, t.pause)
}

// receive reports an item as soon as it arrives.
func (c *consumer) receive(item *queue.Item, asked, known int64) *lincheck.Delivery {
	d := &lincheck.Delivery{
		Client: c.number, Serial: int(c.serial.Add(1)), Session: item.Session().ID(),
		Item: item.ID(), Place: item.Path(), Body: tagOf(item.Body()),
		Priority: item.Priority(), Group: item.Group(), Attempt: item.Attempt(), Token: int64(item.Token()),
		Asked: asked, Due: dueOf(item.Body()),
	}
	if d.Due > 0 {
		d.Enqueued = item.EnqueuedAt().UnixMilli()
	}
	if c.alone != nil && c.alone == item.Session() {
		d.Alone, d.Known = true, known
	}
	// A moment counts as held if the context is still alive after the clock was read.
	if d.Got = clock(); item.Context().Err() == nil {
		d.Alive = d.Got
	}
	c.report(report{Place: c.place, Delivery: d})
	return d
}

// hold works on an item for the given time, or until its claim is lost. Clients that are not quiet are quick, also in
// slow queues: then one of them is free to take over an item at once.
func (c *consumer) hold(item *queue.Item, d *lincheck.Delivery, length time.Duration) {
	if isSlow(c.place) && !c.quiet {
		length /= 100
	}
	stay(item.Context(), d.Got, length, &d.Alive, func() { c.report(report{Place: c.place, Delivery: d}) })
}

// finish finishes an item as planned, and reports before and after.
func (c *consumer) finish(item *queue.Item, d *lincheck.Delivery, f fate) {
	ctx := context.Background()
	d.Finish = f.Finish
	d.Finish.Asked = clock()
	c.report(report{Place: c.place, Delivery: d})
	var err error
	switch {
	case f.Marked:
		err = item.Done(ctx, zk.CreateOp(marks(c.Root+"/"+c.place)+"/"+item.ID(), nil, zk.Persistent))
	case f.Fate == lincheck.Acknowledged:
		err = item.Done(ctx)
	case f.Fate == lincheck.GivenBack:
		err = item.Fail(ctx, &queue.RetryError{})
	case f.Fate == lincheck.Rejected:
		err = item.Reject(ctx, f.Reason)
	case f.delay > 0:
		err = item.Fail(ctx, &queue.RetryError{After: f.delay})
	default:
		err = item.Fail(ctx, errMood)
	}
	if err != nil {
		c.lost(item, d, err)
	} else {
		d.Finish.Done = clock()
		if item.Session() == c.alone {
			c.learn(d.Finish.Asked)
		}
	}
	c.report(report{Place: c.place, Delivery: d})
}

// lost records that an item could not be finished, which may only be because its claim is lost, or because the attempt
// has failed by itself when its time was over.
func (c *consumer) lost(item *queue.Item, d *lincheck.Delivery, err error) {
	if errors.Is(err, queue.ErrFinished) && item.Timeout() > 0 {
		return
	}
	if !errors.Is(err, queue.ErrClaimLost) {
		c.fail(string(d.Finish.Fate), err)
	}
	d.Finish.Robbed = strings.Contains(err.Error(), "another client has removed the item")
}

var errMood = errors.New("a mood")

// learn records that the consumer's session has an answer to a write that was sent at that time: it has learned of
// everything acknowledged before.
func (c *consumer) learn(at int64) {
	for {
		known := c.known.Load()
		if known >= at || c.known.CompareAndSwap(known, at) {
			return
		}
	}
}

// handler returns the function for Consume. The handler does not see what becomes of an item afterwards: a hook
// reports an acknowledgement, and otherwise the outcome stays open.
func (c *consumer) handler(fates []fate, asked int64) func(context.Context, *queue.Item) error {
	var next atomic.Int64
	return func(_ context.Context, item *queue.Item) error {
		f := fates[int(next.Add(1)-1)%len(fates)]
		d := c.receive(item, asked, 0)
		c.hold(item, d, f.hold)
		switch {
		case f.Marked, f.Fate == lincheck.GivenBack, f.delay > 0: // the handler does these itself
			c.finish(item, d, f)
			return nil
		}
		d.Finish = f.Finish
		d.Finish.Asked = clock()
		c.report(report{Place: c.place, Delivery: d})
		if f.hangs && item.Timeout() > 0 {
			<-item.Context().Done()
			time.Sleep(item.Session().Timeout()/4 + f.hold)
		}
		switch f.Fate {
		case lincheck.Acknowledged:
			c.acked.Store(item, d)
			return nil
		case lincheck.Rejected:
			return &queue.RejectError{Err: errors.New(f.Reason)}
		default:
			return errMood
		}
	}
}

// consumeAlone takes items of a queue with no other consumer, until ctx ends. When its session ends it closes its
// Queue, waits until there are no claims, and opens another one.
func (h *queueClient) consumeAlone(ctx context.Context, place string, rnd *rand.Rand) {
	for {
		c := &consumer{queueClient: h, place: place, q: h.open(place, false)}
		if !c.awaitAlone(ctx) {
			return
		}
		for ctx.Err() == nil && c.alone.Err() == nil {
			c.turn(ctx, newTakePlan(rnd, c.place))
		}
		c.empty()
		h.close(ctx, c.q)
	}
}

// passBarrier makes sure that what the session reads from now on includes everything that any client's
// acknowledgement confirmed before. That takes a write, even an empty one: the leader answers a sync by itself.
func passBarrier(ctx context.Context, sess *zk.Session, path string) error {
	if err := sess.Delete(ctx, path+"/none", -1); !errors.Is(err, zk.NoNode) {
		return err
	}
	return nil
}

// awaitAlone waits until the queue has no consumer. It returns false if ctx ends first. A client with a claim is a
// consumer until the claim is free.
func (c *consumer) awaitAlone(ctx context.Context) bool {
	path := c.Root + "/" + c.place
	for ; ctx.Err() == nil; pause(ctx, 10*time.Millisecond) {
		sess, err := c.client.Session(ctx)
		if err != nil {
			return false
		}
		asked := clock()
		if passBarrier(ctx, sess, c.Root) != nil {
			continue
		}
		names, _, err := sess.Children(ctx, path+"/consumers")
		if errors.Is(err, zk.NoNode) {
			names, err = nil, nil // there is no queue yet
		}
		if err == nil && len(names) == 0 {
			c.alone = sess
			c.known.Store(asked)
			return true
		}
	}
	return false
}
