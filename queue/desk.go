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
	"github.com/seed-a3166700/turnstile/zk"
)

// desk is a Queue as a consumer, under one session: an ephemeral node that says that it lives, the claims that refer to it, and the items
// that were claimed and not handed out yet. When the session ends, so does the desk, and its claims are there for the others.
//
// Its fields are guarded by the queue's mutex, but for those that only the goroutine of serve uses.
type desk struct {
	q     *Queue
	sess  *zk.Session
	own   *zk.Ownership // of what is claimed
	id    string
	node  string
	about []byte          // its data
	ctx   context.Context //nolint:containedctx // the items' contexts come from it
	end   context.CancelCauseFunc

	serial  int
	windows []*window // those of which something is not handed out, in the order of their places
	pace    int       // how many items to claim at once
	owed    []*window // those that the server has refused to take back, of which nothing is handed out
	linger  *time.Timer
	rested  time.Time // when something was claimed or taken last
	open    int       // items that were handed out and are not finished
	leaving bool      // the queue is closed, and the desk goes when nothing is open
	vacated bool      // its claims were lost, and its node goes
	claims  int       // how many of nobody there were when they were listed last, and what was given back one by one since
	acks    acks
	dirty   bool  // something was given back that may come before what is claimed
	looking bool  // serve looks whether something comes before what is claimed
	nextDue int64 // when a delayed item is due next, as far as is known; 0: none
	alarms

	seen map[*chain]int // the last segment of each line that we know of

	stock chan struct{} // one slot: held while items are claimed, and while they are given back
	told  chan struct{} // one slot: a claim's node was written, or nobody wants to any more
	order sync.Mutex    // held from when marks are chosen until they are sent, so that a later one marks more; taken before the queue's mutex

	// Used by serve alone.
	waiting line.Line
	place   *line.Own // in the line of those who wait; nil while not waiting
	lines   []int     // the priorities that have lines
	delays  int32     // the version of the delayed items' bell when they were looked at last; -1: never
	orphans []claim   // what consumers that are gone have left behind, when the list of consumers had changed last
	crowd   int       // how many consumers there were then
	spread  int       // how many try to claim at the same time, as far as can be told: see crowded

	// Of the transactions that move delayed items; used by serve alone.
	packet    int   // how large they may be, in bytes; 0: Config.MaxPacket
	breaks    int   // how often in a row the connection broke under one
	moveAfter int64 // when to try again
}

// openDesk returns the desk of the live session.
func (q *Queue) openDesk(ctx context.Context) (*desk, error) {
	sess, err := q.session(ctx)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	d, leaving := q.desk, q.leaving
	q.mu.Unlock()
	if leaving != nil {
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if d != nil && d.sess == sess && d.ctx.Err() == nil {
		return d, nil
	}
	d = &desk{
		q: q, sess: sess, pace: 1, delays: -1, crowd: 1,
		told: make(chan struct{}, 1), stock: make(chan struct{}, 1),
	}
	d.own = sess.NewOwnership(d)
	d.bells, d.seen = make(map[int]*alarm), make(map[*chain]int)
	d.waiting = line.Line{
		Dir:     q.path(dirWaiters),
		Prefix:  func(guid string) string { return guid + "-wait-" },
		Markers: []line.Marker{"wait-"},
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return []byte(d.id) },
		ACL:     q.cfg.ACL,

		Unordered: true, // of two that are first both have alarms, and are woken where one would do
	}
	d.ctx, d.end = context.WithCancelCause(sess.Context())
	if err := d.enter(ctx); err != nil {
		d.end(err)
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		d.depart()
		return nil, ErrClosed
	}
	q.desk = d
	go d.guard()
	context.AfterFunc(d.ctx, func() { q.closeDesk(d) })
	return d, nil
}

// consumer is what a desk's node tells about its process, for whoever looks.
type consumer struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
}

// enter makes the desk's node. A creation that nobody knows the outcome of may still be done later, so the next one is
// of another name, and what it has made goes in the background.
func (d *desk) enter(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // the record is for people
	}
	d.about, err = json.Marshal(consumer{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0])})
	if err != nil {
		return err
	}
	for {
		id := newID()
		d.id = hex.EncodeToString(id[:8])
		d.node = d.q.path(dirConsumers, d.id)
		c, err := d.sess.CreateNode(ctx, d.q.node(d.node, d.about, zk.Ephemeral))
		if err == nil {
			d.q.clock.saw(c.Stat.Ctime)
			return nil
		}
		if zk.OutcomeOf(err) == zk.Unknown {
			line.Withdraw(d.sess, d.q.path(dirConsumers), d.id)
		}
		if ctx.Err() != nil || d.sess.Err() != nil || !errors.Is(err, zk.ErrConnectionLost) {
			d.q.missing(err)
			return err
		}
	}
}

