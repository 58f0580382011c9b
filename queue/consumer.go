package queue

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// consumer is a Queue as a consumer, under one session: an ephemeral node that shows that it is alive, the claims
// that refer to that node, and the items that were claimed and not delivered yet. When the session ends, so does the
// consumer, and its claims are free for the others.
//
// The queue's mutex guards its fields.
type consumer struct {
	d     *dispatcher
	sess  *zk.Session
	own   *zk.Ownership // of what it claims
	id    string
	node  string
	about []byte          // its data
	ctx   context.Context //nolint:containedctx // the items' contexts come from it
	end   context.CancelCauseFunc

	serial     int
	leases     []*lease // those with buffered items, in the order of their places
	pace       int      // how many items to claim at once
	unreturned []*lease // claims without buffered items that the server has refused to take back
	linger     *time.Timer
	rested     time.Time // when it last claimed or delivered something
	open       int       // items that were delivered and are not finished
	closing    bool      // the queue is closed; the node goes when no item is open
	abandoned  bool      // its claims are lost, and its node goes
	claims     int       // free claims at the last listing, plus items given back one by one since
	acks       acks
	dirty      bool  // something was given back that may come before the buffered items
	fetching   bool  // serve is looking for something that comes before them
	nextDue    int64 // when the next delayed item is due, as far as known; 0: none
	watches

	seen map[*segment.List]int // the last segment of each ready list that it knows of

	claiming chan struct{} // one slot: held while claiming items, and while giving some back
	changed  chan struct{} // one slot: a claim's node was written, or a writer has stopped waiting
	// markOrder is held from choosing marks to sending them, so that a later request marks more. It is taken before the
	// queue's mutex.
	markOrder sync.Mutex

	fetcher *fetcher
	waiter  *waiter
}

// openConsumer returns the consumer of the live session. It creates one if there is none.
func (d *dispatcher) openConsumer(ctx context.Context) (*consumer, error) {
	sess, err := d.session(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	co, leaving := d.consumer, d.abandoning
	d.mu.Unlock()
	if leaving != nil {
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if co != nil && co.sess == sess && co.ctx.Err() == nil {
		return co, nil
	}
	co = &consumer{
		d: d, sess: sess, pace: 1,
		changed: make(chan struct{}, 1), claiming: make(chan struct{}, 1),
	}
	co.own = sess.NewOwnership(co)
	co.acks.co = co
	co.changes, co.seen = make(map[int]*watch), make(map[*segment.List]int)
	co.fetcher, co.waiter = &fetcher{co: co, delays: -1, consumers: 1}, newWaiter(co)
	co.ctx, co.end = context.WithCancelCause(sess.Context())
	if err := co.createNode(ctx); err != nil {
		co.end(err)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		co.removeNode()
		return nil, ErrClosed
	}
	d.consumer = co
	go co.watchNode()
	context.AfterFunc(co.ctx, func() { d.dropConsumer(co) })
	return co, nil
}

// processInfo is what a consumer's node tells people about its process.
type processInfo struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
}

// createNode creates the consumer's node. A creation whose outcome is unknown may still be done later, so the next
// attempt uses another name, and what the first has created is removed in the background.
func (co *consumer) createNode(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // people read this, no program does
	}
	co.about, err = json.Marshal(processInfo{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0])})
	if err != nil {
		return err
	}
	for {
		id := segment.NewID()
		co.id = hex.EncodeToString(id[:8])
		co.node = co.d.layout.path(dirConsumers, co.id)
		c, err := co.sess.CreateNode(ctx, co.d.layout.node(co.node, co.about, zk.Ephemeral))
		if err == nil {
			co.d.clock.saw(c.Stat.Ctime)
			return nil
		}
		if zk.OutcomeOf(err) == zk.Unknown {
			line.Withdraw(co.sess, co.d.layout.path(dirConsumers), co.id)
		}
		if ctx.Err() != nil || co.sess.Err() != nil || !errors.Is(err, zk.ErrConnectionLost) {
			co.d.missing(err)
			return err
		}
	}
}

// rewatchPause is how long a consumer waits before it tries again to watch its own node, if the server refuses.
const rewatchPause = time.Second

// watchNode ends the consumer when another client deletes its node: then its claims are free for all.
func (co *consumer) watchNode() {
	for {
		_, _, w, err := co.sess.GetW(co.ctx, co.node)
		if err == nil {
			_, err = w.Next(co.ctx)
			w.Close()
		}
		switch {
		case co.ctx.Err() != nil:
			return
		case errors.Is(err, zk.NoNode):
			co.Gone(co.node)
			return
		case err != nil && !errors.Is(err, zk.ErrConnectionLost):
			select {
			case <-time.After(rewatchPause):
			case <-co.ctx.Done():
				return
			}
		}
	}
}

