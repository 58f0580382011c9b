package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// watchAfter is how long a hold must last before it watches its own node for deletion by somebody else. It keeps the watch off the
// way of short holds.
const watchAfter = 100 * time.Millisecond

// Hold is a lock that is held. It belongs to one session and never outlives it. Its methods may be called from any goroutine.
type Hold struct {
	place  *line.Place
	ctx    holdContext
	cancel context.CancelCauseFunc
	token  Token
	timer  *time.Timer

	once    sync.Once
	removal *line.Removal
	lost    error // why the hold had ended before it was unlocked
}

// holdContext ends with its session, and its Err looks at the session's deadline itself: a holder that was stopped for a while must not
// find its hold alive because it runs before the session's timer does.
type holdContext struct {
	context.Context //nolint:containedctx // it is one
	sess            *zk.Session
}

func (c holdContext) Err() error {
	_ = c.sess.Err()
	return c.Context.Err()
}

func newHold(place *line.Place) (*Hold, error) {
	token, err := newToken(place.Stat().Czxid, 0)
	if err != nil {
		return nil, err
	}
	h := &Hold{place: place, token: token}
	ctx, cancel := context.WithCancelCause(place.Session().Context())
	h.ctx, h.cancel = holdContext{ctx, place.Session()}, cancel
	h.timer = time.AfterFunc(watchAfter, h.watch)
	return h, nil
}

// watch ends the hold when somebody else deletes its node.
func (h *Hold) watch() {
	if err := h.place.Watch(h.ctx, nil); errors.Is(err, line.ErrGone) {
		h.cancel(ErrDeleted)
	}
}

// Context returns the hold's context. It ends when the hold does, and context.Cause says why: ErrUnlocked; zk.ErrLost when the
// server has not been heard from until the session's local deadline, which comes before the server can give the lock to anybody else;
// zk.ErrExpired or zk.ErrClosed when the session ended otherwise; ErrDeleted when somebody deleted its node.
//
// Of a deletion the holder hears only after the fact, and the next in line may be quicker: whoever deletes nodes of a lock that is
// held takes that upon themselves. Tokens and guards hold then, too.
func (h *Hold) Context() context.Context { return h.ctx }

// Token returns the fencing token: larger than that of every earlier hold of the lock.
func (h *Hold) Token() Token { return h.token }

// Guard returns the operation to put first in a multi: the server refuses the whole multi with zk.NoNode once the hold is gone.
//
//	_, err = hold.Session().Multi(ctx, hold.Guard(), zk.SetData("/stock", stock, version))
func (h *Hold) Guard() zk.Op { return zk.Check(h.place.Path(), -1) }

// Path returns the path of the hold's own node, which exists exactly as long as the server knows the hold.
func (h *Hold) Path() string { return h.place.Path() }

// Session returns the session that the hold belongs to. Guarded writes go through it.
func (h *Hold) Session() *zk.Session { return h.place.Session() }

// Unlock gives the lock up. It does not wait for the server: the removal of the node is on its way when Unlock returns, and it is
// repeated in the background until it is done or the session has ended. Whatever the same client asks for next comes after it.
//
// It returns nil if the lock was held until now, and why it was not otherwise: then somebody else may have had it meanwhile. A second
// Unlock does nothing and returns what the first did.
func (h *Hold) Unlock(context.Context) error {
	h.once.Do(func() {
		h.lost = context.Cause(h.ctx)
		h.timer.Stop()
		h.cancel(ErrUnlocked)
		h.removal = h.place.Leave()
	})
	return h.lost
}

// UnlockWait gives the lock up and waits until the server has removed the node. It returns what Unlock does; the server's refusal if
// it will not delete the node; ctx's cause if that ends first, while the removal goes on in the background.
func (h *Hold) UnlockWait(ctx context.Context) error {
	return errors.Join(h.Unlock(ctx), h.removal.Wait(ctx))
}