// guardPause is after what time a consumer tries again to watch its own node, if the server refuses that.
const guardPause = time.Second

// guard ends the desk when somebody deletes its node: then its claims are free for all.
func (d *desk) guard() {
	for {
		_, _, w, err := d.sess.GetW(d.ctx, d.node)
		if err == nil {
			_, err = w.Next(d.ctx)
			w.Close()
		}
		switch {
		case d.ctx.Err() != nil:
			return
		case errors.Is(err, zk.NoNode):
			d.Gone(d.node)
			return
		case err != nil && !errors.Is(err, zk.ErrConnectionLost):
			select {
			case <-time.After(guardPause):
			case <-d.ctx.Done():
				return
			}
		}
	}
}

// Nodes returns the node that all claims refer to.
func (d *desk) Nodes() []string { return []string{d.node} }

// Gone ends the desk because its node is not there any more.
func (d *desk) Gone(string) {
	d.end(fmt.Errorf("%w: the consumer's node %s was deleted by another client", ErrClaimLost, d.node))
}

// Lost ends the desk because its session is uncertain.
func (d *desk) Lost(cause error, cooldown time.Duration) {
	d.vacate(fmt.Errorf("%w: %w", ErrClaimLost, cause), cooldown)
}

// claimRemoved ends the desk because somebody else has removed the node of one of its claims. The others would be
// nobody's as long as the desk's node stayed: so that goes, too. Whoever works on one of their items is told, and has
// as long to stop as the owner of a session that is lost.
func (d *desk) claimRemoved() { d.vacate(errClaimRemoved, d.sess.Timeout()/4) }

// vacate ends the desk, whose node may still be there. The node goes as soon as a server can be reached, but not
// before those who work on items have had the cooldown to stop. Until then its claims stand, and the queue opens no
// other desk, which would take what comes behind them first. If the session ends before, it takes the node along.
func (d *desk) vacate(cause error, cooldown time.Duration) {
	gone := make(chan struct{})
	d.q.mu.Lock()
	if d.vacated {
		d.q.mu.Unlock()
		return
	}
	d.vacated = true
	d.q.leaving = gone
	d.q.mu.Unlock()
	d.end(cause)
	time.AfterFunc(cooldown, func() {
		defer close(gone)
		_ = d.depart().Wait(context.Background()) // it ends with the session at the latest
	})
}

// certify returns nil once the session is certain that what the desk claims is its own.
func (d *desk) certify() error {
	err := d.sess.Certify(d.ctx, d.node)
	if errors.Is(err, zk.NoNode) {
		d.Gone(d.node)
	}
	if err != nil {
		return d.orLost(err)
	}
	return nil
}

// weigh begins or ends the ownership: a desk that has claimed nothing owns nothing. The caller holds the queue's mutex.
func (d *desk) weigh() {
	if d.open > 0 || len(d.windows) > 0 {
		d.own.Begin()
	} else {
		d.own.End()
	}
}

// closeDesk forgets a desk that has ended.
func (q *Queue) closeDesk(d *desk) {
	q.mu.Lock()
	if q.desk == d {
		q.desk = nil
	}
	d.windows, d.owed = nil, nil
	d.own.End()
	if d.linger != nil {
		d.linger.Stop()
	}
	watches := d.silence()
	q.mu.Unlock()
	closeAll(watches)
}

// err returns nil while the desk's claims hold, and why they do not otherwise.
func (d *desk) err() error {
	if err := d.own.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClaimLost, err)
	}
	return context.Cause(d.ctx)
}

// orLost returns err, or that the claims are lost if it is.
func (d *desk) orLost(err error) error {
	if lost := d.err(); lost != nil {
		return fmt.Errorf("%w (%w)", lost, err)
	}
	return err
}

// room returns how many items to claim at once. The caller holds the queue's mutex.
func (d *desk) room() int { return max(1, min(maxPrefetch, max(d.pace, d.q.demand()))) }

// ahead returns how many items to mark as handed out when the next is: as many as are in hand, because each of those that work on them will
// want another. The caller holds the queue's mutex.
func (d *desk) ahead() int { return max(1, d.open, d.q.demand()) }

// markAt returns how many items of a claim that begins at a place to mark with it: none if others are handed out before. The caller holds the
// queue's mutex.
func (d *desk) markAt(at place) int {
	if best, ok := d.best(); ok && best.compare(at) < 0 {
		return 0
	}
	return d.ahead()
}

// best returns the place of the next item that can be handed out without asking a server.
func (d *desk) best() (place, bool) {
	if len(d.windows) == 0 {
		return place{}, false
	}
	w := d.windows[0]
	return place{w.priority, w.segment, w.stock[0].seq}, true
}

