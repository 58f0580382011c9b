package line

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Tenure is the time for which a place is first in line. It ends once: with Leave, with its session, when the session is uncertain, or when
// another client deletes its node. Its methods may be called from any goroutine.
type Tenure struct {
	sess    *zk.Session
	own     *zk.Ownership
	ctx     context.Context //nolint:containedctx // ends with the tenure
	end     context.CancelCauseFunc
	use     context.Context //nolint:containedctx // what is held for the tenure has contexts that come from it
	stop    context.CancelCauseFunc
	deleted error
	changed func(*Tenure, []byte)
	czxid   int64 // of the tokens
	vigil   *vigil
	young   young // the vigil's

	mu       sync.Mutex // guards the fields below; never held while anything is waited for
	ground   Ground
	changing bool     // the ground is being exchanged for another
	gone     bool     // it vanished meanwhile: by that, or by another client
	removal  *Removal // of the ground, once the tenure was left; nil before
}

// Ground is what a tenure stands on: the node or nodes of ours that are first in their line. A Place is one, and so is a Bundle.
type Ground interface {
	Session() *zk.Session
	Path() string    // of the first node
	Paths() []string // of all nodes
	Stat() zk.Stat   // of the first node
	// Watch blocks until somebody else deletes a node, and returns ErrGone then. Changed, if it is not nil, is called with the data of
	// a node when the node is first looked at, and whenever it was changed.
	Watch(ctx context.Context, changed func(data []byte)) error
	Leave() *Removal
}

// Begin begins the tenure of nodes that are first, unless getting there has failed with err, which it returns then. If the nodes give no
// token it leaves them and returns ErrEpoch. Deleted is the tenure's cause when somebody else deletes a node. Changed, if it is not nil, is
// called with the data of a node, once the tenure has lasted so long that its nodes are watched, and after every change of theirs. It
// must not block.
func Begin(ground Ground, err, deleted error, changed func(t *Tenure, data []byte)) (*Tenure, error) {
	if err != nil {
		return nil, err
	}
	czxid := ground.Stat().Czxid
	if _, err := Token(czxid, 0); err != nil {
		ground.Leave()
		return nil, err
	}
	t := &Tenure{sess: ground.Session(), ground: ground, czxid: czxid, deleted: deleted, changed: changed}
	t.ctx, t.end = context.WithCancelCause(t.sess.Context())
	t.use, t.stop = context.WithCancelCause(t.ctx)
	t.own = t.sess.NewOwnership(t)
	t.own.Begin()
	t.vigil = vigilOf(ground)
	if p, ok := ground.(*Place); !ok || !p.heed(t.watch) {
		t.vigil.keep(t)
	}
	return t, nil
}

// Stop ends what is held for the tenure, for that cause, and not the tenure: the nodes stay, and nobody else is let in, until it is left.
func (t *Tenure) Stop(cause error) { t.stop(cause) }

// StopIf stops the tenure if ask says so, which runs on a goroutine of its own, with a context that ends when the tenure is stopped.
func (t *Tenure) StopIf(ask func(context.Context) bool, cause error) {
	go func() {
		if t.use.Err() == nil && ask(t.use) {
			t.stop(cause)
		}
	}()
}

// Use returns a context that ends when nothing is to be held for the tenure any more: when it was stopped, or has ended.
func (t *Tenure) Use() context.Context { return t.use }

// Token returns the token of a turn, of which there are Turns: from zero up.
func (t *Tenure) Token(turn int) int64 {
	token, _ := Token(t.czxid, turn) // was checked when the tenure began
	return token
}

func (t *Tenure) watch() {
	ground := t.Ground()
	var tell func([]byte)
	if t.changed != nil {
		tell = func(data []byte) { t.changed(t, data) }
	}
	if err := ground.Watch(t.ctx, tell); !errors.Is(err, ErrGone) {
		return
	}
	t.Gone(ground.Path())
}

// Nodes returns the paths of what the tenure stands on.
func (t *Tenure) Nodes() []string { return t.Ground().Paths() }

// Gone ends the tenure because a node is not there any more, unless it stands on other nodes by now.
func (t *Tenure) Gone(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !slices.Contains(t.ground.Paths(), path): // it was exchanged
	case t.changing:
		t.gone = true
	default:
		t.end(t.deleted)
	}
}

// Lost ends the tenure because the session is uncertain. Its nodes may still be there. They are removed as soon as a server can be reached,
// but not before the holder has had the cooldown to stop, or has left.
func (t *Tenure) Lost(cause error, cooldown time.Duration) {
	t.end(cause)
	time.AfterFunc(cooldown, func() { t.Leave(cause) })
}

// Ground returns what the tenure stands on.
func (t *Tenure) Ground() Ground {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ground
}

// Exchange puts the tenure on what swap returns, which removes the old ground; the tenure goes on without a gap. If swap fails, the
// tenure stands where it stood. It must not run twice at a time. If the tenure is left meanwhile, so is the new ground.
func (t *Tenure) Exchange(swap func() (Ground, error)) error {
	t.mu.Lock()
	t.changing = true
	t.mu.Unlock()
	next, err := swap()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing = false
	switch {
	case err == nil && t.removal != nil:
		next.Leave()
		err = context.Cause(t.ctx)
	case err == nil:
		t.ground = next
		t.vigil.dismiss(t)
		t.vigil.keep(t)
	case t.gone, errors.Is(err, ErrGone):
		t.end(t.deleted)
	}
	t.gone = false
	return err
}

// Context returns a context that ends with the tenure. Contexts for users are made with NewContext.
func (t *Tenure) Context() context.Context { return t.ctx }

// NewContext returns a context that ends when the tenure is stopped or ends, for the same cause, or when it is cancelled. It is
// bound to the session.
func (t *Tenure) NewContext() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.use)
	return Bound(ctx, t.own), cancel
}

// Err returns nil while the tenure lasts, and why it has ended afterwards.
func (t *Tenure) Err() error {
	if err := t.own.Err(); err != nil && t.ctx.Err() == nil {
		return err
	}
	return context.Cause(t.ctx)
}

// Stopped returns nil while something may be held for the tenure, and why it may not afterwards.
func (t *Tenure) Stopped() error {
	if err := t.Err(); err != nil {
		return err
	}
	return context.Cause(t.use)
}

// Leave ends the tenure, for that cause unless it has ended before, and gives the place up. Leaving twice is leaving once.
func (t *Tenure) Leave(cause error) *Removal {
	t.vigil.dismiss(t)
	t.own.End()
	t.end(cause)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removal == nil {
		t.removal = t.ground.Leave()
	}
	return t.removal
}
