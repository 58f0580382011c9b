package queue

// Hooks.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/both"
)

// Hooks are called about what a Queue puts and delivers, for logs and metrics: on the goroutine that did the work, also
// when the caller's context has ended before it was done. Then Done, Retried and Ended get the values of that context,
// but not its end. Nil fields cost nothing. Hooks must not block, nor panic: the item may stay claimed until the
// session ends.
//
// Each call that puts messages calls Sending once, and then Sent once. Each item that is delivered calls Claimed once,
// and then Ended once: when it is finished, or when its claim is lost. Purge calls none of them.
type Hooks struct {
	// Sending is called by Put, PutBatch and PutOnce before they check or send anything. It may change s.Messages,
	// which are copies of the caller's, but for what they refer to: to add a header, it replaces Headers. If it changes
	// how many there are, the call puts nothing and returns zk.BadArguments.
	Sending func(ctx context.Context, s *Send)
	// Sent is called before these calls return, with the same s, which then has the outcome.
	Sent func(ctx context.Context, s *Send)
	// Put is called when items were put, in one transaction: into which queue, by its path, and how many.
	Put func(ctx context.Context, queue string, items int)
	// Taken is called before Take, TryTake and TakeBatch return, after Claimed. Consume does not call it.
	Taken func(ctx context.Context, t Taken)
	// Claimed is called when an item is delivered, before Take or TakeBatch returns it and before Consume calls its
	// handler. Item.Waited is how long it was ready.
	Claimed func(ctx context.Context, item *Item)
	// Done is called when an item was acknowledged.
	Done func(ctx context.Context, item *Item)
	// Retried is called when an item goes back to be delivered again after delay: by Fail, Return or Consume.
	Retried func(ctx context.Context, item *Item, delay time.Duration)
	// Dead is called when an item has gone to the dead letters: by Reject, Fail or Consume, or because it cannot be
	// read when its delay is over, and then it was not delivered.
	Dead func(ctx context.Context, id, reason string)
	// Ended is called once for each item that was delivered, after Done, Retried and Dead. If the claim is lost, a
	// goroutine of its own calls it at once, unless a call that finishes the item is under way: then that does, when it
	// knows. The item's handler may still be running. An item that nothing finishes ends with its claim.
	Ended func(ctx context.Context, item *Item, end ItemEnd)
}

// And returns hooks that call those of h and then those of more: a program's own, and for example those of package
// metrics.
func (h Hooks) And(more Hooks) Hooks {
	return Hooks{
		Sending: both.Two(h.Sending, more.Sending),
		Sent:    both.Two(h.Sent, more.Sent),
		Put:     both.Three(h.Put, more.Put),
		Taken:   both.Two(h.Taken, more.Taken),
		Claimed: both.Two(h.Claimed, more.Claimed),
		Done:    both.Two(h.Done, more.Done),
		Retried: both.Three(h.Retried, more.Retried),
		Dead:    both.Three(h.Dead, more.Dead),
		Ended:   both.Three(h.Ended, more.Ended),
	}
}

// Send is a call that puts messages.
type Send struct {
	Queue    string    // the queue's path
	Messages []Message // as they are put

	IDs []string // for Sent: what the call returns; PutOnce's id may be of an item that was put before
	Err error    // for Sent: what the call returns
}

// sending calls the hook, and returns the call and the messages to put. The call is nil if no hook wants to know.
func (p *producer) sending(ctx context.Context, messages []Message) (*Send, []Message, error) {
	hooks := &p.cfg.Hooks
	if hooks.Sending == nil && hooks.Sent == nil {
		return nil, messages, nil
	}
	s := &Send{Queue: p.layout.root, Messages: slices.Clone(messages)}
	if hooks.Sending != nil {
		hooks.Sending(ctx, s)
	}
	if n := len(s.Messages); n != len(messages) {
		return s, nil, p.failed("put", attempt.Bad("Hooks.Sending has made %d messages of %d", n, len(messages)))
	}
	return s, s.Messages, nil
}

// sent calls the hook with the outcome of a call, unless that is nil.
func (p *producer) sent(ctx context.Context, s *Send, ids []string, err error) {
	if s == nil || p.cfg.Hooks.Sent == nil {
		return
	}
	s.IDs, s.Err = ids, err
	p.cfg.Hooks.Sent(ctx, s)
}

// Taken is a call that takes items.
type Taken struct {
	Queue string        // the queue's path
	Items []*Item       // what it returns; none if Err is not nil
	Took  time.Duration // since it was called
	Err   error         // what it returns
}

