package barrier

// How a party of Rounds joins and leaves.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

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
		p.tree = rec.czxid
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

// settleJoin finds out whether a join without a reply was done, and returns errAgain if it was not and never will be.
// If it cannot find out, it removes the nodes in the background.
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
	attempt.RemoveBy(func() error { //nolint:contextcheck // goes on after ctx
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
// whose version the join depends on, provided that this is still the node that was read: the directory is.
func (p *Party) settled(ctx context.Context, rec *record, dir string) (bool, error) {
	r := p.rounds
	return attempt.Ask(ctx, p.sess, func() (bool, error) {
		_, err := p.sess.Multi(ctx,
			zk.CheckOp(r.child(rec.Arrived), -1), zk.SetOp(r.path, rec.encode(), rec.version))
		if err != nil && !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NoNode) {
			return false, err
		}
		_, exists, err := p.sess.Exists(ctx, p.path(dir))
		return exists, err
	})
}

// Leave ends the party: the others do not wait for it any more, and it is not counted as lost. With FailRound they wait
// for another one to join. The party's own context will do, which Leave ends. If Leave returns an error, the nodes are
// still being removed in the background; if the session ends before that is done, the party counts as lost. A second
// Leave does nothing.
func (p *Party) Leave(ctx context.Context) error {
	ctx, stop := attempt.Outlive(ctx, ErrLeft)
	defer stop()
	removal := attempt.RemoveBy(func() error { //nolint:contextcheck // goes on after ctx
		<-p.turn
		defer p.give()
		if p.left {
			return nil
		}
		return p.leave()
	})
	if err := removal.Wait(ctx); err != nil {
		return p.rounds.failed(err)
	}
	return nil
}

// leave removes all nodes of the party. The one among the sentries goes last: its end tells another party to look.
func (p *Party) leave() error {
	p.left = true
	p.end(ErrLeft)
	if p.watch != nil {
		p.watch.Close()
	}
	ctx := p.sess.Context()
	err := p.remove(ctx)
	p.relieve()
	p.sentry.Wait()
	err = errors.Join(err, p.removal.Wait(ctx))
	if lost := p.sess.Err(); lost != nil {
		return fmt.Errorf("%w: %w", ErrNotJoined, lost)
	}
	return err
}

// remove removes the party's nodes, wherever they are, and ends the round if it was the last that others waited for.
func (p *Party) remove(ctx context.Context) error {
	for registered := true; ; {
		_, dir, err := p.locate(ctx)
		if errors.Is(err, ErrNotJoined) {
			return nil // the path is gone, with all that was below it
		}
		if err != nil {
			return err
		}
		var ops []zk.Op
		if registered {
			ops = append(ops, zk.DeleteOp(p.path(registryName), -1))
		}
		if dir != "" {
			ops = append(ops, zk.DeleteOp(p.path(dir), -1))
		}
		if len(ops) == 0 {
			return nil
		}
		_, err = p.sess.Multi(ctx, ops...)
		failed, _ := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			return p.rounds.settle(ctx, p.sess, false)
		case failed != nil && failed.Err == zk.NoNode:
			registered = registered && failed.Index > 0
		default:
			if err := attempt.Again(ctx, p.sess, err); err != nil {
				return err
			}
		}
	}
}

// watchOver starts the goroutine that ends rounds whose last missing parties have died or left, while this party is the
// first among the sentries. It ends with the party's session, or when relieve is called.
func (p *Party) watchOver(own *line.Own) {
	ctx, cancel := context.WithCancel(p.sess.Context())
	p.relieve = cancel
	p.sentry.Go(func() {
		for {
			err := own.Await(ctx)
			if err == nil {
				err = own.WatchLine(ctx, func(bool) bool {
					_ = p.rounds.settle(ctx, p.sess, false) // if it fails, another client will
					_, there, err := p.sess.Exists(ctx, own.Path())
					return there || err != nil
				})
				if err == nil {
					err = attempt.ErrGone
				}
			}
			p.removal = own.Release()
			if ctx.Err() != nil || !errors.Is(err, attempt.ErrGone) {
				return
			}
			if rec, err := p.rounds.read(ctx, p.sess); err == nil && (rec == nil || rec.czxid != p.tree) {
				return // the path is not to be made again for what was deleted
			}
			if own, err = p.rounds.enterAgain(ctx, p.sess); err != nil {
				return
			}
		}
	})
}
