package barrier

// A party of Rounds.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/line"
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

	turn    chan struct{} // has one slot: whoever has taken it owns the fields below
	rec     *record       // as last read
	round   int64         // that it arrives at next, or has arrived at and waits for
	arrived bool          // at round
	dir     string        // of its node
	watch   *zk.Watch     // on the path; nil if there is none that has not fired
	left    bool

	sentry  sync.WaitGroup // of the goroutine that looks after the dead
	relieve func()         // ends it
	removal *line.Removal  // of its node among the sentries; set before sentry is done
}

func newParty(r *Rounds, sess *zk.Session) *Party {
	p := &Party{rounds: r, sess: sess, name: line.NewGUID(), turn: make(chan struct{}, 1)}
	p.ctx, p.end = context.WithCancelCause(sess.Context())
	p.turn <- struct{}{}
	return p
}

// Context returns the party's context. It ends when the session does, with zk.ErrLost, zk.ErrExpired or zk.ErrClosed as
// its cause, and with ErrLeft when Leave is called. Once the session has ended, the others go on without this party.
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

// join creates the party's nodes. If it returns an error there are none, or their removal goes on in the background.
func (p *Party) join(ctx context.Context) error {
	r := p.rounds
	for {
		if err := r.settleBefore(ctx, p.sess); err != nil {
			return err
		}
		rec, err := r.prepare(ctx, p.sess)
		if err != nil {
			return err
		}
		dir := rec.Behind[0]
		_, err = p.sess.Multi(ctx,
			zk.CheckOp(r.path, rec.version),
			zk.CreateNodeOp(r.node(p.path(registryName), r.data, zk.Persistent)),
			zk.CreateNodeOp(r.node(p.path(dir), r.data, zk.Ephemeral)))
		if err != nil && zk.OutcomeOf(err) == zk.Unknown {
			err = p.settleJoin(ctx, rec, dir, err)
		}
		switch {
		case err == nil:
			p.rec, p.round, p.dir = rec, rec.Round, dir
			return nil
		case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NoNode), errors.Is(err, errAgain):
		default:
			return err
		}
	}
}

// settleBefore ends a round that is over, before a party joins: all parties may have died in it.
func (r *Rounds) settleBefore(ctx context.Context, sess *zk.Session) error {
	if _, err := r.prepare(ctx, sess); err != nil {
		return err
	}
	return r.settle(ctx, sess, true)
}

