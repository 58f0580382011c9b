package elect

// What a campaign wins.

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
)

// Token is a fencing token: a later leader of a path has a larger token than every earlier one, across crashes,
// restarts and the deletion of the path. Pass it to what only the leader may change, and let that refuse a token
// smaller than the largest it has seen (package fence does): so a leader that was paused past the end of its
// leadership cannot do harm.
type Token = zk.Token

// Leadership is one term of leadership. It belongs to one session and never outlives it. Its methods may be called
// from any goroutine.
type Leadership struct {
	candidate *Candidate
	ownership *line.Ownership
	ctx       context.Context //nolint:containedctx // the leadership's own
	token     Token
	report    *report // tells the hooks of its end; nil if none wants to know

	outer  waits.Hold   // which it was won inside of; nil if none
	around []stuck.Hold // of processes that have started this one: see waits.Around

	mu      sync.Mutex // guards the fields below; never held while waiting
	over    bool       // resigned
	lost    error      // why the leadership had ended before it was resigned
	removal *attempt.Removal
}

var _ zk.Held = (*Leadership)(nil)

// newLeadership begins the leadership of a contender that is first.
func newLeadership(c *Candidate, own *line.Own) (*Leadership, error) {
	l := &Leadership{candidate: c}
	ownership, err := line.Begin(own, ErrDeleted, l.asked)
	if err != nil {
		return nil, err
	}
	l.ownership, l.token = ownership, Token(ownership.FirstToken())
	ctx, _ := ownership.NewContext() // ends with the ownership
	l.ctx = waits.Context{Context: ctx, Hold: (*link)(l)}
	return l, nil
}

// asked stops the leadership if its node has a new request to resign, unless OnRevoke refuses. A proclamation keeps the
// request, and takes Curator's word away.
//
// The node stays until Resign, so that no other candidate leads while this one finishes.
func (l *Leadership) asked(o *line.Ownership, data []byte) {
	request := line.DecodeCandidate(data).Request
	if request == nil {
		return
	}
	var r Revocation
	_ = json.Unmarshal(request, &r) // what is no request of ours has no content, as Curator's
	key := ""
	if !r.At.IsZero() {
		key = string(request)
	}
	line.Ask(o, r, key, &RevokedError{Revocation: r}, l.candidate.cfg.OnRevoke)
}

// Context returns the leadership's context. It ends when the leadership does, with the reason as its cause:
// ErrResigned; zk.ErrUncertain if no quorum of servers has confirmed the session lately, which is before any of them
// can let another candidate lead; zk.ErrLost, zk.ErrExpired or zk.ErrClosed if the session ended; ErrDeleted if
// another client deleted the leader's node. After a *RevokedError, because another client asked for the leadership
// (lock.Revoke), no other candidate leads before Resign.
//
// The leader learns of a deletion only after the fact, and the next candidate may be quicker, so deleting the nodes
// of an election by hand is at the operator's risk. Tokens and guards hold then, too; only tokens do with the Layout
// LeaderElectionSupport.
func (l *Leadership) Context() context.Context { return l.ctx }

// Token returns the fencing token: larger than that of every earlier leader of the path.
func (l *Leadership) Token() Token { return l.token }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once the
// leader's node is gone. With the Layout Both it checks the first of two nodes, and Guards checks both. The server
// removes them together, so the two differ only if a client deletes a node by hand.
//
// With the Layout LeaderElectionSupport the guard passes again once the path was deleted, and made again, and another
// candidate's node has the name of the leader's: use the Token there.
func (l *Leadership) Guard() zk.Op { return zk.CheckOp(l.Path(), -1) }

// Guards returns the operations to put first in a multi so that the server refuses it unless all of the leader's nodes
// exist: two with the Layout Both, one otherwise. See Guard for the Layout LeaderElectionSupport.
func (l *Leadership) Guards() []zk.Op { return l.ownership.Guards() }

// Path returns the path of the leader's node, or of the first of two.
func (l *Leadership) Path() string { return l.ownership.Own().Path() }

// Session returns the leadership's session. Guarded writes go through it.
func (l *Leadership) Session() *zk.Session { return l.ownership.Session() }

// Resign ends the leadership. It does not wait for the server: it sends the removal of the leader's node, which is
// repeated in the background until it is done or the session has ended. A program that exits right after Resign calls
// ResignWait instead, or closes its client.
//
// Resign returns nil if the candidate led until now, and otherwise why it lost the leadership: another candidate may
// have led since. A second Resign does nothing and returns the same.
func (l *Leadership) Resign() error {
	_, err := l.resign()
	return err
}

// ResignWait ends the leadership as Resign does, and waits until the server has removed the node. Besides what Resign
// returns, it returns the server's error if the server refuses to delete the node, and ctx's cause if ctx ends first;
// the removal then goes on in the background. The leadership's own context will do, which ResignWait ends.
func (l *Leadership) ResignWait(ctx context.Context) error {
	ctx, stop := attempt.Outlive(ctx, ErrResigned)
	defer stop()
	removal, err := l.resign()
	return errors.Join(err, removal.Wait(ctx))
}

func (l *Leadership) resign() (*attempt.Removal, error) {
	l.mu.Lock()
	if l.over {
		defer l.mu.Unlock()
		return l.removal, l.lost
	}
	l.over, l.lost = true, l.ownership.Err()
	tell := l.report.end(l.ownership, l.lost)
	l.removal = l.ownership.Release(ErrResigned)
	l.mu.Unlock()
	tell()
	return l.removal, l.lost
}

// Proclaim publishes a value, such as an address, in the leader's node: observers see it as Leader.Value. It replaces
// the value proclaimed before, and disappears with the leadership. Proclaim returns why the leadership has ended if
// it has, an error for a value of more than half a mebibyte, and the server's refusal. It tries again after lost
// connections; if ctx ends first it returns its cause, and the value may be proclaimed.
//
// The node's data is then the id, a newline and the value; Curator's and kazoo's programs see all of it as the id.
func (l *Leadership) Proclaim(ctx context.Context, value []byte) error {
	if len(value) > maxValue {
		return attempt.Bad(
			"elect: %s: value too large: %d bytes; proclaim at most %d, such as the path of a node with the rest",
			l.candidate.path, len(value), maxValue,
		)
	}
	if l.candidate.cfg.Layout == LeaderElectionSupport {
		return attempt.Bad("elect: %s: leaders cannot proclaim a value with the Layout LeaderElectionSupport: "+
			"publish it at another path", l.candidate.path)
	}
	if err := l.ownership.Err(); err != nil {
		return l.candidate.failed(err)
	}
	err := l.write(ctx, value)
	if over := l.ownership.Err(); err != nil && over != nil {
		err = over
	}
	if errors.Is(err, zk.NoNode) {
		err = ErrDeleted // the watch is about to report it
	}
	if err != nil {
		return l.candidate.failed(err)
	}
	return nil
}

// write writes the value to the leader's node. A request to resign that is there stays there: the leader may not have
// seen it yet. Each attempt reads the node first, so one that comes after a lost reply overwrites nothing else.
func (l *Leadership) write(ctx context.Context, value []byte) error {
	sess := l.Session()
	return attempt.Do(ctx, sess, func() error {
		for {
			data, stat, err := sess.Get(ctx, l.Path())
			if err != nil {
				return err
			}
			record := line.CandidateRecord{
				ID: l.candidate.id, Value: value, Request: line.DecodeCandidate(data).Request,
			}
			_, err = sess.Set(ctx, l.Path(), record.Encode(), stat.Version)
			if !errors.Is(err, zk.BadVersion) { // or another client has just asked
				return err
			}
		}
	})
}