// Nodes returns the node that all claims refer to.
func (co *consumer) Nodes() []string { return []string{co.node} }

// Gone ends the consumer because its node no longer exists.
func (co *consumer) Gone(string) {
	co.end(fmt.Errorf("%w: the consumer's node %s was deleted by another client", ErrClaimLost, co.node))
}

// Lost ends the consumer because its session is uncertain.
func (co *consumer) Lost(cause error, cooldown time.Duration) {
	co.abandon(fmt.Errorf("%w: %w", ErrClaimLost, cause), cooldown)
}

// claimRemoved ends the consumer because another client has removed the node of one of its claims. No consumer could
// take the other claims over while the consumer's node exists, so that node goes, too. Handlers of its items learn of
// it, and have as long to stop as the owner of a session that is lost.
func (co *consumer) claimRemoved() { co.abandon(errClaimRemoved, co.sess.Timeout()/4) }

// abandon ends the consumer, whose node may still exist. The node goes as soon as a server can be reached, but not
// before the cooldown in which handlers can stop. Until then its claims stand, and the queue opens no other consumer,
// which would first take what comes behind them. If the session ends before, it takes the node along.
func (co *consumer) abandon(cause error, cooldown time.Duration) {
	gone := make(chan struct{})
	co.d.mu.Lock()
	if co.abandoned {
		co.d.mu.Unlock()
		return
	}
	co.abandoned = true
	co.d.abandoning = gone
	co.d.mu.Unlock()
	co.end(cause)
	time.AfterFunc(cooldown, func() {
		defer close(gone)
		_ = co.removeNode().Wait(context.Background()) // it ends with the session at the latest
	})
}

// certify returns nil once the session is certain that the consumer's claims are its own.
func (co *consumer) certify() error {
	err := co.sess.Certify(co.ctx, co.node)
	if errors.Is(err, zk.NoNode) {
		co.Gone(co.node)
	}
	if err != nil {
		return co.orLost(err)
	}
	return nil
}

// updateOwnership begins or ends the ownership: a consumer without claims owns nothing. The caller holds the queue's
// mutex.
func (co *consumer) updateOwnership() {
	if co.open > 0 || len(co.leases) > 0 {
		co.own.Begin()
	} else {
		co.own.End()
	}
}

// dropConsumer forgets a consumer that has ended.
func (d *dispatcher) dropConsumer(co *consumer) {
	d.mu.Lock()
	if d.consumer == co {
		d.consumer = nil
	}
	co.leases, co.unreturned = nil, nil
	co.own.End()
	if co.linger != nil {
		co.linger.Stop()
	}
	watches := co.forgetAll()
	d.mu.Unlock()
	closeAll(watches)
}

// err returns nil while the consumer's claims hold, and otherwise why they do not.
func (co *consumer) err() error {
	if err := co.own.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClaimLost, err)
	}
	return context.Cause(co.ctx)
}

// orLost returns err, or that the claims are lost if they are.
func (co *consumer) orLost(err error) error {
	if lost := co.err(); lost != nil {
		return fmt.Errorf("%w (%w)", lost, err)
	}
	return err
}

// room returns how many items to claim at once. The caller holds the queue's mutex.
func (co *consumer) room() int { return max(1, min(maxPrefetch, max(co.pace, co.d.takers.demand()))) }

// ahead returns how many items to mark as delivered when the next is: as many as are open, because each goroutine
// that works on one will want another. The caller holds the queue's mutex.
func (co *consumer) ahead() int { return max(1, co.open, co.d.takers.demand()) }

// markAt returns how many items to mark in the transaction that claims from a place: none if other items are
// delivered before those. The caller holds the queue's mutex.
func (co *consumer) markAt(at place) int {
	if best, ok := co.best(); ok && best.compare(at) < 0 {
		return 0
	}
	return co.ahead()
}

// best returns the place of the next item that can be delivered without asking a server.
func (co *consumer) best() (place, bool) {
	if len(co.leases) == 0 {
		return place{}, false
	}
	l := co.leases[0]
	return place{l.priority, l.segment, l.buffer[0].seq}, true
}

// mustFetch reports that a server must be asked before the next item is delivered: nothing is buffered, or something
// that comes first may have arrived. The caller holds the queue's mutex.
func (co *consumer) mustFetch() bool {
	best, ok := co.best()
	return !ok || co.fetching || co.dirty || co.urgent(best.priority) ||
		co.nextDue > 0 && co.d.clock.now() >= co.nextDue
}