// blind reports that a server must be asked before the next item is handed out: nothing is claimed, or something that comes first may have
// arrived. The caller holds the queue's mutex.
func (d *desk) blind() bool {
	best, ok := d.best()
	return !ok || d.looking || d.dirty || d.urgent(best.priority) || d.nextDue > 0 && d.q.clock.now() >= d.nextDue
}

// pop hands out the next item, nil if there is none that may be. The caller holds the queue's mutex.
func (d *desk) pop() *Item {
	if d.err() != nil || d.blind() { // err looks at the clock: who was stopped for a while has nothing to hand out
		return nil
	}
	w := d.windows[0]
	s := w.stock[0]
	if s.seq > w.span.Handed {
		return nil
	}
	w.stock = w.stock[1:]
	w.open++
	d.open++
	switch {
	case len(w.stock) == 0:
		d.windows = d.windows[1:]
		d.learnPace(w)
	case len(d.windows) > 1:
		d.windows = d.windows[1:]
		d.add(w) // in its new place: what others have left behind may lie between its items
	}
	d.rest()
	d.lookAhead()
	return w.item(s)
}

// item returns what is handed out of the stock. The caller holds the queue's mutex.
func (w *window) item(s stocked) *Item {
	return &Item{q: w.d.q, d: w.d, w: w, seq: s.seq, rec: s.rec, created: s.created, attempt: s.rec.attempts + w.span.Tries + 1}
}

// lookAhead lets serve claim the next items when few are left of a fast consumer's, so that nobody has to wait for them. The caller holds the
// queue's mutex.
func (d *desk) lookAhead() {
	const fast = 16
	if d.pace < fast || len(d.windows) != 1 || len(d.windows[0].stock) != d.pace/4 || d.q.closed {
		return
	}
	d.q.more = true
	if !d.q.serving {
		d.q.serving = true
		d.q.wg.Go(d.q.serve)
	}
}

// How long a window is to last: one that is used up faster makes the next one larger, one that takes four times as long
// makes it smaller. Where the servers are slow, or far away, that is some times as long as it takes to claim one.
const (
	windowShort = 100 * time.Millisecond
	windowCosts = 4
	slowClaim   = time.Second // a claim that takes longer counts as this
)

func (d *desk) learnPace(w *window) {
	short := max(windowShort, windowCosts*min(w.filled.Sub(w.asked), slowClaim))
	switch took := time.Since(w.filled); {
	case took < short && w.size >= d.pace:
		d.pace = max(1, min(2*d.pace, d.q.cfg.Prefetch))
	case took > 4*short:
		d.pace = max(1, d.pace/2)
	}
}

// rest starts the time after which what nobody takes is given back. The caller holds the queue's mutex.
func (d *desk) rest() {
	d.rested = time.Now()
	if d.linger == nil {
		d.linger = time.AfterFunc(d.q.cfg.Linger, d.idle)
		return
	}
	d.linger.Reset(d.q.cfg.Linger)
}

// idle gives back what nobody has taken for a while. What is refused, or is wanted just now, is looked at again after
// the next linger.
func (d *desk) idle() {
	d.q.background(func() {
		_ = d.release(d.ctx, true)
		d.q.mu.Lock()
		defer d.q.mu.Unlock()
		if len(d.windows) > 0 || len(d.owed) > 0 {
			d.rest()
		}
	})
}

// release gives back what is not handed out, and takes back what tells of more. If asked to be idle, it does nothing
// if somebody wants items.
func (d *desk) release(ctx context.Context, idle bool) error {
	if given, err := d.returnStock(ctx, idle); err != nil || !given {
		return err
	}
	d.q.mu.Lock()
	d.pace = 1
	watches := d.silence()
	d.q.mu.Unlock()
	closeAll(watches)
	return nil
}

// returnStock gives back what is not handed out. If asked to be idle, it does nothing if somebody wants items, and
// reports false.
//
// All of it is taken from the desk at once, and nothing is claimed until it is back. Otherwise whoever comes
// meanwhile would be handed what stands behind it: a later claim of ours, or the next one. What the server refuses to
// take back is handed out again, or given back later; of what has no answer, because ctx or the desk has ended,
// nobody knows whose it is, and it goes back when the desk's node does.
func (d *desk) returnStock(ctx context.Context, idle bool) (bool, error) {
	if err := d.holdStock(ctx); err != nil {
		return false, err
	}
	defer d.freeStock()
	errs := d.returnOwed(ctx)
	q := d.q
	q.mu.Lock()
	if idle && (len(q.takers) > 0 || time.Since(d.rested) < q.cfg.Linger) { // or somebody has been served meanwhile
		q.mu.Unlock()
		return false, errors.Join(errs...)
	}
	windows := d.windows
	d.windows = nil
	stocks := make([][]stocked, len(windows))
	for i, w := range windows {
		stocks[i], w.stock, w.giving = w.stock, nil, true
	}
	d.weigh()
	q.mu.Unlock()
	for i, w := range windows {
		err := w.giveBack(ctx, stocks[i][0].seq)
		if err == nil {
			continue
		}
		errs = append(errs, err)
		if zk.OutcomeOf(err) != zk.Unknown && d.certify() == nil {
			d.restock(w, stocks[i])
		}
	}
	return true, errors.Join(errs...)
}

