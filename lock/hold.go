package lock

// Holds.

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
)

// Hold is a lock that is held. It belongs to one session and never outlives it. Its methods may be called from any
// goroutine.
type Hold struct {
	grant  *grant       // shared with the holds that are nested in this one
	outer  waits.Hold   // which it was acquired inside of; nil if none
	around []stuck.Hold // of processes that have started this one: see waits.Around
	first  grant        // of a hold that is not nested

	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	token   Token
	ctx     context.Context //nolint:containedctx // made when it is first asked for
	cancel  context.CancelCauseFunc
	over    bool  // unlocked
	how     How   // it was acquired; set when it is made
	lost    error // why the hold had ended before it was unlocked
	removal *attempt.Removal
}

var _ zk.Held = (*Hold)(nil)

// A grant is what one acquisition got. Its hold and the holds nested in that share it: for others they are one. The
// last of them that is unlocked gives the lock back.
type grant struct {
	*line.Ownership
	of     any           // the lock: *Mutex, *RWMutex, *Set, *Semaphore or *Simple
	report *report       // tells the hooks of its end; nil if none wants to know
	change chan struct{} // one slot, filled while a hold of an RWMutex changes its kind; nil for other locks

	mu   sync.Mutex // guards the fields below
	open int        // holds that are not unlocked
	back giver      // takes the lock back
}

// A giver gives an ownership to holds: as many at a time as its lock allows.
type giver interface {
	// giveBack takes the lock back from a grant, once. It returns the removal of the nodes if that ends the ownership.
	giveBack(o *line.Ownership) *attempt.Removal
}

// sole is the giver of an ownership that serves one grant.
type sole struct{}

func (sole) giveBack(o *line.Ownership) *attempt.Removal { return o.Release(ErrUnlocked) }

// newHold gives out the next turn of an ownership.
func newHold(o *line.Ownership, from giver) *Hold {
	h := &Hold{token: Token(o.NextToken()), how: FromServer}
	h.first.Ownership, h.first.open, h.first.back = o, 1, from
	h.grant = &h.first
	return h
}

// leave counts a hold out. The last one gives the lock back. Lost is why the lock was lost before, or nil.
func (g *grant) leave(lost error) *attempt.Removal {
	g.mu.Lock()
	g.open--
	last, back := g.open == 0, g.back
	g.mu.Unlock()
	if !last {
		return nil
	}
	g.released(lost)
	return back.giveBack(g.Ownership)
}

// giveBackTo changes the giver that takes the lock back, after the hold has changed its kind.
func (g *grant) giveBackTo(back giver) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.back = back
}

// readers returns the group with which the grant shares a lock for reading, nil if it is not for reading.
func (g *grant) readers() *group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.back.(*group); ok && r.queue.shares {
		return r
	}
	return nil
}

// Context returns the hold's context. It ends when the hold does, with the reason as its cause: ErrUnlocked;
// zk.ErrUncertain if no quorum of servers has confirmed the session lately, which is before any of them can give the
// lock to another client; zk.ErrLost, zk.ErrExpired or zk.ErrClosed if the session ended; ErrDeleted if another
// client deleted its node.
//
// Two causes end the context and leave the lock with the holder until Unlock: a *RevokedError if another client asked
// for the lock (Revoke), and ErrSuspended if the connection was lost, with OnSuspend set to EndHold.
//
// The context does not end with the context that was passed to Lock, and has none of its values: a hold outlives the
// call. The context that Do passes to its function ends with both.
//
// The holder learns of a deletion only after the fact, and the next contender may be quicker, so deleting the nodes
// of a held lock by hand is at the operator's risk. Tokens and guards hold then, too.
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = h.grant.NewContext()
		h.ctx = holdContext{waits.Context{Context: h.ctx, Hold: (*link)(h)}}
		if h.over {
			h.cancel(ErrUnlocked)
		}
	}
	return h.ctx
}

// Token returns the fencing token, which is larger than that of every earlier hold of the lock. See RWMutex and
// Semaphore for locks with several holders at a time.
func (h *Hold) Token() Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token
}

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once the
// hold's node is gone. Goroutines of one process that hand the lock to each other share a node; only their tokens
// differ.
//
//	_, err = hold.Session().Multi(ctx, hold.Guard(), zk.SetOp("/stock", stock, version))
//
// A hold of a Set, of several permits of a Semaphore, or with the Layout Both has several nodes. Guard checks the first
// of them, Guards all. The server removes them together, so the two differ only if a client deletes a node by hand.
func (h *Hold) Guard() zk.Op { return zk.CheckOp(h.Path(), -1) }

// Guards returns the operations to put first in a multi so that the server refuses it unless all of the hold's nodes
// exist: one for each path of a Set and for each permit of a Semaphore, two for a lock with the Layout Both, one
// otherwise.
//
//	_, err = hold.Session().Multi(ctx, append(hold.Guards(), zk.SetOp("/stock", stock, version))...)
func (h *Hold) Guards() []zk.Op { return h.grant.Guards() }

// Path returns the path of the hold's node, or of the first of several.
func (h *Hold) Path() string { return h.grant.Own().Path() }

// Session returns the hold's session. Guarded writes go through it.
func (h *Hold) Session() *zk.Session { return h.grant.Session() }

// Unlock releases the lock. It does not wait for the server: it hands the lock to the next goroutine of this process,
// keeps it (Config.Retain), or sends the removal of the hold's node, which is repeated in the background until it is
// done or the session has ended. A program that exits right after Unlock calls UnlockWait instead, or closes its
// client.
//
// Unlock returns nil if the lock was held until now, and otherwise why it was lost: another client may have held it
// since. A second Unlock does nothing and returns the same.
//
// The lock stays held until every hold that is nested in this one, and every hold that this one is nested in, is
// unlocked.
func (h *Hold) Unlock() error {
	defer h.grant.report.tell() // after everything here
	if h.grant.change != nil {
		h.grant.change <- struct{}{}
		defer func() { <-h.grant.change }()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return h.lost
	}
	h.over, h.lost = true, h.grant.Err()
	if h.cancel != nil {
		h.cancel(ErrUnlocked)
	}
	h.removal = h.grant.leave(h.lost)
	return h.lost
}

// UnlockWait releases the lock as Unlock does, and waits until the server has removed the hold's node if that is to be
// removed. Besides what Unlock returns, it returns the server's error if the server refuses to delete the node, and
// ctx's cause if ctx ends first; the removal then goes on in the background. The hold's own context will do, which
// UnlockWait ends.
func (h *Hold) UnlockWait(ctx context.Context) error {
	ctx, stop := attempt.Outlive(ctx, ErrUnlocked)
	defer stop()
	err := h.Unlock()
	h.mu.Lock()
	removal := h.removal
	h.mu.Unlock()
	if removal == nil {
		return err
	}
	return errors.Join(err, removal.Wait(ctx))
}
