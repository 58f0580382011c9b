package cli

import (
	"context"
	"errors"
	"fmt"
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
	l.detail("%s: locked after %v, token %d, session %s with a timeout of %v", l.path, time.Since(begin).Round(time.Millisecond),
		hold.Token(), sessionID(hold.Session().ID()), hold.Session().Timeout())
	return client, hold, nil
}

// wantLock takes the lock as --no-wait and --wait say.
func (l *locker) wantLock(ctx context.Context, m wanted, client *zk.Client, sess *zk.Session) (*lock.Hold, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
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
		left := make(chan struct{})
		go func() {
			defer close(left)
			l.mind(ctx, cancel, client, sess)
		}()
		hold, err = m.Lock(ctx)
		cause := context.Cause(ctx)
		cancel(nil)
		<-left
		if err != nil && cause != nil {
			err = cause
		}
	}
	switch {
	case errors.Is(err, lock.ErrHeld), errors.Is(err, errWaited):
		return nil, l.conflicted(ctx, client, l.inTheWay)
	case errors.Is(err, errNoAnswer):
		return nil, l.connection.noServer(client.LastError())
	}
	return hold, err
}

// mind ends the wait when the server has been away for too long. Mutex.Lock itself would wait for it for ever.
func (l *locker) mind(ctx context.Context, cancel context.CancelCauseFunc, client *zk.Client, sess *zk.Session) {
	tell := time.NewTimer(tellAfter)
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tell.C:
			l.tell(ctx, client)
			continue
		case <-sess.Context().Done():
		}
		l.detail("%s: joining the line again at its end: %v", l.path, context.Cause(sess.Context())) //nolint:contextcheck // the session's end, not ours
		find, stop := context.WithTimeoutCause(ctx, time.Duration(l.connection.connectTimeout), errNoAnswer)
		next, err := client.Session(find)
		stop()
		if err != nil {
			cancel(err)
			return
		}
		sess = next
	}
}

// sync has the server that we happen to be connected to hear of all that has happened at our paths.
func (l *locker) sync(ctx context.Context, sess *zk.Session) error {
	b := sess.Batch()
	var last *zk.Future[struct{}]
	for _, path := range l.paths {
		last = b.Sync(path)
	}
	b.Send()
	_, err := last.Get(ctx) // answers come in the order of the requests
	return err
}

// tell tells for whom we wait.
func (l *locker) tell(ctx context.Context, client *zk.Client) {
	if !l.verbose {
		return
	}
	if why := l.inTheWay(ctx, client); why != "" {
		l.detail("%s: waiting, %s", l.path, why)
	}
}

// held is what a command runs under: a lock, or a leadership.
type held interface {
	Context() context.Context
	Session() *zk.Session
	number() int64 // the fencing token
	release(ctx context.Context) error
	releaseWait(ctx context.Context) error
}

type lockHeld struct{ *lock.Hold }

func (h lockHeld) number() int64                         { return int64(h.Token()) }
func (h lockHeld) release(ctx context.Context) error     { return h.Unlock(ctx) }
func (h lockHeld) releaseWait(ctx context.Context) error { return h.UnlockWait(ctx) }

// giveBack unlocks, and returns why the hold had ended before if it had. Closing the client sends what is on its way when there is a
// connection; when there is none, it is worth waiting a little for the next one: the others would wait for the session's timeout.
func giveBack(ctx context.Context, hold held) error {
	err := hold.release(ctx)
	if state, _ := hold.Session().State(); state == zk.Suspended {
		ctx, cancel := context.WithTimeout(ctx, reconnectWait)
		defer cancel()
		_ = hold.releaseWait(ctx) // the session's timeout does it otherwise
	}
	return err
}

// conflicted is the error of who did not get it, and says why not.
func (l *locker) conflicted(ctx context.Context, client *zk.Client, why func(context.Context, *zk.Client) string) error {
	if l.quiet {
		return &exitError{code: int(l.conflict)}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := fmt.Errorf("%s: not %s", l.path, l.words.won)
	if why := why(ctx, client); why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return &exitError{code: int(l.conflict), err: err, hint: "turnstile who shows the line"}
}
