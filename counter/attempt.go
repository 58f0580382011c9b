package counter

// One write for the calls that wait.

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// attempt reads the value if it is not known, and makes one write of all calls that wait. The calls have their answers
// then, or wait again because nothing was done. It returns an error if it has not come to write, or the server has
// refused for another reason than what the node holds.
func (c *combiner) attempt(ctx context.Context, sess *zk.Session) error {
	if err := c.reg.mayUse(ctx, sess); err != nil {
		return err
	}
	if time.Since(c.knownAt) > keepKnown {
		now, err := c.reg.read(ctx, sess)
		if err != nil {
			return err
		}
		c.learn(now)
	}
	calls := c.take(sess)
	data := c.apply(calls)
	if data == nil {
		return c.confirm(ctx, sess, calls)
	}
	// Not before: a node that holds no number may not be a counter, and nothing is created below it unless a call
	// replaces its data.
	var rec *attempt.Receipt
	if c.known.exists {
		var err error
		if rec, err = c.reg.receipts.Get(ctx, sess); err != nil {
			c.requeue(calls)
			return c.missing(err)
		}
	}
	change, err := c.known.change(data)
	if err != nil {
		c.reg.receipts.Put(rec)
		c.answer(calls, err)
		return nil
	}
	var next *zk.Future[zk.Data]
	start := time.Now()
	t, err := c.reg.send(ctx, sess, rec, change, func(b *zk.Batch) {
		if c.rivals.expected() {
			next = b.Get(c.reg.path) // if the write is refused, this tells what the next one needs
		}
	})
	var stat zk.Stat
	if err == nil {
		stat, err = change.outcome(ctx, t)
	}
	c.took = time.Since(start)
	if err == nil {
		now, recreated := c.known.after(data, stat)
		c.learn(now)
		c.answer(calls, recreated)
		c.rivals.won()
		return nil
	}
	return c.failed(ctx, sess, calls, next, err)
}

// missing makes the next attempt read the value again if err says that the node has gone.
func (c *combiner) missing(err error) error {
	c.knownAt = time.Time{}
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	return err
}

// failed deals with a write that was not done, or is unresolved.
func (c *combiner) failed(
	ctx context.Context, sess *zk.Session, calls []*call, next *zk.Future[zk.Data], err error,
) error {
	c.knownAt = time.Time{}
	if errors.Is(err, ErrUnresolved) {
		c.answer(calls, err)
		return nil
	}
	c.requeue(calls)
	switch {
	case errors.Is(err, errConflict):
		if next != nil {
			data, err := next.Get(context.WithoutCancel(ctx)) // it is there, or the connection is lost
			now, err := toContent(data.Data, data.Stat, err)
			if err == nil {
				c.learn(now)
			}
		}
		if c.rivals.lost(ctx, c.took) {
			c.knownAt = time.Time{}
		}
		return nil
	case errors.Is(err, zk.NoNode):
		return c.reg.makeParents(ctx, sess)
	default:
		return err
	}
}

// learn notes what the node holds now.
func (c *combiner) learn(now content) { c.known, c.knownAt = now, time.Now() }

// apply computes the results of calls from the known value. It returns what to write, or nil if nothing is to be
// written.
func (c *combiner) apply(calls []*call) []byte {
	changes := false
	v, unreadable := c.layout.decode(c.reg.path, c.known.data)
	for _, x := range calls {
		v, unreadable = x.apply(c.layout, v, unreadable)
		changes = changes || x.done
	}
	if unreadable != nil || !changes {
		return nil
	}
	return c.layout.encode(v)
}

// confirm answers calls that change nothing, if the value from which that follows is still the node's. What a server
// knows may be old, so it takes a write without effect to be sure.
func (c *combiner) confirm(ctx context.Context, sess *zk.Session, calls []*call) error {
	version := int32(anyVersion)
	if c.known.exists {
		if version = c.known.stat.Version; version == anyVersion {
			c.answer(calls, ErrVersions)
			return nil
		}
	}
	_, err := sess.Multi(context.WithoutCancel(ctx), zk.CheckOp(c.reg.path, version))
	if c.known.exists == (err == nil) && (err == nil || errors.Is(err, zk.NoNode)) {
		c.answer(calls, nil)
		return nil
	}
	c.knownAt = time.Time{}
	c.requeue(calls)
	if err == nil || errors.Is(err, zk.NoNode) || errors.Is(err, zk.BadVersion) {
		return nil
	}
	return err
}

// rivals is what a process has noticed of others that write to the same node. Of the writes that reach a server while
// it writes to its disk, one is done, however many they are; the others only take its time.
type rivals struct {
	losses int // writes that were refused because another process was quicker, halved by each that was not
	inARow int // of them, since the last that was not
}

// maxLosses bounds the pause between attempts to some 2^maxLosses times what one takes.
const maxLosses = 5

func (r *rivals) expected() bool { return r.losses > 0 }

func (r *rivals) won() {
	r.losses /= 2
	r.inARow = 0
}

// patience is after how many losses in a row a process halves its pauses, so that none has bad luck for long.
const patience = 16

// lost waits before the next attempt, the longer the more rivals there seem to be, given how long the last attempt
// took. It reports whether it has waited, so that what is known is old. After the first loss it does not wait.
func (r *rivals) lost(ctx context.Context, took time.Duration) bool {
	r.losses = min(r.losses+1, maxLosses)
	r.inARow++
	if r.losses == 1 {
		return false
	}
	longest := took << (r.losses - 1) / time.Duration(1+r.inARow/patience)
	timer := time.NewTimer(1 + rand.N(longest+1)) // never zero: golang/go#78156
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}
