package line

// The time for which a contender of ours is first.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// An Ownership is the time for which a contender of ours is first. It serves holds, one after the other or several at a
// time, each with a token of its own. It ends once: with Release, with its session, when the session is uncertain, or
// when another client deletes a node. Its methods may be called from any goroutine.
type Ownership struct {
	sess    *zk.Session
	certain *zk.Ownership
	ctx     context.Context //nolint:containedctx // ends with the ownership
	end     context.CancelCauseFunc
	use     context.Context //nolint:containedctx // the contexts of the holds descend from it
	stop    context.CancelCauseFunc
	deleted error
	changed func(*Ownership, []byte)
	czxid   int64 // of the tokens
	watcher *watcher

	mu         sync.Mutex // guards the fields below; never held while anything is waited for
	own        *Own
	turn       int                         // of the next token
	asked      *string                     // the key of the last request for it, nil if there was none
	exchanging bool                        // own is being exchanged for another
	gone       bool                        // it vanished meanwhile: by that, or by another client
	stoppedAt  time.Time                   // the first call of Stop
	removal    *attempt.Removal            // of own, once the ownership was released; nil before
	giveUp     func(*Own) *attempt.Removal // how it was
}

// Begin begins the ownership of a contender that is first. If its nodes give no token it releases them and returns
// ErrEpoch. Deleted is the ownership's cause when another client deletes a node. Changed, if it is not nil, is called
// with the data of a node, once the ownership has lasted so long that its nodes are watched, and after every change of
// theirs. It must not block.
func Begin(own *Own, deleted error, changed func(o *Ownership, data []byte)) (*Ownership, error) {
	czxid := own.Stat().Czxid
	if _, err := Token(czxid, 0); err != nil {
		own.Release()
		return nil, err
	}
	o := &Ownership{sess: own.sess, own: own, czxid: czxid, deleted: deleted, changed: changed, watcher: own.watcher}
	o.ctx, o.end = context.WithCancelCause(o.sess.Context())
	o.use, o.stop = context.WithCancelCause(o.ctx)
	o.certain = o.sess.NewOwnership(o)
	o.certain.Begin()
	if !own.onEvent(o.watch) {
		o.watcher.add(o)
	}
	return o, nil
}

// Own returns the contender that is first.
func (o *Ownership) Own() *Own {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own
}

// Session returns the session of the ownership.
func (o *Ownership) Session() *zk.Session { return o.sess }

// Stop ends the contexts of the holds, for that cause, but not the ownership: the nodes stay, and no other contender
// comes in, until it is released.
func (o *Ownership) Stop(cause error) {
	o.mu.Lock()
	if o.stoppedAt.IsZero() {
		o.stoppedAt = time.Now()
	}
	o.mu.Unlock()
	o.stop(cause)
}

// StoppedFor returns for how long the ownership has been stopped, 0 if it was not.
func (o *Ownership) StoppedFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stoppedAt.IsZero() {
		return 0
	}
	return time.Since(o.stoppedAt)
}

// Use returns a context that ends when no hold may go on: when the ownership was stopped, or has ended.
func (o *Ownership) Use() context.Context { return o.use }

// Context returns a context that ends with the ownership. Contexts for users are made with NewContext.
func (o *Ownership) Context() context.Context { return o.ctx }

// NewContext returns a context that ends when the ownership is stopped or ends, for the same cause, or when it is
// cancelled. Its Err looks at the clock itself (see Bound).
func (o *Ownership) NewContext() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(o.use)
	return Bound(ctx, o.certain), cancel
}

// FirstToken returns the token of the first turn.
func (o *Ownership) FirstToken() int64 {
	token, _ := Token(o.czxid, 0) // was checked when the ownership began
	return token
}

// NextToken takes the token of the next turn, of which there are Turns.
func (o *Ownership) NextToken() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	token, _ := Token(o.czxid, o.turn)
	o.turn++
	return token
}

// ComingToken returns the token that NextToken would take.
func (o *Ownership) ComingToken() int64 {
	token, _ := Token(o.czxid, o.Turn())
	return token
}

