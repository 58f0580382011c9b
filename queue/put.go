package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// maxFlights is how many transactions of one PutBatch are under way at the same time.
const maxFlights = 4

// headroom is what an item's packet holds beside the item: the other operations of the transaction, and what it may gather in failed attempts.
const headroom = 8 << 10

// Put adds an item and returns its id. When it returns nil the item is on the servers' disks, and will be delivered.
//
// A connection that breaks, and a session that ends, do not make it fail: it finds out whether the item is in before it tries again, so that
// nothing is put twice. If ctx ends first, the item may be in all the same: then the error is ErrUnresolved, too. It returns ErrTooLarge,
// with the limit, for what no server would take, and ErrFull when Config.MaxItems are there.
func (q *Queue) Put(ctx context.Context, body []byte, opts PutOptions) (string, error) {
	ids, err := q.PutBatch(ctx, []Message{{Body: body, PutOptions: opts}})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// PutBatch adds items in their order, in as few transactions as packets allow, and returns their ids. Each transaction is done whole or not at
// all. If it returns an error, the items whose ids it returns are in: the first so many; those behind them are not, unless the error is
// ErrUnresolved. All messages are checked before anything is sent: a *TooLargeError says which one no server would take.
func (q *Queue) PutBatch(ctx context.Context, messages []Message) ([]string, error) {
	s := &shipment{q: q, items: make([]parcel, len(messages))}
	ids := make([]string, len(messages))
	for i := range messages {
		p, err := q.wrap(&messages[i], newID())
		if err != nil {
			if len(messages) > 1 {
				err = fmt.Errorf("message %d: %w", i, err)
			}
			if large, ok := errors.AsType[*TooLargeError](err); ok {
				large.Message = i
			}
			return nil, q.failed("put", err)
		}
		s.items[i], ids[i] = p, p.rec.name()
	}
	if err := s.send(ctx); err != nil {
		return ids[:s.in], q.failed("put", err)
	}
	return ids, nil
}

// parcel is an item on its way to its chain.
type parcel struct {
	rec  record
	data []byte
}

// wrap checks a message and makes an item of it.
func (q *Queue) wrap(m *Message, id [16]byte) (parcel, error) {
	if err := m.check(); err != nil {
		return parcel{}, err
	}
	p := parcel{rec: record{id: id, priority: m.Priority, delay: m.Delay.Milliseconds(), headers: m.Headers, body: m.Body}}
	p.data = p.rec.encode()
	if limit := q.largest(); len(p.data) > limit {
		return parcel{}, &TooLargeError{Size: len(p.data), Limit: limit, packet: q.cfg.MaxPacket}
	}
	return p, nil
}

// largest returns how large an item's data may be, in bytes.
func (q *Queue) largest() int { return q.cfg.MaxPacket - headroom - 8*(len(q.root)+q.aclSize()) }

// target returns the chain that an item goes to.
func (q *Queue) target(r *record) *chain {
	if r.delay == 0 && r.due == 0 {
		return q.line(r.priority)
	}
	due := r.due
	if due == 0 {
		due = q.clock.now() + r.delay
	}
	return q.bucket(bucketFor(due, r.delay))
}

// shipment is a put under way.
type shipment struct {
	q       *Queue
	items   []parcel
	in      int // how many are in, from the front
	guards  []zk.Op
	full    func(context.Context) error // unless nil, asked when there is no room: an error of its ends the put
	receipt *receipt
	size    int  // of the largest request of the last attempt, about, in bytes
	cut     bool // the last attempt ended with the connection
	broken  int  // attempts in a row that ended with the connection and put nothing
}

// A connection that breaks whenever a large request is on it is taken for a server that does not accept such requests.
const (
	maxBroken   = 10
	largePacket = 64 << 10
)

// stuck counts the attempts that put nothing.
func (s *shipment) stuck(before int) error {
	if s.in > before || s.size < largePacket {
		s.broken = 0
		return nil
	}
	if s.broken++; s.broken < maxBroken {
		return nil
	}
	return fmt.Errorf("%w: the connection broke %d times in a row under a request of about %d bytes; do the servers accept Config.MaxPacket, %d bytes (their jute.maxbuffer)?",
		ErrTooLarge, s.broken, s.size, s.q.cfg.MaxPacket)
}

// flight is one transaction of it, without an answer yet.
type flight struct {
	plan   *plan
	stamp  string
	to     int // the first item behind it
	answer *zk.Future[[]zk.Result]
}

// guardError says that an operation of the caller's was refused, and nothing was done.
type guardError struct{ failed *zk.MultiError }

func (e guardError) Error() string { return e.failed.Error() }
func (e guardError) Unwrap() error { return e.failed.Err }

// send puts the items until all are in.
func (s *shipment) send(ctx context.Context) error {
	defer func() { s.q.receipts.put(s.receipt) }()
	for s.in < len(s.items) {
		sess, err := s.q.session(ctx)
		if err != nil {
			return err
		}
		before := s.in
		s.size, s.cut = 0, false
		err = s.fly(ctx, sess)
		switch {
		case err == nil && s.cut:
			if err := s.stuck(before); err != nil {
				return err
			}
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, ErrFull), errors.Is(err, ErrUnresolved):
			return err
		case sess.Err() != nil, errors.Is(err, zk.ErrConnectionLost):
			// What was under way is accounted for, or nothing was.
		case s.q.missing(err):
		default:
			return err
		}
	}
	return nil
}

