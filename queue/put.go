package queue

// Putting items.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxInFlight is how many transactions of one PutBatch are in flight at the same time.
const maxInFlight = 4

// headroom is what an item's packet holds beside the item: the other operations of the transaction, and what failed
// attempts may add to the item.
const headroom = 8 << 10

// Put adds an item and returns its id. When it returns nil the item is on the servers' disks, and will be delivered.
//
// A connection that breaks, and a session that ends, do not make it fail: it finds out whether the item is in before
// it tries again, so that it never puts an item twice. If ctx ends first, the item may be in all the same: then the
// error is ErrUnresolved, too. It returns ErrTooLarge, with the limit, for an item that no server would accept, and
// ErrFull when Config.MaxItems are in.
//
// Given ops, it adds the item together with these writes: either all is done, or nothing. What is said above of the
// item holds for them, too. If the servers refuse one of ops, it returns that refusal, and nothing is done: errors.Is
// finds the code, and a *zk.MultiError has the index in ops. They run under the session that this Queue's client has
// at that time.
func (q *Queue) Put(ctx context.Context, m Message, ops ...zk.Op) (string, error) {
	ids, err := q.PutBatch(ctx, []Message{m}, ops...)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// PutBatch adds items in their order, in as few transactions as packets allow, and returns their ids. Each
// transaction is done whole or not at all. If it returns an error, the items whose ids it returns are in, from the
// first on; those behind them are not, unless the error is ErrUnresolved. It checks all messages before it sends
// anything: a *TooLargeError says which one no server would accept.
//
// Given ops, all items and these writes go in one transaction, as with Put. It returns ErrTooLarge if they do not fit
// into one.
func (q *Queue) PutBatch(ctx context.Context, messages []Message, ops ...zk.Op) ([]string, error) {
	s, messages, err := q.producer.sending(ctx, messages)
	var ids []string
	if err == nil {
		ids, err = q.putBatch(ctx, messages, ops)
	}
	q.producer.sent(ctx, s, ids, err)
	return ids, err
}

func (q *Queue) putBatch(ctx context.Context, messages []Message, ops []zk.Op) ([]string, error) {
	if len(ops) > 0 && len(messages) == 0 {
		return nil, q.failed("put", fmt.Errorf("%w: operations without a message", zk.BadArguments))
	}
	s := &putOp{producer: &q.producer, items: make([]encodedItem, len(messages)), ops: ops, whole: len(ops) > 0}
	ids := make([]string, len(messages))
	for i := range messages {
		p, err := q.producer.wrap(&messages[i], segment.NewID())
		if err != nil {
			if len(messages) > 1 {
				err = fmt.Errorf("%w, in message %d", err, i)
			}
			if large, ok := errors.AsType[*TooLargeError](err); ok {
				large.Message = i
			}
			return nil, q.failed("put", err)
		}
		s.items[i], ids[i] = p, p.rec.ID.String()
	}
	if err := s.send(ctx); err != nil {
		return ids[:s.in], q.failed("put", s.refusal(err))
	}
	return ids, nil
}

// producer is the part of a Queue that puts items.
type producer struct {
	reader
	sweeper  *sweeper
	receipts *attempt.Pool
	made     atomic.Int64 // receipts
	keyed    atomic.Int64 // calls of PutOnce that have added something
}

// encodedItem is an item that is to be appended to a list.
type encodedItem struct {
	rec  segment.Record
	data []byte
}

// wrap checks a message and makes an item of it.
func (p *producer) wrap(m *Message, id segment.ID) (encodedItem, error) {
	if err := m.check(); err != nil {
		return encodedItem{}, fmt.Errorf("%w: %w", zk.BadArguments, err)
	}
	item := encodedItem{rec: segment.Record{
		ID: id, Priority: m.Priority, Delay: m.Delay.Milliseconds(), Headers: m.Headers, Body: m.Body,
		Timeout: (m.Timeout + time.Millisecond - 1).Milliseconds(), Group: m.Group,
	}}
	item.data = item.rec.Encode()
	limit := p.largest()
	if m.Group != "" {
		limit /= 2 // one transaction makes it a dead letter, and the next of its group ready
	}
	if len(item.data) > limit {
		return encodedItem{}, &TooLargeError{Size: len(item.data), Limit: limit, packet: p.cfg.MaxPacket}
	}
	return item, nil
}

// putOp is a put operation.
type putOp struct {
	*producer
	items   []encodedItem
	in      int                         // how many are in, from the front
	guards  []zk.Op                     // the queue's own, before the caller's
	ops     []zk.Op                     // the caller's
	whole   bool                        // all items go in one transaction
	full    func(context.Context) error // unless nil, called when there is no room: if it fails, so does the put
	ahead   int                         // items before this one are prepared for
	receipt *attempt.Receipt
	size    int  // of the largest request of the last attempt, in bytes, about
	cut     bool // the last attempt ended with the connection
	broken  int  // attempts in a row that ended with the connection and put nothing
}

// If the connection breaks each time a large request is on it, the server presumably does not accept such requests.
const (
	maxBroken   = 10
	largePacket = 64 << 10
)

// stuck counts the attempts that put nothing.
func (s *putOp) stuck(before int) error {
	if s.in > before || s.size < largePacket {
		s.broken = 0
		return nil
	}
	if s.broken++; s.broken < maxBroken {
		return nil
	}
	return s.stuckAt(s.size)
}

// stuckAt says that the connection broke maxBroken times in a row under a request of that size.
func (p *producer) stuckAt(size int) error {
	return fmt.Errorf("%w: the connection broke %d times in a row under a request of about %d bytes; "+
		"do the servers accept Config.MaxPacket, %d bytes (their jute.maxbuffer)?",
		ErrTooLarge, maxBroken, size, p.cfg.MaxPacket)
}

// inFlight is a transaction of a put operation that has no answer yet.
type inFlight struct {
	txn    *segment.Txn
	stamp  string
	to     int // the first item behind it
	answer *zk.Future[[]zk.Result]
}

// guardError says that the server refused an operation of the caller's, and did nothing.
type guardError struct{ failed *zk.MultiError }

func (e guardError) Error() string { return e.failed.Error() }
func (e guardError) Unwrap() error { return e.failed.Err }

// refusal returns what to tell the caller of a put that has failed: of an operation of the caller's, its index there.
func (s *putOp) refusal(err error) error {
	refused, ok := errors.AsType[guardError](err)
	if !ok {
		return err
	}
	return ofCaller(refused.failed, 1+len(s.guards), len(s.ops))
}

// ofCaller returns the error of a transaction of which n operations are the caller's, behind so many of ours, with the
// index that it has among those.
func ofCaller(failed *zk.MultiError, before, n int) error {
	if failed.Index < before || failed.Index >= before+n {
		return failed
	}
	e := *failed
	e.Index -= before
	e.Results = nil
	if len(failed.Results) >= before+n {
		e.Results = failed.Results[before : before+n]
	}
	return &e
}

// send puts the items until all are in.
func (s *putOp) send(ctx context.Context) error {
	defer func() { s.receipts.Put(s.receipt) }()
	return s.do(ctx, func(sess *zk.Session) error {
		for s.in < len(s.items) {
			before := s.in
			s.size, s.cut = 0, false
			if err := s.sendAll(ctx, sess); err != nil {
				return err // what was in flight is accounted for, or nothing was
			}
			if s.cut {
				if err := s.stuck(before); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// sendAll sends transactions one behind the other, until all items are in or something goes wrong. In any case it
// knows what is in when it returns, unless ctx has ended.
func (s *putOp) sendAll(ctx context.Context, sess *zk.Session) error {
	if s.receipt == nil {
		r, err := s.receipts.Get(ctx, sess)
		if err != nil {
			return err
		}
		s.receipt = r
	}
	if err := s.room(ctx, sess, len(s.items)-s.in, s.full); err != nil {
		return err
	}
	var pending []*inFlight
	var last *segment.Txn
	next := s.in
	s.ahead = next
	for next < len(s.items) || len(pending) > 0 {
		for next < len(s.items) && len(pending) < maxInFlight {
			f, err := s.start(ctx, sess, last, next, len(pending))
			if err != nil {
				// The receipt must not be used again before those in flight have their answers.
				return s.awaitPending(ctx, pending, err)
			}
			pending = append(pending, f)
			last, next = f.txn, f.to
		}
		f := pending[0]
		results, err := f.answer.Get(ctx)
		if err != nil {
			return s.awaitPending(ctx, pending, err)
		}
		s.committed(ctx, f, results)
		pending = pending[1:]
	}
	return nil
}

// start sends the next transaction: as many items as fit.
func (s *putOp) start(ctx context.Context, sess *zk.Session, last *segment.Txn, from, ahead int) (*inFlight, error) {
	op, stamp := s.receipt.Stamp(ahead)
	p := s.layout.store.NewTxn(slices.Concat([]zk.Op{op}, s.guards, s.ops)...)
	if last != nil {
		p.Follow(last)
	}
	to := from
	for to < len(s.items) {
		item := &s.items[to]
		size := len(item.data)
		if item.rec.Group != "" {
			size += s.groupSize()
		}
		if to >= s.ahead {
			n, err := s.lookAhead(ctx, sess, p, s.items[to:])
			if err != nil {
				return nil, err
			}
			s.ahead = to + n
		}
		if (p.Items() > 0 || s.whole) && !p.Fits(s.target(&item.rec), size) {
			if s.whole {
				const text = "%w: %d of %d messages and %d operations fill a transaction (Config.MaxPacket is %d)"
				return nil, fmt.Errorf(text, ErrTooLarge, p.Items(), len(s.items), len(s.ops), s.cfg.MaxPacket)
			}
			break
		}
		c, err := s.place(ctx, sess, p, &item.rec)
		if err != nil {
			return nil, err
		}
		p.Append(c, item.data)
		to++
	}
	s.size = max(s.size, p.Size())
	b := sess.Batch()
	f := &inFlight{txn: p, stamp: stamp, to: to, answer: b.Multi(p.Ops()...)}
	b.Send()
	return f, nil
}

// committed records that a transaction was done.
func (s *putOp) committed(ctx context.Context, f *inFlight, results []zk.Result) {
	f.txn.Done(results)
	if len(results) > 0 {
		s.clock.saw(results[0].Stat.Mtime)
	}
	s.receipt.Done()
	s.record(ctx, f)
}

func (s *putOp) record(ctx context.Context, f *inFlight) {
	n := f.to - s.in
	s.in = f.to
	if hook := s.cfg.Hooks.Put; hook != nil {
		hook(ctx, s.layout.root, n)
	}
}

// awaitPending deals with the failure of the first of the pending transactions, or with cause if none has failed. It
// returns nil if the caller is to look at what is left and go on, or if nothing is left: a caller whose ctx ended
// just when the answer came has its answer.
func (s *putOp) awaitPending(ctx context.Context, pending []*inFlight, cause error) error {
	unknown := false
	var first error
	for _, f := range pending {
		results, err := f.answer.Get(ctx)
		switch {
		case err == nil && first == nil:
			s.committed(ctx, f, results)
			continue
		case first == nil:
			first = err
		}
		unknown = unknown || err != nil && zk.OutcomeOf(err) == zk.Unknown
	}
	if first == nil && s.in == len(s.items) {
		return nil
	}
	if first == nil {
		return cause
	}
	if unknown {
		if err := s.resolve(ctx, pending); err != nil {
			return err
		}
		if zk.OutcomeOf(first) == zk.Unknown {
			s.cut = true
			return nil
		}
	}
	return s.refused(pending[0].txn, pending, first)
}

// refused deals with a transaction that the server, or the client, has refused: nothing of it was done, nor of those
// behind it.
func (s *putOp) refused(p *segment.Txn, pending []*inFlight, err error) error {
	failed, ok := errors.AsType[*zk.MultiError](err)
	switch {
	case !ok:
		return err
	case failed.Index == 0:
		// Our receipt was swept away, or another client has written to it. It tells nothing any more, and no
		// transaction needs it.
		s.receipt = nil
		s.recheckNodes()
		return nil
	case failed.Index < 1+len(s.guards)+len(s.ops):
		return guardError{failed}
	case s.groupChanged(failed, p):
		return nil
	}
	stale := false
	for _, f := range pending {
		stale = f.txn.Stale(err) || stale
	}
	if stale {
		return nil
	}
	return err
}

// resolve finds out how many of the transactions without an answer were done, and makes sure that no other ever will
// be.
func (s *putOp) resolve(ctx context.Context, pending []*inFlight) error {
	stamps := make([]string, len(pending))
	for i, f := range pending {
		stamps[i] = f.stamp
	}
	done, err := s.receipt.Resolve(ctx, s.client.Session, stamps, s.clock.saw)
	for _, f := range pending[:done] {
		if f.to > s.in {
			s.record(ctx, f)
		}
	}
	if err != nil {
		return s.lost(err)
	}
	return nil
}

// lost gives up on a put whose outcome is unknown. The receipt must not be used again: a transaction that is still in
// flight would take a later one for its own.
func (s *putOp) lost(err error) error {
	s.receipt = nil
	return unresolvedError{err}
}