// Turn returns how many tokens were taken.
func (o *Ownership) Turn() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.turn
}

// Exhausted reports whether there is no token left.
func (o *Ownership) Exhausted() bool { return o.Turn() >= Turns }

// Spent reports whether the ownership may serve no further hold: there is no token left, or another client has asked
// for it. The holder that was asked may keep it, but for itself alone.
func (o *Ownership) Spent() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked != nil || o.turn >= Turns
}

// watch watches the nodes until the ownership has ended or has other ones. It goes on after a refusal that does not
// pass: the nodes stand, and another client may yet ask for them or delete them.
func (o *Ownership) watch() {
	own := o.Own()
	var tell func([]byte)
	if o.changed != nil {
		tell = func(data []byte) { o.changed(o, data) }
	}
	for tries := 0; ; tries++ {
		err := own.Watch(o.ctx, tell)
		if errors.Is(err, ErrGone) {
			o.Gone(own.Path())
		}
		if err == nil || errors.Is(err, ErrGone) || attempt.Pause(o.ctx, o.sess, tries) != nil {
			return
		}
	}
}

// Nodes returns the paths of the nodes by which it owns.
func (o *Ownership) Nodes() []string { return o.Own().Paths() }

// Guards returns the operations to put first in a multi so that the server refuses it unless all of the nodes exist.
func (o *Ownership) Guards() []zk.Op {
	var guards []zk.Op
	for _, path := range o.Nodes() {
		guards = append(guards, zk.CheckOp(path, -1))
	}
	return guards
}

// Gone ends the ownership because a node is missing, unless the node was exchanged for another.
func (o *Ownership) Gone(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !slices.Contains(o.own.Paths(), path): // it was exchanged
	case o.exchanging:
		o.gone = true
	default:
		o.end(o.deleted)
	}
}

// Lost ends the ownership because the session is uncertain. Its nodes may still be there. They are removed as soon as a
// server can be reached, but not before the holder has had the cooldown to stop, or has released them. Unless the
// holder has, it may still be at work: so the marks stay, and the next one waits for the delay.
func (o *Ownership) Lost(cause error, cooldown time.Duration) {
	o.end(cause)
	time.AfterFunc(cooldown, func() { o.release(cause, (*Own).Abandon) })
}

// Exchange puts the ownership on the contender that swap returns, which releases the old one; the ownership goes on
// without a gap. If swap fails, nothing changes. It must not run twice at a time. If the ownership is released
// meanwhile, so is the new contender, in the same way: its marks stay if the holder may still be at work.
func (o *Ownership) Exchange(swap func() (*Own, error)) error {
	o.mu.Lock()
	o.exchanging = true
	o.mu.Unlock()
	next, err := swap()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exchanging = false
	switch {
	case err == nil && o.removal != nil:
		o.giveUp(next)
		err = context.Cause(o.ctx)
	case err == nil:
		o.own = next
		o.watcher.add(o)
	case o.gone, errors.Is(err, ErrGone):
		o.end(o.deleted)
	}
	o.gone = false
	return err
}

// Err returns nil while the ownership lasts, and afterwards why it has ended.
func (o *Ownership) Err() error {
	if err := o.certain.Err(); err != nil && o.ctx.Err() == nil {
		return err
	}
	return context.Cause(o.ctx)
}

// Stopped returns nil while holds may go on, and afterwards why they may not.
func (o *Ownership) Stopped() error {
	if err := o.Err(); err != nil {
		return err
	}
	return context.Cause(o.use)
}

// Release ends the ownership, for that cause unless it has ended before, and releases its nodes. Releasing twice is
// releasing once.
func (o *Ownership) Release(cause error) *attempt.Removal { return o.release(cause, (*Own).Release) }

func (o *Ownership) release(cause error, how func(*Own) *attempt.Removal) *attempt.Removal {
	o.watcher.remove(o)
	o.certain.End()
	o.end(cause)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.removal == nil {
		o.removal, o.giveUp = how(o.own), how
	}
	return o.removal
}
