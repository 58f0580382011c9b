package barrier

// A party of Rounds.

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Party is a party of Rounds. It belongs to one session. Its methods may be called from any goroutine; one that is
// called while another is under way waits for it.
type Party struct {
	rounds *Rounds
	sess   *zk.Session
	ctx    context.Context //nolint:containedctx // the party's own
	end    context.CancelCauseFunc
	name   string // of its nodes
	tree   int64  // the czxid of the path that it has joined at; it does not take part if that is made anew

	turn    chan struct{} // has one slot: the goroutine that has taken it owns the fields below
	rec     *record       // as last read
	round   int64         // that it arrives at next, or has arrived at and waits for
	arrived bool          // at round
	asked   bool          // to arrive at round, and does not know what has become of that
	dir     string        // of its node
	watch   *zk.Watch     // on the path; nil if there is none that has not fired
	left    bool

	sentry  sync.WaitGroup   // of the goroutine that looks after the dead
	relieve func()           // ends it
	removal *attempt.Removal // of its node among the sentries; set before sentry is done
}

func newParty(r *Rounds, sess *zk.Session) *Party {
	p := &Party{rounds: r, sess: sess, name: attempt.NewGUID(), turn: make(chan struct{}, 1)}
	p.ctx, p.end = context.WithCancelCause(sess.Context())
	p.turn <- struct{}{}
	return p
}

// Context returns the party's context. It ends when the session does, with zk.ErrLost, zk.ErrExpired or zk.ErrClosed as
// its cause; with ErrDeleted when Arrive finds that another client has deleted the party's node; and with ErrLeft when
// Leave is called. Once the session has ended or the node is gone, the others go on without this party.
func (p *Party) Context() context.Context { return p.ctx }

// path returns the path of the party's node in a directory.
func (p *Party) path(dir string) string { return p.rounds.child(dir) + "/" + p.name }

// take waits until no other call is under way.
func (p *Party) take(ctx context.Context) error {
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
		return p.rounds.failed(context.Cause(ctx))
	}
}

func (p *Party) give() { p.turn <- struct{}{} }

// Arrive says that the party has done its part of the round, and waits until the round is over. It returns the round's
// number, and nil if the round was passed: then all living parties had arrived at it. If the round failed, the error
// wraps ErrPartyLost. All parties get the same of a round.
//
// If ctx ends first, Arrive returns ctx's cause. The party has arrived then, or may have; call Arrive again to wait on.
// If the session has ended, or another client has deleted the party's node, it returns ErrNotJoined, unless the round
// is known to be over: the other parties go on without this one, and Rounds.Outcome tells what became of the round.
func (p *Party) Arrive(ctx context.Context) (round int64, err error) {
	if err := p.take(ctx); err != nil {
		return 0, err
	}
	defer p.give()
	if p.left {
		return p.round, p.rounds.failed(fmt.Errorf("%w: %w", ErrNotJoined, ErrLeft))
	}
	round = p.round
	o, err := p.pass(ctx)
	switch {
	case err != nil:
		return round, p.rounds.failed(fmt.Errorf("round %d: %w", round, err))
	case o.Failed:
		return round, p.rounds.failed(fmt.Errorf("round %d failed: %w (%d of %d)",
			round, ErrPartyLost, o.Lost, p.rounds.cfg.Parties))
	default:
		return round, nil
	}
}

// pass arrives at the round and waits for its end.
func (p *Party) pass(ctx context.Context) (Outcome, error) {
	for (p.rec.Round == p.round || p.asked) && !p.arrived {
		if err := p.arrive(ctx); err != nil {
			if err := p.again(ctx, err); err != nil {
				return p.missed(ctx, err)
			}
		}
	}
	for p.rec.Round == p.round {
		if err := p.await(ctx); err != nil {
			if err := p.again(ctx, err); err != nil {
				return p.missed(ctx, err)
			}
		}
	}
	return p.over()
}

// over returns the outcome of the party's round, and goes on to the next. A round that was passed without this party is
// not its own any more.
func (p *Party) over() (Outcome, error) {
	o, err := p.rec.outcome(p.round)
	if err == nil && !p.arrived && !o.Failed {
		return o, ErrNotJoined
	}
	p.round, p.arrived, p.asked = p.round+1, false, false
	return o, err
}

// again returns nil if the same makes sense again after err.
func (p *Party) again(ctx context.Context, err error) error {
	if errors.Is(err, ErrNotJoined) {
		p.end(ErrDeleted)
		return err
	}
	return attempt.Again(ctx, p.sess, err)
}

