// Package elect elects one leader among all processes that campaign at a path of ZooKeeper, in the order in which the
// server saw them come. Leadership is a value: it has a context that ends before another candidate can lead, a token
// that grows with every leader, and a guard that makes a former leader's writes to ZooKeeper fail.
//
//	c, err := elect.NewCandidate(client, "/app/leader", "host-1", elect.Config{})
//	...
//	err = c.Run(ctx, func(ctx context.Context, l *elect.Leadership) error {
//		return serve(ctx, l.Token()) // while it leads, and again after a loss
//	})
package elect

// Candidates: configuration, campaigns and participants.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrResigned is the cause of a leadership's context after Resign.
	ErrResigned = errors.New("the leadership was resigned")
	// ErrDeleted is the cause of a leadership's context after another client, such as an operator's, deleted its node.
	ErrDeleted = errors.New("the leader's node was deleted by another client")
	// ErrRevoked is wrapped by the cause of a leadership's context after another client asked for it with lock.Revoke.
	// The candidate still leads until Resign. A *RevokedError names the client that asked, and its reason. It is
	// lock.ErrRevoked.
	ErrRevoked = lock.ErrRevoked
	// ErrLed is what TryCampaign returns when another candidate leads or waits to.
	ErrLed = errors.New("another candidate leads")
	// ErrEpoch reports that the ensemble has elected so many leaders of its own, more than 524,287, that its
	// transaction ids no longer fit into a token.
	ErrEpoch = line.ErrEpoch
	// ErrWrap reports that a path has nearly used up its sequence numbers, after about two billion candidates. It is
	// lock.ErrWrap: the numbers end at 2147483647, and there is no order after that. Leaders and candidates that are
	// there already are not affected. To start again from 0, delete the path as soon as it is empty.
	ErrWrap = line.ErrWrap
)

// Candidate stands for election at a path. It may be used by any number of goroutines. Each Campaign is a contender of
// its own, so two campaigns of one Candidate exclude each other like any other two. What leads is the Leadership, not
// the Candidate.
type Candidate struct {
	client *zk.Client
	path   string
	id     string
	cfg    Config
	line   line.Line
	access attempt.Access // of what only reads
}

// NewCandidate returns a candidate for the election at path, which no other recipe may use. Other programs see the
// candidate by its id; it may be empty for a candidate that only observes. NewCandidate does not contact the server:
// the path and missing parents are created when they are needed. It returns an error if the path, the id or the
// configuration is invalid.
func NewCandidate(client *zk.Client, path, id string, cfg Config) (*Candidate, error) {
	if err := attempt.Args("elect", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	if !utf8.ValidString(id) || strings.Contains(id, "\n") || len(id) > maxID {
		return nil, attempt.Bad("elect: invalid id %.40q; use one line of UTF-8 of at most %d bytes", id, maxID)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Candidate{client: client, path: path, id: id, cfg: cfg}
	c.access.ACL, c.access.AnyACL = cfg.ACL, cfg.AnyACL
	c.line = line.Line{
		Dir:    path,
		Blocks: func(line.Contender) bool { return true },
		Data:   line.CandidateRecord{ID: id}.Encode,
		ACL:    cfg.ACL,
		AnyACL: cfg.AnyACL,
	}
	cfg.Hooks.watchLine(&c.line)
	cfg.Layout.apply(&c.line)
	if err := line.CheckSize(&c.line); err != nil {
		return nil, fmt.Errorf("elect: %w", err)
	}
	return c, nil
}

// Path returns the election's path.
func (c *Candidate) Path() string { return c.path }

// ID returns the candidate's id.
func (c *Candidate) ID() string { return c.id }

// Campaign waits until the candidate is elected and returns the leadership. Candidates are elected in the order in
// which the server saw them.
//
// If ctx ends first, Campaign leaves the line and returns ctx's cause. If the session ends while it waits, it joins
// the line again, at its end, under the next session, as often as Config.Retry says. It returns the client's error if
// the client is closed or its credentials are refused. When it returns an error, it has left no node behind, or is
// still removing it in the background.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	return c.campaign(ctx, func(ctx context.Context, sess *zk.Session, standing func(*line.Own)) (*line.Own, error) {
		own, err := line.Enter(ctx, sess, &c.line)
		if err != nil {
			return nil, err
		}
		standing(own)
		if err := own.Await(ctx); err != nil {
			own.Release()
			return nil, err
		}
		return own, own.Start(ctx, c.cfg.Delay, func(time.Duration) bool { return true })
	})
}

// TryCampaign returns the leadership if the line is empty, and otherwise ErrLed at once: also while the Delay of a lost
// leader has not passed. The server that answers may not know yet that another leader has just resigned, so ErrLed may
// be outdated; there are never two leaders. In all else it behaves like Campaign.
func (c *Candidate) TryCampaign(ctx context.Context) (*Leadership, error) {
	return c.campaign(ctx, func(ctx context.Context, sess *zk.Session, _ func(*line.Own)) (*line.Own, error) {
		own, err := line.TryEnter(ctx, sess, &c.line)
		switch {
		case err != nil:
			return nil, err
		case own == nil:
			return nil, ErrLed
		}
		err = own.TryStart(ctx, c.cfg.Delay)
		if errors.Is(err, line.ErrResting) {
			err = ErrLed
		}
		return own, err
	})
}

// stand makes a contender of a session's that is first in line. It calls standing with it before it waits.
type stand func(ctx context.Context, sess *zk.Session, standing func(*line.Own)) (*line.Own, error)

// campaign returns the leadership of the contender that try makes first in line. It calls the hooks.
func (c *Candidate) campaign(ctx context.Context, try stand) (*Leadership, error) {
	r := c.report(ctx)
	outer := waits.Lasting(waits.Innermost(ctx))
	standing, within := func(*line.Own) {}, ctx
	if c.cfg.OnDeadlock != lock.IgnoreDeadlock && waits.Inside(ctx, outer) {
		w := c.inside(outer, r)
		within = w.Begin(ctx)
		defer w.End()
		standing = func(own *line.Own) { w.StandsIn(func() *line.Own { return own }) }
	}
	l, err := c.win(within, try, standing)
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	l.outer, l.around = outer, waits.Around(ctx)
	r.elected(ctx, l)
	return l, nil
}

func (c *Candidate) win(ctx context.Context, try stand, standing func(*line.Own)) (*Leadership, error) {
	for {
		if ctx.Err() != nil {
			return nil, c.failed(context.Cause(ctx))
		}
		own, err := line.Policy(c.cfg.Retry).Acquire(ctx, c.client, func(sess *zk.Session) (*line.Own, error) {
			return try(ctx, sess, standing)
		})
		if err != nil {
			return nil, c.failed(err)
		}
		l, err := newLeadership(c, own)
		if err != nil {
			return nil, c.failed(err)
		}
		if l.ownership.Err() == nil {
			return l, nil
		}
		_, _ = l.resign() // lost before it could be returned
	}
}

// failed adds the election's path to err, and, if there was no server to ask, the reason.
func (c *Candidate) failed(err error) error {
	if errors.Is(err, ErrLed) {
		return err
	}
	return fmt.Errorf("elect: %s: %w", c.path, attempt.Explain(c.client, err))
}