// ItemEnd says how the delivery of an item has ended.
type ItemEnd struct {
	Result Result
	Took   time.Duration // since it was delivered
	Finish time.Duration // the part of Took since the call began that has finished it; 0 if none was under way
	// Err is why the claim was lost, for ResultLost. For ResultRetried and ResultDead it is the reason, if there is
	// one: Return has none.
	Err error
}

// Result is what has become of an item that was delivered.
type Result uint8

// The results.
const (
	ResultDone    Result = iota + 1 // it was acknowledged
	ResultRetried                   // it is delivered again: the attempt has failed, or it was given back
	ResultDead                      // it has gone to the dead letters
	ResultLost                      // its claim was lost: it is, or will be, delivered to another consumer
)

// String returns the result's name, in lower case.
func (r Result) String() string {
	switch r {
	case ResultDone:
		return "done"
	case ResultRetried:
		return "retried"
	case ResultDead:
		return "dead"
	case ResultLost:
		return "lost"
	default:
		return fmt.Sprintf("Result(%d)", int(r))
	}
}

// tellClaimed calls the hook for items that are about to be returned. If the hook Ended wants to know, the consumer
// keeps them until they have ended.
func (d *dispatcher) tellClaimed(ctx context.Context, items []*Item) {
	hooks := &d.cfg.Hooks
	if hooks.Claimed == nil && hooks.Ended == nil {
		return
	}
	for _, item := range items {
		if hooks.Claimed != nil {
			hooks.Claimed(ctx, item)
		}
		if hooks.Ended != nil {
			item.keep()
		}
	}
}

// delivered are the items of a consumer that were delivered and have not ended, for the hook Ended; none without one.
type delivered struct {
	mu    sync.Mutex // guards items
	items map[*Item]bool
}

func (s *delivered) add(it *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = make(map[*Item]bool)
	}
	s.items[it] = true
}

func (s *delivered) remove(it *Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, it)
}

func (s *delivered) all() []*Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.items))
}

// keep has the hook told when the item's claim is lost.
func (it *Item) keep() {
	it.co.delivered.add(it)
	if it.co.ctx.Err() != nil { // consumer.drop may have been here before
		go it.lose()
	}
}

// lose tells the hook that the item's claim is lost, unless the item has ended before or is being finished. The
// consumer has ended.
func (it *Item) lose() {
	it.mu.Lock()
	over := it.ended || it.busy != nil
	it.ended = it.ended || !over
	it.mu.Unlock()
	if !over {
		it.tellEnded(context.WithoutCancel(it.co.ctx), ItemEnd{Result: ResultLost, Err: it.co.lostFor()})
	}
}

// lostFor returns why the claims of a consumer that has ended are lost.
func (co *consumer) lostFor() error {
	err := co.err()
	if err == nil || errors.Is(err, ErrClaimLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrClaimLost, err)
}

// ending returns how the item ends when a call that was to finish it, as wanted says, has come to err. It returns the
// zero ItemEnd if the item does not end: it has before, or is still the caller's. The caller holds it.mu.
func (it *Item) ending(err error, wanted ItemEnd) ItemEnd {
	end := wanted
	switch {
	case it.ended:
		return ItemEnd{}
	case err == nil:
	case errors.Is(err, ErrClaimLost):
		end = ItemEnd{Result: ResultLost, Err: err}
	case it.co.ctx.Err() != nil: // while it was busy
		end = ItemEnd{Result: ResultLost, Err: it.co.lostFor()}
	default:
		return ItemEnd{}
	}
	it.ended = true
	end.Finish = time.Since(it.settling)
	return end
}

// tellEnded calls the hook, unless end is zero.
func (it *Item) tellEnded(ctx context.Context, end ItemEnd) {
	hook := it.co.q.cfg.Hooks.Ended
	if hook == nil || end.Result == 0 {
		return
	}
	it.co.delivered.remove(it)
	end.Took = time.Since(it.begun)
	hook(context.WithoutCancel(ctx), it, end)
}

// Waited returns how long the item was ready before this delivery, by the servers' clock, as far as it is known here:
// since it was put, or since its delay was over, or since it was its turn in its group. For an item that went back at
// once, in its old place, and for one whose consumer was lost, earlier deliveries count as well.
func (it *Item) Waited() time.Duration {
	now := it.co.q.clock.now()
	if now == 0 {
		return 0
	}
	since := it.created
	if it.rec.Due > 0 {
		since = it.rec.Due
	}
	return max(0, time.UnixMilli(now).Sub(time.UnixMilli(since))-time.Since(it.begun))
}