// owe books that a claim of which nothing can be handed out could not be given back either: that is tried again after
// the linger.
func (d *desk) owe(w *window) {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	if d.ctx.Err() != nil {
		return // it is free when the desk's node goes
	}
	w.stock = nil
	d.owed = append(d.owed, w)
	d.rest()
}

// returnOwed tries again to give back what the server has refused to take. The caller holds the stock.
func (d *desk) returnOwed(ctx context.Context) []error {
	d.q.mu.Lock()
	owed := d.owed
	d.owed = nil
	d.q.mu.Unlock()
	var errs []error
	for _, w := range owed {
		err := w.giveBack(ctx, w.span.First)
		switch {
		case err == nil:
			d.q.mu.Lock()
			d.dirty = true // it may come before what is claimed
			d.q.mu.Unlock()
		case zk.OutcomeOf(err) != zk.Unknown:
			d.owe(w)
		}
		errs = append(errs, err)
	}
	return errs
}

// restock puts back what could not be given back, and is ours for certain.
func (d *desk) restock(w *window, stock []stocked) {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	if d.ctx.Err() != nil {
		return // it is free when the desk's node goes
	}
	w.stock, w.giving = stock, false
	d.add(w)
	d.dirty = true // others of our claims were given back, which come first
	d.weigh()
}

// holdStock waits until nobody else claims items for the desk, or gives some back.
func (d *desk) holdStock(ctx context.Context) error {
	select {
	case d.stock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.ctx.Done():
		return context.Cause(d.ctx)
	}
}

func (d *desk) freeStock() { <-d.stock }

// unmarked returns the window whose node is to be written next, and up to where, so that as many items are marked as are in hand; nil if so
// many are. The caller holds the queue's mutex.
func (d *desk) unmarked() (*window, int) {
	want, have := d.ahead(), 0
	for _, w := range d.windows {
		n := w.ahead()
		if have+n >= want {
			break
		}
		if n < len(w.stock) {
			return w, w.stock[min(want-have, len(w.stock))-1].seq
		}
		have += n
	}
	return nil, 0
}

// mark makes known that more items are about to be handed out. If somebody else is at it, it waits until he may have.
func (d *desk) mark(ctx context.Context) error {
	d.order.Lock()
	e := d.book(true)
	if e.marked == nil {
		d.order.Unlock()
		select {
		case <-d.told:
		case <-ctx.Done():
		case <-d.ctx.Done():
		}
		return nil
	}
	answer := d.send(e.ops())
	d.order.Unlock()
	_, err := answer.Get(d.ctx)
	e.close(err == nil) // if the answer is lost the next try marks at least the same
	if errors.Is(err, zk.NoNode) {
		d.claimRemoved()
	}
	return err
}

// tell tells whoever waits to mark that something has changed.
func (d *desk) tell() {
	select {
	case d.told <- struct{}{}:
	default:
	}
}

// send sends a transaction.
func (d *desk) send(ops []zk.Op) *zk.Future[[]zk.Result] {
	b := d.sess.Batch()
	answer := b.Multi(ops...)
	b.Send()
	return answer
}

func (d *desk) nextSerial() string {
	d.serial++
	return fmt.Sprintf("%s%x", d.id, d.serial)
}

// add puts a window among those to hand out from. The caller holds the queue's mutex.
func (d *desk) add(w *window) {
	at, _ := slices.BinarySearchFunc(d.windows, w, func(a, b *window) int {
		return place{a.priority, a.segment, a.stock[0].seq}.compare(place{b.priority, b.segment, b.stock[0].seq})
	})
	d.windows = slices.Insert(d.windows, at, w)
	d.rest()
}

// close gives back what was not handed out. The desk goes when everything else is finished; what could not be given
// back is free then.
func (d *desk) close(ctx context.Context) error {
	if d.ctx.Err() != nil {
		return nil //nolint:nilerr // nothing is claimed any more
	}
	err := d.release(ctx, false)
	d.q.mu.Lock()
	d.leaving = true
	over := d.open == 0
	d.q.mu.Unlock()
	if over {
		err = errors.Join(err, d.depart().Wait(ctx))
	}
	return err
}

// depart ends the desk and removes its node, when there is nothing that it stands for.
func (d *desk) depart() *line.Removal {
	d.end(ErrClosed)
	return line.Remove(d.sess, d.node)
}