// missing reports whether a node of the queue's was not there. The next call of session makes it.
func (q *Queue) missing(err error) bool {
	if !errors.Is(err, zk.NoNode) {
		return false
	}
	if _, ok := errors.AsType[guardError](err); ok {
		return false
	}
	q.forget()
	return true
}

// fly sends transactions one behind the other, until all items are in or something goes wrong. Whatever that is, it knows what is in when it
// returns, unless ctx has ended.
func (s *shipment) fly(ctx context.Context, sess *zk.Session) error {
	if s.receipt == nil {
		r, err := s.q.receipts.get(ctx, sess)
		if err != nil {
			return err
		}
		s.receipt = r
	}
	if err := s.q.room(ctx, sess, len(s.items)-s.in, s.full); err != nil {
		return err
	}
	var flights []*flight
	var last *plan
	next := s.in
	for next < len(s.items) || len(flights) > 0 {
		for next < len(s.items) && len(flights) < maxFlights {
			f, err := s.start(ctx, sess, last, next, s.receipt.version+int32(len(flights)))
			if err != nil {
				// Those under way are awaited before anybody may use the receipt again.
				return s.land(ctx, flights, err)
			}
			flights = append(flights, f)
			last, next = f.plan, f.to
		}
		f := flights[0]
		results, err := f.answer.Get(ctx)
		if err != nil {
			return s.land(ctx, flights, err)
		}
		s.arrived(ctx, f, results)
		flights = flights[1:]
	}
	return nil
}

// start sends the next transaction: as many items as fit.
func (s *shipment) start(ctx context.Context, sess *zk.Session, last *plan, from int, version int32) (*flight, error) {
	id := newID()
	stamp := string(id[:])
	guards := append([]zk.Op{zk.SetOp(s.receipt.path, id[:], version)}, s.guards...)
	p := s.q.newPlan(guards...)
	if last != nil {
		p.tails = last.tails // as the one before leaves them
	}
	to := from
	for to < len(s.items) {
		item := &s.items[to]
		c := p.same(s.q.target(&item.rec))
		if p.items > 0 && !p.fits(c, len(item.data)) {
			break
		}
		if err := p.at(ctx, sess, c); err != nil {
			return nil, err
		}
		p.append(c, item.data)
		to++
	}
	p.ring()
	s.size = max(s.size, p.size)
	b := sess.Batch()
	f := &flight{plan: p, stamp: stamp, to: to, answer: b.Multi(p.ops...)}
	b.Send()
	return f, nil
}