// next delivers the next item, nil if there is none that may be delivered. The caller holds the queue's mutex.
func (co *consumer) next() *Item {
	// err looks at the clock: a process that was stopped for a while has nothing to deliver.
	if co.err() != nil || co.mustFetch() {
		return nil
	}
	l := co.leases[0]
	s := l.buffer[0]
	if s.seq > l.claimed.Delivered {
		return nil
	}
	l.buffer = l.buffer[1:]
	l.open++
	co.open++
	switch {
	case len(l.buffer) == 0:
		co.leases = co.leases[1:]
		co.learnPace(l)
	case len(co.leases) > 1:
		co.leases = co.leases[1:]
		co.add(l) // in its new place: what others have left behind may come between its items
	}
	co.restartLinger()
	co.prefetch()
	return l.item(s)
}

// item returns a buffered item as it is delivered. The caller holds the queue's mutex.
func (l *lease) item(s bufferedItem) *Item {
	return &Item{
		co: l.co, lease: l, seq: s.seq, rec: s.rec, created: s.created,
		attempt: s.rec.Attempts + l.claimed.Tries + 1,
	}
}

// prefetch lets serve claim the next items when a fast consumer has few left, so that its takers need not wait for
// them. The caller holds the queue's mutex.
func (co *consumer) prefetch() {
	const fast = 16
	if co.pace < fast || len(co.leases) != 1 || len(co.leases[0].buffer) != co.pace/4 || co.d.ctx.Err() != nil {
		return
	}
	co.d.more = true
	if !co.d.serving {
		co.d.serving = true
		co.d.wg.Go(co.d.serve)
	}
}

// How long a lease is to last: one that is used up faster makes the next one larger, one that takes four times as
// long makes it smaller. If the servers are slow, or far away, that is a few times as long as a claim takes.
const (
	leaseShort = 100 * time.Millisecond
	leaseCosts = 4
	slowClaim  = time.Second // a claim that takes longer counts as this
)

func (co *consumer) learnPace(l *lease) {
	short := max(leaseShort, leaseCosts*min(l.filled.Sub(l.asked), slowClaim))
	switch took := time.Since(l.filled); {
	case took < short && l.size >= co.pace:
		co.pace = max(1, min(2*co.pace, co.d.cfg.Prefetch))
	case took > 4*short:
		co.pace = max(1, co.pace/2)
	}
}

// restartLinger restarts the time after which buffered items that nothing takes are given back. The caller holds the
// queue's mutex.
func (co *consumer) restartLinger() {
	co.rested = time.Now()
	if co.linger == nil {
		co.linger = time.AfterFunc(co.d.cfg.Linger, co.lingerOver)
		return
	}
	co.linger.Reset(co.d.cfg.Linger)
}

// lingerOver gives back items that no taker has wanted for a while. If the server refuses, or takers want some now,
// it tries again after the next linger.
func (co *consumer) lingerOver() {
	co.d.background(func() {
		_ = co.release(co.ctx, true)
		co.d.mu.Lock()
		defer co.d.mu.Unlock()
		if len(co.leases) > 0 || len(co.unreturned) > 0 {
			co.restartLinger()
		}
	})
}

// release gives back the buffered items, and removes the watches that tell of more. If idle is set, it does nothing
// while takers want items.
func (co *consumer) release(ctx context.Context, idle bool) error {
	if given, err := co.returnBuffered(ctx, idle); err != nil || !given {
		return err
	}
	co.d.mu.Lock()
	co.pace = 1
	watches := co.forgetAll()
	co.d.mu.Unlock()
	closeAll(watches)
	return nil
}

// returnBuffered gives back the buffered items. If idle is set and takers want items, it does nothing and returns
// false.
//
// It takes all items out of the buffer at once, and nothing is claimed until they are back. Otherwise a taker that
// comes meanwhile would get what is behind them: a later claim of this consumer, or the next one. If the server
// refuses to take items back they are buffered again, or given back later. If there is no answer, because ctx or the
// consumer has ended, it is unknown whose they are, and they go back when the consumer's node does.
func (co *consumer) returnBuffered(ctx context.Context, idle bool) (bool, error) {
	if err := co.beginClaiming(ctx); err != nil {
		return false, err
	}
	defer co.endClaiming()
	errs := co.returnAgain(ctx)
	d := co.d
	d.mu.Lock()
	if idle && (len(d.takers) > 0 || time.Since(co.rested) < d.cfg.Linger) { // or a taker was served meanwhile
		d.mu.Unlock()
		return false, errors.Join(errs...)
	}
	leases := co.leases
	co.leases = nil
	buffers := make([][]bufferedItem, len(leases))
	for i, l := range leases {
		buffers[i], l.buffer, l.returning = l.buffer, nil, true
	}
	co.updateOwnership()
	d.mu.Unlock()
	for i, l := range leases {
		err := l.giveBack(ctx, buffers[i][0].seq)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if zk.OutcomeOf(err) != zk.Unknown && co.certify() == nil {
			co.rebuffer(l, buffers[i])
		}
	}
	return true, errors.Join(errs...)
}