// settleJoin finds out whether a join without a reply was done, and returns errAgain if it was not and never will be. If
// it cannot find out, it removes the nodes in the background.
func (p *Party) settleJoin(ctx context.Context, rec *record, dir string, err error) error {
	if p.sess.Err() != nil {
		return p.sess.Err() // the node ends with its session, and the party is lost
	}
	if ctx.Err() == nil {
		var there bool
		if there, err = p.settled(ctx, rec, dir); err == nil {
			if there {
				return nil
			}
			return errAgain
		}
	}
	line.RemoveBy(func() error {
		later := p.sess.Context()
		there, err := p.settled(later, rec, dir)
		if err != nil || !there {
			return nil //nolint:nilerr // the session has ended
		}
		return p.remove(later)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// settled reports whether a join was done. It sees to it that it is not done any more if not, by writing to the node
// whose version the join depends on.
func (p *Party) settled(ctx context.Context, rec *record, dir string) (bool, error) {
	r := p.rounds
	return ask(ctx, p.sess, func() (bool, error) {
		_, err := p.sess.Set(ctx, r.path, rec.encode(), rec.version)
		if err != nil && !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NoNode) {
			return false, err
		}
		_, exists, err := p.sess.Exists(ctx, p.path(dir))
		return exists, err
	})
}

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
	for p.rec.Round == p.round && !p.arrived {
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
	p.round, p.arrived = p.round+1, false
	return o, err
}

// again returns nil if the same makes sense again after err.
func (p *Party) again(ctx context.Context, err error) error {
	if errors.Is(err, ErrNotJoined) {
		return err
	}
	return line.AwaitRetry(ctx, p.sess, err)
}

// missed returns the outcome of the party's round if the party is lost and the round is over, and otherwise err. It asks
// under the client's next session.
func (p *Party) missed(ctx context.Context, err error) (Outcome, error) {
	if ctx.Err() != nil || p.sess.Err() == nil && !errors.Is(err, ErrNotJoined) {
		return Outcome{}, err
	}
	rec, readErr := line.Attempt(ctx, p.rounds.client, func(sess *zk.Session) (*record, error) {
		return p.rounds.read(ctx, sess)
	})
	if readErr == nil && rec != nil && rec.Round > p.round {
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
	case errors.Is(err, zk.NoNode), zk.OutcomeOf(err) == zk.Unknown && ctx.Err() == nil && p.sess.Err() == nil:
		return p.find(ctx)
	case zk.OutcomeOf(err) == zk.Unknown:
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
		line.RemoveBy(func() error {
			later := p.sess.Context()
			if _, _, err := p.locate(later); err != nil { // behind the arrival
				return err
			}
			return p.rounds.settle(later, p.sess, false)
		})
	}
	return err
}

// locate returns the record, and the directory that the party's node is in, after what was asked for before. The
// directory is empty if the node is not there.
func (p *Party) locate(ctx context.Context) (*record, string, error) {
	r := p.rounds
	for {
		rec, err := ask(ctx, p.sess, func() (*record, error) {
			b := p.sess.Batch()
			passed, data := line.Barrier(b, r.path), b.Get(r.path)
			b.Send()
			if err := passed(ctx); err != nil {
				return nil, err
			}
			d, err := data.Get(ctx)
			if err != nil {
				return nil, err
			}
			return decodeRecord(r.path, d.Data, d.Stat)
		})
		if errors.Is(err, zk.NoNode) {
			return nil, "", p.noPath()
		}
		if err != nil {
			return nil, "", err
		}
		dir, same, err := p.search(ctx, rec)
		if err != nil || same {
			return rec, dir, err
		}
	}
}

func (p *Party) noPath() error {
	return fmt.Errorf("%w: another client deleted %s", ErrNotJoined, p.rounds.path)
}

// search looks for the party's node in the directories of rec, and reports whether the record was the same afterwards.
func (p *Party) search(ctx context.Context, rec *record) (dir string, same bool, err error) {
	r := p.rounds
	type found struct {
		dir  string
		same bool
	}
	f, err := ask(ctx, p.sess, func() (f found, err error) {
		dirs := append(slices.Clone(rec.Behind), rec.Arrived)
		b := p.sess.Batch()
		seen := make([]*zk.Future[zk.Existence], len(dirs))
		for i, dir := range dirs {
			seen[i] = b.Exists(p.path(dir))
		}
		now := b.Exists(r.path)
		b.Send()
		for i, dir := range dirs {
			e, err := seen[i].Get(ctx)
			if err != nil {
				return f, err
			}
			if e.Exists {
				f.dir = dir
			}
		}
		e, err := now.Get(ctx)
		f.same = e.Stat.Version == rec.version
		return f, err
	})
	return f.dir, f.same, err
}

// find finds out where the party's node is, after a reply was lost.
func (p *Party) find(ctx context.Context) error {
	rec, dir, err := p.locate(ctx)
	if err != nil {
		return err
	}
	p.rec = rec
	if dir == "" {
		return fmt.Errorf("%w: another client deleted its node", ErrNotJoined)
	}
	p.dir = dir
	if rec.Round > p.round {
		p.arrived = p.arrived || dir == arrivals(p.round)
		return nil
	}
	if dir == rec.Arrived {
		p.arrived = true
		return p.settle(ctx)
	}
	return nil
}

// askRecord adds to b the question for the record, with a watch, unless there is one that has not fired.
func (p *Party) askRecord(b *zk.Batch) *zk.Future[zk.WatchedData] {
	if p.watch != nil {
		return nil
	}
	return b.GetW(p.rounds.path)
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
	rec, err := decodeRecord(p.rounds.path, w.Data, w.Stat)
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

// Leave ends the party: the others do not wait for it any more, and it is not counted as lost. With FailRound they wait
// for another one to join. If Leave returns an error, the nodes are still being removed in the background; if the
// session ends before that is done, the party counts as lost. A second Leave does nothing.
func (p *Party) Leave(ctx context.Context) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.give()
	if p.left {
		return nil
	}
	p.left = true
	p.end(ErrLeft)
	if p.watch != nil {
		p.watch.Close()
	}
	removal := line.RemoveBy(func() error {
		// The node among the sentries goes last: its end tells another party to look.
		err := p.remove(p.sess.Context())
		p.relieve()
		p.sentry.Wait()
		return errors.Join(err, p.removal.Wait(p.sess.Context()))
	})
	err := removal.Wait(ctx)
	switch {
	case p.sess.Err() != nil:
		return p.rounds.failed(fmt.Errorf("%w: %w", ErrNotJoined, p.sess.Err()))
	case err != nil:
		return p.rounds.failed(err)
	default:
		return nil
	}
}

// remove removes the party's nodes, wherever they are, and ends the round if it was the last that others waited for.
func (p *Party) remove(ctx context.Context) error {
	for {
		_, dir, err := p.locate(ctx)
		if errors.Is(err, ErrNotJoined) {
			return nil // the path is gone, with all that was below it
		}
		if err != nil {
			return err
		}
		ops := []zk.Op{zk.DeleteOp(p.path(registryName), -1)}
		if dir != "" {
			ops = append(ops, zk.DeleteOp(p.path(dir), -1))
		}
		_, err = p.sess.Multi(ctx, ops...)
		switch {
		case err == nil:
			return p.rounds.settle(ctx, p.sess, false)
		case errors.Is(err, zk.NoNode) && dir == "":
			return nil
		case errors.Is(err, zk.NoNode):
		default:
			if err := line.AwaitRetry(ctx, p.sess, err); err != nil {
				return err
			}
		}
	}
}

// watchOver starts the goroutine that ends rounds whose last missing parties have died or left, while this party is the
// first among the sentries. It ends with the party's session, or when relieve is called.
func (p *Party) watchOver(own *line.Own, sentries *line.Line) {
	ctx, cancel := context.WithCancel(p.sess.Context())
	p.relieve = cancel
	p.sentry.Go(func() {
		for {
			err := own.Await(ctx)
			if err == nil {
				err = own.WatchLine(ctx, func(bool) bool {
					_ = p.rounds.settle(ctx, p.sess, false) // if it fails, another client will
					return true
				})
			}
			p.removal = own.Release()
			if ctx.Err() != nil || !errors.Is(err, line.ErrGone) {
				return
			}
			if own, err = line.Enter(ctx, p.sess, sentries); err != nil {
				return
			}
		}
	})
}