// arrived books that a transaction was done.
func (s *shipment) arrived(ctx context.Context, f *flight, results []zk.Result) {
	f.plan.done(results)
	if len(results) > 0 {
		s.q.clock.saw(results[0].Stat.Mtime)
	}
	s.receipt.version++
	s.book(ctx, f)
}

func (s *shipment) book(ctx context.Context, f *flight) {
	n := f.to - s.in
	s.in = f.to
	if hook := s.q.cfg.Hooks.Put; hook != nil {
		hook(ctx, n)
	}
}

// land deals with the failure of the first of flights, or with cause if none has failed. It returns nil if the caller is to look at what is left
// and go on, or nothing is left: whoever has stopped waiting just when the answer came has his answer.
func (s *shipment) land(ctx context.Context, flights []*flight, cause error) error {
	unknown := false
	var first error
	for _, f := range flights {
		results, err := f.answer.Get(ctx)
		switch {
		case err == nil && first == nil:
			s.arrived(ctx, f, results)
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
		if err := s.resolve(ctx, flights); err != nil {
			return err
		}
		if zk.OutcomeOf(first) == zk.Unknown {
			s.cut = true
			return nil
		}
	}
	return s.refused(flights[0].plan, flights, first)
}

// refused deals with a transaction that the server, or this side, has refused: nothing of it was done, nor of those behind it.
func (s *shipment) refused(p *plan, flights []*flight, err error) error {
	failed, ok := errors.AsType[*zk.MultiError](err)
	switch {
	case !ok:
		return err
	case failed.Index == 0:
		// Our receipt was swept away, or somebody has written to it. It tells nothing any more; nothing is owed to it either.
		s.receipt = nil
		s.q.forget()
		return nil
	case failed.Index < p.guards:
		return guardError{failed}
	}
	stale := false
	for _, f := range flights {
		stale = f.plan.stale(err) || stale
	}
	if stale {
		return nil
	}
	return err
}

// resolve finds out how many of the transactions that had no answer were done, and makes sure that no other ever will be.
//
// If its own write gets no answer it is repeated. Should it have been done, the repetition is refused and finds the receipt empty: that it
// could be done says that no transaction was.
func (s *shipment) resolve(ctx context.Context, flights []*flight) error {
	for {
		sess, err := s.q.client.Session(ctx)
		if err != nil {
			return s.lost(err)
		}
		stat, err := sess.Set(ctx, s.receipt.path, nil, s.receipt.version)
		if errors.Is(err, zk.BadVersion) {
			err = s.read(ctx, sess, flights)
			if err == nil {
				continue
			}
		}
		switch {
		case err == nil:
			s.receipt.version = stat.Version
			s.q.clock.saw(stat.Mtime)
			return nil
		case errors.Is(err, errFenced):
			return nil
		case errors.Is(err, zk.NoNode):
			s.receipt = nil
			return fmt.Errorf("%w: its receipt is gone", ErrUnresolved)
		case ctx.Err() != nil:
			return s.lost(err)
		case sess.Err() != nil, errors.Is(err, zk.ErrConnectionLost):
		default:
			return s.lost(err)
		}
	}
}

var errFenced = errors.New("queue: the receipt is fenced")

// read books what the receipt says.
func (s *shipment) read(ctx context.Context, sess *zk.Session, flights []*flight) error {
	// A server that lags behind may not know yet what the one that refused has known.
	if err := sess.Sync(ctx, s.receipt.path); err != nil {
		return err
	}
	data, stat, err := sess.Get(ctx, s.receipt.path)
	if err != nil {
		return err
	}
	s.receipt.version = stat.Version
	if len(data) == 0 {
		return errFenced
	}
	for _, f := range flights {
		if f.stamp == string(data) && f.to > s.in {
			s.book(ctx, f)
		}
	}
	return nil
}

// lost gives up on a put whose outcome is not known. The receipt must not be used again: what is under way would take it for its own.
func (s *shipment) lost(err error) error {
	s.receipt = nil
	return fmt.Errorf("%w: %w", ErrUnresolved, err)
}
