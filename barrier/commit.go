package barrier

// The end of a round.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A census is how many parties there are, and where.
type census struct {
	rec        *record
	registered int            // that have not left
	behind     map[string]int // that live and have not arrived, by their directory
	unarrived  int
	arrived    int
}

// lost is how many have died since the last round was over. More may seem so while one leaves.
func (c *census) lost() int { return c.registered - c.unarrived - c.arrived }

// count takes the census. It returns nil if the round ended meanwhile. Those registered come first: who joins meanwhile
// does not seem to be lost.
func (r *Rounds) count(ctx context.Context, sess *zk.Session) (*census, error) {
	rec, err := r.read(ctx, sess)
	if err != nil || rec == nil {
		return nil, err
	}
	dirs := append([]string{registryName}, rec.Behind...)
	dirs = append(dirs, rec.Arrived)
	there, err := exist(ctx, sess, dirs, r.child)
	if err != nil {
		return nil, err
	}
	c := &census{rec: rec, behind: make(map[string]int)}
	for i, e := range there {
		n := int(e.Stat.NumChildren)
		switch dir := dirs[i]; {
		case !e.Exists:
			return nil, nil
		case dir == registryName:
			c.registered = n
		case dir == rec.Arrived:
			c.arrived = n
		default:
			c.behind[dir] = n
			c.unarrived += n
		}
	}
	return c, nil
}

// maxTries bounds how often a round is tried to be ended: each time something must have changed.
const maxTries = 100

// settle ends the round if it is over. Any client may do so, any number of times and at any time: the transaction is
// refused unless the round is still the same, and the path, too; and if it is passed, unless at that moment no living
// party is left that has not arrived. Join says that a party is about to join, with which all begins anew if no other
// lives.
func (r *Rounds) settle(ctx context.Context, sess *zk.Session, join bool) error {
	for range maxTries {
		c, err := r.count(ctx, sess)
		if err != nil {
			return err
		}
		if c == nil {
			if rec, err := r.read(ctx, sess); err != nil || rec == nil {
				return err
			}
			continue
		}
		if c.rec.matches(r.cfg) != nil {
			return nil //nolint:nilerr // these are others' rounds: the path was made anew
		}
		ops, err := r.ending(ctx, sess, c, join)
		if err != nil || ops == nil {
			return err
		}
		_, err = sess.Multi(ctx, append(ops, zk.CheckOp(r.child(c.rec.Arrived), -1))...)
		if err == nil {
			return nil
		}
		if changed(err) {
			continue
		}
		if err := attempt.Again(ctx, sess, err); err != nil {
			return err
		}
	}
	return errors.New("the round changes as often as it is looked at, or nodes of it were deleted by hand")
}

// changed reports whether a transaction was refused because something has changed since it was made.
func changed(err error) bool {
	for _, code := range []zk.Code{zk.BadVersion, zk.NoNode, zk.NotEmpty, zk.NodeExists} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// ending returns the transaction that ends the round, or nothing if it is not over.
func (r *Rounds) ending(ctx context.Context, sess *zk.Session, c *census, join bool) ([]zk.Op, error) {
	var dead []string
	if c.lost() > 0 {
		var err error
		if dead, err = r.dead(ctx, sess, c.rec); err != nil {
			return nil, err
		}
	}
	deserted := join && c.unarrived+c.arrived == 0
	switch {
	case r.cfg.OnLoss == FailRound && len(dead) > 0:
		return r.fail(c, dead), nil
	case r.cfg.OnLoss == FailRound:
		if c.unarrived == 0 && c.arrived >= r.cfg.Parties {
			return r.pass(c, nil), nil
		}
	case deserted && (c.rec.Gathered || len(dead) > 0):
		return r.regather(c, dead), nil
	case c.unarrived == 0 && c.arrived > 0 && (c.rec.Gathered || c.arrived+len(dead) >= r.cfg.Parties):
		return r.pass(c, dead), nil
	}
	return nil, nil
}

// dead returns the names of parties that are registered and have no node in any directory. They cannot come back.
func (r *Rounds) dead(ctx context.Context, sess *zk.Session, rec *record) ([]string, error) {
	return attempt.Ask(ctx, sess, func() ([]string, error) {
		b := sess.Batch()
		registered := b.Children(r.child(registryName))
		var listed []*zk.Future[zk.Children]
		for _, dir := range append(slices.Clone(rec.Behind), rec.Arrived) {
			listed = append(listed, b.Children(r.child(dir)))
		}
		b.Send()
		all, err := registered.Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		living := make(map[string]bool)
		for _, l := range listed {
			children, err := l.Get(ctx)
			if err != nil && !errors.Is(err, zk.NoNode) {
				return nil, err
			}
			for _, name := range children.Names {
				living[name] = true
			}
		}
		return slices.DeleteFunc(all.Names, func(name string) bool { return living[name] }), nil
	})
}

// pass ends the round as passed. The directories of those that have not arrived are deleted, which is refused unless
// they are empty.
func (r *Rounds) pass(c *census, dead []string) []zk.Op {
	next := c.rec.next(Outcome{Round: c.rec.Round, Lost: len(dead)}, []string{c.rec.Arrived})
	next.Gathered = r.cfg.OnLoss == Continue
	return r.advance(c, next, dead)
}

// fail ends the round as failed. Those that have not arrived stay where they are.
func (r *Rounds) fail(c *census, dead []string) []zk.Op {
	crowded := []string{c.rec.Arrived}
	for _, dir := range c.rec.Behind {
		if c.behind[dir] > 0 {
			crowded = append(crowded, dir)
		}
	}
	next := c.rec.next(Outcome{Round: c.rec.Round, Lost: len(dead), Failed: true}, crowded)
	return r.advance(c, next, dead)
}

func (r *Rounds) advance(c *census, next *record, dead []string) []zk.Op {
	ops := []zk.Op{zk.SetOp(r.path, next.encode(), c.rec.version)}
	for _, dir := range c.rec.Behind {
		if !slices.Contains(next.Behind, dir) {
			ops = append(ops, zk.DeleteOp(r.child(dir), -1))
		}
	}
	ops = append(ops, zk.CreateNodeOp(r.node(r.child(next.Arrived), nil, zk.Persistent)))
	return append(ops, r.strike(dead)...)
}

// regather begins anew with gathering parties, after all have left or died. The round stays the same.
func (r *Rounds) regather(c *census, dead []string) []zk.Op {
	next := *c.rec
	next.Gathered = false
	return append([]zk.Op{zk.SetOp(r.path, next.encode(), c.rec.version)}, r.strike(dead)...)
}

// strike takes the dead off the list of parties. If one of them has left instead, that is refused.
func (r *Rounds) strike(dead []string) []zk.Op {
	ops := make([]zk.Op, len(dead))
	for i, name := range dead {
		ops[i] = zk.DeleteOp(r.child(registryName)+"/"+name, -1)
	}
	return ops
}
