// Package elect elects one leader among all processes that stand for election at a path of ZooKeeper, in the order in which the server
// saw them come. Leadership is a value: it has a context that ends before anybody else can lead, a token that grows with every
// leader, and a guard that makes a former leader's writes to ZooKeeper fail.
//
//	c, err := elect.NewCandidate(client, "/app/leader", "host-1", elect.Config{})
//	err = c.Run(ctx, func(ctx context.Context, l *elect.Leadership) error {
//		return serve(ctx, l.Token()) // while it leads, and again after a loss
//	})
package elect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrResigned is the cause of a leadership's context after Resign.
	ErrResigned = errors.New("elect: resigned")
	// ErrDeleted is the cause of a leadership's context after its node was deleted by somebody else: an operator, say.
	ErrDeleted = errors.New("elect: the leader's node was deleted by somebody else")
	// ErrLed is TryCampaign's answer when somebody else leads or waits to.
	ErrLed = errors.New("elect: somebody else leads")
	// ErrEpoch says that the ensemble has elected so many leaders of its own that its transaction ids no longer fit into a token: more
	// than 524,287.
	ErrEpoch = line.ErrEpoch
	// ErrWrap is the answer to an attempt to stand for election at a path that has nearly used up its sequence numbers, after about two
	// thousand million candidates. It is lock.ErrWrap: the numbers end at 2147483647, and behind that there is no order of the line. Leaders
	// and candidates that were there before are not affected. To begin at 0 again, delete the path as soon as it is empty.
	ErrWrap = line.ErrWrap
)

// Config says how a candidate behaves. The zero Config is ready to use.
type Config struct {
	Layout Layout   // with whose candidates it stands in one line; LeaderLatch if zero
	ACL    []zk.ACL // of the nodes and of the parents that are made for them; open to everybody if nil
	Hooks  Hooks    // what Run tells of
	_      struct{}
}

// Hooks are called by Run, on its goroutine, between a win and the function's start and between the function's return and the next
// campaign. Nil fields cost nothing.
type Hooks struct {
	Elected func(l *Leadership)      // before the function is called
	Lost    func(cause, fnErr error) // after the function has returned: why the leadership had ended, and what the function returned
}

// Candidate stands for election at a path. It may be used by any number of goroutines; every Campaign has a place in line of its own, so
// that two campaigns of one candidate exclude each other like those of any two. What leads is the Leadership, not the Candidate.
type Candidate struct {
	client *zk.Client
	path   string
	id     string
	cfg    Config
	line   line.Line
}

// NewCandidate returns a candidate for the election at path, which is private to it: no other recipe may use it. The id is how others
// know the candidate; it may be empty, for those who only observe. Nothing is asked of the server yet; the path and missing parents
// are made when they are needed. It returns an error for a path that is none, and for an id that is not one line of UTF-8.
func NewCandidate(client *zk.Client, path, id string, cfg Config) (*Candidate, error) {
	if client == nil {
		return nil, errors.New("elect: no client given; open one with zk.Open")
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if !utf8.ValidString(id) || strings.Contains(id, "\n") || len(id) > maxID {
		return nil, fmt.Errorf("elect: the id %.40q must be one line of UTF-8 of at most %d bytes", id, maxID)
	}
	if cfg.Layout < LeaderLatch || cfg.Layout > KazooElection {
		return nil, fmt.Errorf("elect: there is no %v; use LeaderLatch, LeaderSelector or KazooElection", cfg.Layout)
	}
	c := &Candidate{client: client, path: path, id: id, cfg: cfg}
	c.line = line.Line{
		Dir:     path,
		Prefix:  cfg.Layout.prefix,
		Markers: cfg.Layout.markers(),
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return encode(id, nil) },
		ACL:     cfg.ACL,
		Lasting: cfg.Layout == KazooElection,
	}
	if err := line.CheckSize(&c.line); err != nil {
		return nil, fmt.Errorf("elect: %w", err)
	}
	return c, nil
}

func checkPath(path string) error {
	if err := zk.ValidatePath(path); err != nil {
		return fmt.Errorf("elect: %w", err)
	}
	if line.Reserved(path) {
		return fmt.Errorf("elect: %s belongs to the server; name a path of the election's own, such as /app/leader", path)
	}
	return nil
}

// Path returns the election's path.
func (c *Candidate) Path() string { return c.path }

// ID returns the candidate's id.
func (c *Candidate) ID() string { return c.id }

// Campaign waits until the candidate is elected and returns the leadership. Candidates are elected in the order in which the server saw
// them.
//
// If ctx ends first, it leaves the line and returns ctx's cause. If the session ends while it waits, it joins the line again at its end
// under the next one, for as long as ctx lasts: there is no limit of tries; a client that is closed, or whose credentials are refused, ends
// the wait with the client's error. Whenever it returns an error, it has left no node behind, or is still removing it in the background.
func (c *Candidate) Campaign(ctx context.Context) (*Leadership, error) {
	return c.campaign(ctx, func(sess *zk.Session) (*line.Own, error) {
		own, err := line.Enter(ctx, sess, &c.line)
		if err != nil {
			return nil, err
		}
		if err := own.Await(ctx); err != nil {
			own.Release()
			return nil, err
		}
		return own, nil
	})
}

// TryCampaign returns the leadership if nobody stands for election, and ErrLed at once if anybody leads or waits to. That somebody else
// resigned a moment ago may not have reached the server that answers: then ErrLed is late news, never two leaders. Otherwise it behaves
// as Campaign does.
func (c *Candidate) TryCampaign(ctx context.Context) (*Leadership, error) {
	return c.campaign(ctx, func(sess *zk.Session) (*line.Own, error) {
		own, err := line.TryEnter(ctx, sess, &c.line)
		if err == nil && own == nil {
			err = ErrLed
		}
		return own, err
	})
}

// campaign returns the leadership of the node that stand makes the first in line.
func (c *Candidate) campaign(ctx context.Context, stand func(*zk.Session) (*line.Own, error)) (*Leadership, error) {
	for {
		if ctx.Err() != nil {
			return nil, c.failed(context.Cause(ctx))
		}
		own, err := line.Acquire(ctx, c.client, stand)
		if err != nil {
			return nil, c.failed(err)
		}
		ownership, err := line.Begin(own, ErrDeleted, nil)
		if err != nil {
			return nil, c.failed(err)
		}
		l := newLeadership(c, ownership)
		if ownership.Err() == nil {
			return l, nil
		}
		_, _ = l.resign() // won, and lost before anybody could be told
	}
}

// failed says of which election err is, and, when waiting was cut short without a server in sight, why there was none.
func (c *Candidate) failed(err error) error {
	if errors.Is(err, ErrLed) {
		return err
	}
	return fmt.Errorf("elect: %s: %w", c.path, line.Explain(c.client, err))
}
