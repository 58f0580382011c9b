package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// reconnectWait is how long a command that has ended waits for a server to give the lock back to.
const reconnectWait = 3 * time.Second

// tellAfter is how long to wait before telling so.
const tellAfter = 200 * time.Millisecond

var errWaited = errors.New("waited long enough")

// acquire connects and waits for the lock. The caller closes the client, which comes back with an error, too.
func (l *locker) acquire(ctx context.Context) (*zk.Client, *lock.Hold, error) {
	begin := time.Now()
	if l.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(l.wait), errWaited)
		defer cancel()
	}
	client, sess, err := l.open(ctx, &l.connection)
	if errors.Is(err, errWaited) {
		return nil, nil, l.connection.noServer(nil)
	}
	if err != nil {
		return nil, nil, err
	}
	l.mentionGrace(sess.Timeout())
	fits := placeLock
	if l.permits.limit > 0 {
		fits = placePermits
	}
	if err := refuseOthers(ctx, client, sess, l.paths, fits); err != nil {
		return client, nil, err
	}
	wanted, err := l.wanted(client)
	if err != nil {
		return client, nil, &exitError{code: ExitUsage, err: err}
	}
	if err := l.storeLimit(ctx, sess); err != nil {
		return client, nil, err
	}
	hold, err := l.wantLock(ctx, wanted, client, sess)
	if err != nil {
		return client, nil, err
	}
	l.detail("%s: locked after %v, token %d, session %s with a timeout of %v, at %s",
		l.path, time.Since(begin).Round(time.Millisecond), hold.Token(),
		sessionID(hold.Session().ID()), hold.Session().Timeout(), l.connection.where())
	return client, hold, nil
}

// wantLock takes the lock as --no-wait and --wait say.
func (l *locker) wantLock(ctx context.Context, m wanted, client *zk.Client, sess *zk.Session) (*lock.Hold, error) {
	var hold *lock.Hold
	var err error
	if l.noWait {
		ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(l.connection.connectTimeout), errNoAnswer)
		defer cancel()
		// Whoever left before we came has left, also for the server that we happen to be connected to.
		if err = l.sync(ctx, sess); err == nil {
			hold, err = m.TryLock(ctx)
		}
	} else {
		ctx, stop := l.connection.minded(ctx, client, sess, func(cause error) {
			l.detail("%s: joining the line again at its end: %v", l.path, cause)
		})
		l.warnOfNesting(ctx, client)
		tell := l.tellLater(func() string { return l.inTheWay(ctx, client) })
		hold, err = m.Lock(ctx)
		tell()
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		stop()
	}
	switch {
	case errors.Is(err, lock.ErrHeld), errors.Is(err, errWaited):
		return nil, l.conflicted(ctx, client, l.inTheWay)
	case errors.Is(err, errNoAnswer):
		return nil, l.connection.noServer(client.LastError())
	}
	return hold, err
}

// warnOfNesting says that we wait for the turnstile that our command line is run by, which waits for us to end. It
// may be meant so: it does not if we are in its background.
func (l *locker) warnOfNesting(ctx context.Context, client *zk.Client) {
	ours := strings.Split(l.env.get("TURNSTILE_PATHS"), "\n")
	for _, path := range l.paths {
		if !slices.Contains(ours, path) {
			continue
		}
		line, err := lock.Inspect(ctx, client, path)
		i := slices.IndexFunc(line, func(c lock.Contender) bool {
			return c.Holder && sessionID(c.Session) == l.env.get("TURNSTILE_SESSION")
		})
		if err != nil || i < 0 || l.shared && line[i].Kind == lock.Reader || line[i].Kind == lock.Permit {
			continue
		}
		l.say("%s: warning: it is held by pid %d, under which this command runs: "+
			"if that waits for this command, neither goes on", path, line[i].Owner.PID)
	}
}

// held is what a command runs under: a lock, a leadership, the claim of an item.
type held interface {
	Context() context.Context
	Session() *zk.Session
	number() int64 // the fencing token
}

// owned is held until it is given back: a lock, or a leadership.
type owned interface {
	held
	release() error
	releaseWait(ctx context.Context) error
}

type lockHeld struct{ *lock.Hold }

func (h lockHeld) number() int64                         { return int64(h.Token()) }
func (h lockHeld) release() error                        { return h.Unlock() }
func (h lockHeld) releaseWait(ctx context.Context) error { return h.UnlockWait(ctx) }

// giveBack unlocks, and returns why the hold had ended before if it had. Closing the client sends what is on its way when there is a
// connection; when there is none, it is worth waiting a little for the next one: the others would wait for the session's timeout.
func giveBack(ctx context.Context, hold owned) error {
	err := hold.release()
	if state, _ := hold.Session().State(); state == zk.Suspended {
		ctx, cancel := context.WithTimeout(ctx, reconnectWait)
		defer cancel()
		_ = hold.releaseWait(ctx) // the session's timeout does it otherwise
	}
	return err
}
