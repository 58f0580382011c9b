package lock

// What a lost connection does to a hold.

import (
	"errors"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// OnSuspend says what a lost connection does to a hold. The session, and with it the lock, outlives the connection.
type OnSuspend int

// What a lost connection does to a hold.
const (
	// KeepHold lets the hold go on until the session is uncertain, which comes before a server can give the lock to
	// another client.
	KeepHold OnSuspend = iota
	// EndHold ends the hold's context with ErrSuspended as soon as the connection is lost, as Curator's standard error
	// policy does. The lock stays this holder's until Unlock, or until the session's end.
	EndHold
)

// ErrSuspended is the cause of a hold's context after the connection was lost, with Config.OnSuspend set to EndHold.
var ErrSuspended = errors.New("the connection was lost, which ends the hold (OnSuspend)")

func (o OnSuspend) check() error {
	if o != KeepHold && o != EndHold {
		return attempt.Bad("lock: unknown OnSuspend %d; use KeepHold or EndHold", int(o))
	}
	return nil
}

// endSuspended ends the holds of an ownership when the connection is lost. A session that leaves the state Connected
// has lost its connection, so the first change counts, even if the session is connected again when we look. The state
// is read here, before the ownership serves its first hold.
func endSuspended(o *line.Ownership) {
	state, changed := o.Session().State()
	go suspended(o, o.Session(), state, changed)
}

func suspended(o *line.Ownership, sess *zk.Session, state zk.State, changed <-chan struct{}) {
	if state == zk.Connected {
		select {
		case <-changed:
		case <-o.Use().Done():
			return
		}
	}
	if sess.Err() == nil { // or the session's end is the better answer, and on its way
		o.Stop(ErrSuspended)
	}
}
