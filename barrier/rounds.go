package barrier

// Rounds: configuration and joining.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of Rounds. All are found with errors.Is.
var (
	// ErrPartyLost: the round failed for all parties, because one of them died in it.
	ErrPartyLost = errors.New("a party was lost")
	// ErrNotJoined: this party does not take part any more: its session has ended, or another client has deleted its
	// node. Join again.
	ErrNotJoined = errors.New("not a party any more")
	// ErrMismatch: the rounds at this path have another number of parties, or another OnLoss.
	ErrMismatch = errors.New("configuration mismatch")
	// ErrForgotten: the outcome of a round is not known any more: parties died in more than 256 later rounds, or
	// another client has deleted the path.
	ErrForgotten = errors.New("outcome forgotten")
)

// OnLoss says what becomes of a round when a party dies in it: when the server has ended its session.
type OnLoss int

// What can become of a round.
const (
	// FailRound fails the round for all parties. They go on to the next, which needs as many parties as there should
	// be: so one must join in place of the lost one.
	FailRound OnLoss = iota
	// Continue lets the round go on with the living parties.
	Continue
)

// String returns the name of the choice.
func (l OnLoss) String() string {
	switch l {
	case FailRound:
		return "fail"
	case Continue:
		return "continue"
	default:
		return fmt.Sprintf("OnLoss(%d)", int(l))
	}
}

// RoundsConfig says how Rounds behave.
type RoundsConfig struct {
	Parties int      // how many there should be; at least one, and at most as many as with NewDouble
	OnLoss  OnLoss   // FailRound if zero
	Label   string   // what people see in a party's node; the host's name if empty
	ACL     []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	_      struct{}
}

// Rounds is a barrier that is used again and again, with a number for each round. Parties join, and each arrives at one
// round after the other. A round is over for all at the same moment, by one transaction, when all living parties have
// arrived at it; so all learn the same of it. Which parties live is what the server says: one whose session the server
// has not ended is waited for, however long it is silent.
//
// Until as many parties have joined as there should be, the first round is not over. With FailRound, no round is passed
// by fewer. More may join, and then all of them are waited for.
//
// Rounds may be used by any number of goroutines.
type Rounds struct {
	base
	cfg      RoundsConfig
	sentries *line.Line // of the parties
	again    *line.Line // the same, of a barrier that must not come back
}

// NewRounds returns the rounds at path, which no other recipe may use. The path keeps the number of the round, so it is
// persistent and stays when all parties have left. NewRounds does not contact the server. It returns an error if the
// path or the configuration is invalid.
func NewRounds(client *zk.Client, path string, cfg RoundsConfig) (*Rounds, error) {
	base, err := newBase(client, path, cfg.Label, cfg.ACL, cfg.AnyACL)
	if err != nil {
		return nil, err
	}
	if err := checkParties(path+"/"+registryName, cfg.Parties); err != nil {
		return nil, err
	}
	if cfg.OnLoss < FailRound || cfg.OnLoss > Continue {
		return nil, attempt.Bad("barrier: unknown %v; use FailRound or Continue", cfg.OnLoss)
	}
	r := &Rounds{base: base, cfg: cfg}
	r.sentries, r.again = r.line(), r.line()
	r.again.There = true
	return r, nil
}

// Below the path there are, besides directories with the parties by the round at which they arrived last:.
const (
	registryName = "parties"  // a persistent node for each party that has not left: those without another have died
	sentriesName = "sentries" // a line of the parties; the first looks after the dead
)

const sentryMarker line.Marker = "sentry-"

func (r *Rounds) child(name string) string { return r.path + "/" + name }

// line returns the line of the parties.
func (r *Rounds) line() *line.Line {
	return &line.Line{
		Dir:     r.child(sentriesName),
		Prefix:  func(guid string) string { return guid + "-" + string(sentryMarker) },
		Markers: []line.Marker{sentryMarker},
		Blocks:  func(line.Contender) bool { return true },
		Data:    func() []byte { return r.data },
		ACL:     r.access.ACL,
		AnyACL:  r.access.AnyACL,
		Lasting: true,
		// Two that look after the dead do no harm.
		Unordered: true,
	}
}

// enterAgain enters the line of the parties, of a barrier that was there just now. It makes the line's directory, and
// nothing above it: the barrier may be deleted meanwhile, and must not come back without what it is.
func (r *Rounds) enterAgain(ctx context.Context, sess *zk.Session) (*line.Own, error) {
	for {
		_, err := sess.CreateNode(ctx, zk.Node{
			Path: r.again.Dir, Data: []byte{}, Mode: zk.Persistent, ACL: r.access.ACL,
		})
		switch {
		case err == nil, errors.Is(err, zk.NodeExists):
			return line.Enter(ctx, sess, r.again)
		case errors.Is(err, zk.NoNode):
			return nil, attempt.ErrGone
		}
		if err := attempt.Again(ctx, sess, err); err != nil {
			return nil, err
		}
	}
}