// missed returns the outcome of the party's round if the party is lost and the round is over, and otherwise err. It
// asks under the client's next session.
func (p *Party) missed(ctx context.Context, err error) (Outcome, error) {
	if ctx.Err() != nil || p.sess.Err() == nil && !errors.Is(err, ErrNotJoined) {
		return Outcome{}, err
	}
	rec, readErr := attempt.Run(ctx, p.rounds.client, func(sess *zk.Session) (*record, error) {
		return p.rounds.read(ctx, sess)
	})
	if readErr == nil && rec != nil && rec.czxid == p.tree && rec.Round > p.round {
		p.rec = rec
		return p.over()
	}
	if errors.Is(err, ErrNotJoined) {
		return Outcome{}, err
	}
	return Outcome{}, fmt.Errorf("%w: %w", ErrNotJoined, err)
}

// arrive moves the party's node, or finds that the round is over. To do so twice, or late, is impossible: the
// transaction belongs to one version of the record and to one place of the node.
func (p *Party) arrive(ctx context.Context) error {
	if p.asked {
		return p.find(ctx)
	}
	r, to := p.rounds, p.rec.Arrived
	b := p.sess.Batch()
	moved := b.Multi(
		zk.CheckOp(r.path, p.rec.version),
		zk.DeleteOp(p.path(p.dir), -1),
		zk.CreateNodeOp(r.node(p.path(to), r.data, zk.Ephemeral)))
	var behind []*zk.Future[zk.Existence]
	for _, dir := range p.rec.Behind {
		behind = append(behind, b.Exists(r.child(dir)))
	}
	read := p.askRecord(b)
	b.Send()
	_, err := moved.Get(ctx)
	readErr := p.readRecord(ctx, read)
	p.asked = err != nil && zk.OutcomeOf(err) == zk.Unknown
	switch {
	case err == nil:
		p.arrived, p.dir = true, to
		last := true
		for _, f := range behind {
			e, err := f.Get(ctx)
			last = last && (err != nil || e.Stat.NumChildren == 0)
		}
		if last {
			err = p.settle(ctx)
		}
		return errors.Join(err, readErr)
	case errors.Is(err, zk.BadVersion):
		return p.reread(ctx)
	case errors.Is(err, zk.NoNode):
		version, dir := p.rec.version, p.dir
		if err := p.find(ctx); err != nil || p.rec.version != version || p.dir != dir {
			return err
		}
		return fmt.Errorf("another client deleted %s", r.child(to))
	case p.asked && ctx.Err() == nil && p.sess.Err() == nil:
		return p.find(ctx)
	case p.asked:
		return errors.Join(err, p.settle(ctx))
	default:
		return err
	}
}

// settle ends the round if it is over. If ctx ends first that goes on in the background: no other party would do it,
// if this one was the last to arrive.
func (p *Party) settle(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = p.rounds.settle(ctx, p.sess, false)
	}
	if ctx.Err() != nil {
		attempt.RemoveBy(func() error { //nolint:contextcheck // goes on after ctx
			later := p.sess.Context()
			if _, _, err := p.locate(later); err != nil { // behind the arrival
				return err
			}
			return p.rounds.settle(later, p.sess, false)
		})
	}
	return err
}

// askRecord adds to b the question for the record, with a watch, unless there is one that has not fired.
func (p *Party) askRecord(b *zk.Batch) *zk.Future[zk.WatchedData] {
	if p.watch != nil {
		return nil
	}
	return b.GetW(p.rounds.path)
}

// decode returns the record that the path holds, or ErrNotJoined if the path was made anew since the party joined: what
// happens there now is not of its rounds.
func (p *Party) decode(data []byte, stat zk.Stat) (*record, error) {
	if stat.Czxid != p.tree {
		return nil, p.noPath()
	}
	return decodeRecord(p.rounds.path, data, stat)
}

func (p *Party) readRecord(ctx context.Context, f *zk.Future[zk.WatchedData]) error {
	if f == nil {
		return nil
	}
	w, err := f.Get(ctx)
	if err != nil {
		f.Abandon()
		if errors.Is(err, zk.NoNode) {
			return p.noPath()
		}
		return err
	}
	rec, err := p.decode(w.Data, w.Stat)
	if err != nil {
		w.Watch.Close()
		return err
	}
	p.rec, p.watch = rec, w.Watch
	return nil
}

// reread reads the record anew, and sets the watch.
func (p *Party) reread(ctx context.Context) error {
	if p.watch != nil {
		p.watch.Close()
		p.watch = nil
	}
	b := p.sess.Batch()
	f := p.askRecord(b)
	b.Send()
	return p.readRecord(ctx, f)
}

// await waits until the record changes, and reads it: one event and one read.
func (p *Party) await(ctx context.Context) error {
	if p.watch == nil {
		return p.reread(ctx)
	}
	if _, err := p.watch.Next(ctx); err != nil {
		return err
	}
	return p.reread(ctx)
}