// returnLater keeps a claim that has nothing to deliver and that the server has refused to take back: it is given
// back after the linger.
func (co *consumer) returnLater(l *lease) {
	co.d.mu.Lock()
	defer co.d.mu.Unlock()
	if co.ctx.Err() != nil {
		return // it is free when the consumer's node goes
	}
	l.buffer = nil
	co.unreturned = append(co.unreturned, l)
	co.restartLinger()
}

// returnAgain tries again to give back what the server has refused to take back. The caller has begun claiming.
func (co *consumer) returnAgain(ctx context.Context) []error {
	co.d.mu.Lock()
	unreturned := co.unreturned
	co.unreturned = nil
	co.d.mu.Unlock()
	var errs []error
	for _, l := range unreturned {
		err := l.giveBack(ctx, l.claimed.First)
		switch {
		case err == nil:
			co.d.mu.Lock()
			co.dirty = true // it may come before what is claimed
			co.d.mu.Unlock()
		case zk.OutcomeOf(err) != zk.Unknown:
			co.returnLater(l)
		}
		errs = append(errs, err)
	}
	return errs
}

// rebuffer buffers items again that could not be given back, and certainly are this consumer's.
func (co *consumer) rebuffer(l *lease, buffer []bufferedItem) {
	co.d.mu.Lock()
	defer co.d.mu.Unlock()
	if co.ctx.Err() != nil {
		return // it is free when the consumer's node goes
	}
	l.buffer, l.returning = buffer, false
	co.add(l)
	co.dirty = true // other claims of ours, which come first, were given back
	co.updateOwnership()
}

// beginClaiming waits until no other goroutine claims items for the consumer, or gives some back.
func (co *consumer) beginClaiming(ctx context.Context) error {
	select {
	case co.claiming <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-co.ctx.Done():
		return context.Cause(co.ctx)
	}
}

func (co *consumer) endClaiming() { <-co.claiming }

// unmarked returns the lease whose node is to be written next, and through which item, so that as many items are
// marked as are open; nil if so many are. The caller holds the queue's mutex.
func (co *consumer) unmarked() (*lease, int) {
	want, have := co.ahead(), 0
	for _, l := range co.leases {
		n := l.markedAhead()
		if have+n >= want {
			break
		}
		if n < len(l.buffer) {
			return l, l.buffer[min(want-have, len(l.buffer))-1].seq
		}
		have += n
	}
	return nil, 0
}

// mark records that more items are about to be delivered. If another goroutine is writing, it waits until that has
// ended.
func (co *consumer) mark(ctx context.Context) error {
	co.markOrder.Lock()
	e := co.beginAck(true)
	if e.marked == nil {
		co.markOrder.Unlock()
		select {
		case <-co.changed:
		case <-ctx.Done():
		case <-co.ctx.Done():
		}
		return nil
	}
	answer := co.send(e.ops())
	co.markOrder.Unlock()
	_, err := answer.Get(co.ctx)
	e.end(err == nil) // if the answer is lost the next try marks at least the same
	if errors.Is(err, zk.NoNode) {
		co.claimRemoved()
	}
	return err
}

// marksChanged wakes mark if it waits.
func (co *consumer) marksChanged() {
	select {
	case co.changed <- struct{}{}:
	default:
	}
}

// send sends a transaction.
func (co *consumer) send(ops []zk.Op) *zk.Future[[]zk.Result] {
	b := co.sess.Batch()
	answer := b.Multi(ops...)
	b.Send()
	return answer
}

func (co *consumer) nextSerial() string {
	co.serial++
	return fmt.Sprintf("%s%x", co.id, co.serial)
}

// add adds a lease to those with buffered items. The caller holds the queue's mutex.
func (co *consumer) add(l *lease) {
	at, _ := slices.BinarySearchFunc(co.leases, l, func(a, b *lease) int {
		return place{a.priority, a.segment, a.buffer[0].seq}.compare(place{b.priority, b.segment, b.buffer[0].seq})
	})
	co.leases = slices.Insert(co.leases, at, l)
	co.restartLinger()
}

// close gives back the buffered items. The node goes when all other items are finished; then what could not be given
// back is free.
func (co *consumer) close(ctx context.Context) error {
	if co.ctx.Err() != nil {
		return nil //nolint:nilerr // nothing is claimed any more
	}
	err := co.release(ctx, false)
	co.d.mu.Lock()
	co.closing = true
	over := co.open == 0
	co.d.mu.Unlock()
	if over {
		err = errors.Join(err, co.removeNode().Wait(ctx))
	}
	return err
}

// removeNode ends the consumer and removes its node, when no claim needs it.
func (co *consumer) removeNode() *line.Removal {
	co.end(ErrClosed)
	return line.OwnBundle(co.sess, zk.Created{Path: co.node}).Leave()
}