// Join makes this process a party, from the round that the parties are in: that round is not over before this party
// has arrived. It goes on through lost connections and new sessions. If ctx ends first it returns ctx's cause; it
// returns ErrMismatch if the path has another configuration, and the client's error if the client is closed. When it
// returns an error, it has left no node behind, or is still removing it in the background.
func (r *Rounds) Join(ctx context.Context) (*Party, error) {
	p, err := run(ctx, &r.base, func(sess *zk.Session) (*Party, error) {
		own, err := line.Enter(ctx, sess, r.sentries)
		if err != nil {
			return nil, err
		}
		p := newParty(r, sess)
		if err := p.join(ctx); err != nil {
			own.Release()
			return nil, err
		}
		p.watchOver(own) //nolint:contextcheck // lasts as long as the party
		return p, nil
	})
	if err != nil {
		return nil, r.failed(err)
	}
	return p, nil
}

// Outcome waits until a round is over and returns what became of it: also to those that were not there. If ctx ends
// first it returns ctx's cause. It returns ErrForgotten for a round that is too old, and if another client deletes the
// path while Outcome waits: a round that has the same number then is another one.
func (r *Rounds) Outcome(ctx context.Context, round int64) (Outcome, error) {
	if round < 1 {
		return Outcome{}, r.failed(fmt.Errorf("round %d; the first is 1", round))
	}
	var tree int64 // the czxid of the path
	o, err := run(ctx, &r.base, func(sess *zk.Session) (Outcome, error) {
		for fresh := true; ; fresh = false {
			if fresh { // the server may lag behind
				if err := sess.Sync(ctx, r.path); err != nil {
					return Outcome{}, err
				}
			}
			_, _, watch, err := sess.ExistsW(ctx, r.path)
			if err != nil {
				return Outcome{}, err
			}
			rec, err := r.read(ctx, sess)
			switch {
			case err != nil:
			case tree != 0 && (rec == nil || rec.czxid != tree):
				err = fmt.Errorf("%w: round %d: another client deleted %s", ErrForgotten, round, r.path)
			case rec != nil && rec.Round > round:
				watch.Close()
				return rec.outcome(round)
			case rec != nil:
				tree = rec.czxid
			}
			if err == nil {
				_, err = watch.Next(ctx)
			}
			watch.Close()
			if err != nil {
				return Outcome{}, err
			}
		}
	})
	if err != nil {
		return o, r.failed(err)
	}
	return o, nil
}

// read reads the record. It returns nil if there is none.
func (r *Rounds) read(ctx context.Context, sess *zk.Session) (*record, error) {
	return attempt.Ask(ctx, sess, func() (*record, error) {
		data, stat, err := sess.Get(ctx, r.path)
		if errors.Is(err, zk.NoNode) || err == nil && len(data) == 0 {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return decodeRecord(r.path, data, stat)
	})
}

// prepare returns the record, and makes it and the directories if they are missing.
func (r *Rounds) prepare(ctx context.Context, sess *zk.Session) (*record, error) {
	for {
		data, stat, err := sess.Get(ctx, r.path)
		switch {
		case errors.Is(err, zk.NoNode):
			err = r.dirs(attempt.Forever).Make(ctx, sess, r.path)
		case err == nil && len(data) > 0:
			rec, err := decodeRecord(r.path, data, stat)
			if err != nil {
				return nil, err
			}
			return rec, rec.matches(r.cfg)
		case err == nil:
			err = r.found(ctx, sess, stat.Version)
		}
		if err != nil {
			if err := attempt.Again(ctx, sess, err); err != nil {
				return nil, err
			}
		}
	}
}

// found writes the first record, unless another client has done so.
func (r *Rounds) found(ctx context.Context, sess *zk.Session, version int32) error {
	rec := newRecord(r.cfg)
	_, err := sess.Multi(ctx,
		zk.SetOp(r.path, rec.encode(), version),
		zk.CreateNodeOp(r.node(r.child(registryName), nil, zk.Persistent)),
		zk.CreateNodeOp(r.node(r.child(rec.Behind[0]), nil, zk.Persistent)),
		zk.CreateNodeOp(r.node(r.child(rec.Arrived), nil, zk.Persistent)))
	switch {
	case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NoNode):
		return nil // look again
	case errors.Is(err, zk.NodeExists):
		return fmt.Errorf("%s has children but no record of rounds; use a path of its own, or delete it", r.path)
	default:
		return err
	}
}
