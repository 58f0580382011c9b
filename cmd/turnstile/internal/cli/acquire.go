package cli

// Connecting and waiting for the lock.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// acquire connects and waits for the lock. The caller closes the client, which comes back with an error, too.
func (l *locker) acquire(ctx context.Context) (*zk.Client, *lock.Hold, error) {
	begin := time.Now()
	ctx = l.nesting.within(ctx)
	client, sess, err := l.run.Connection.Open(ctx, l.app)
	if err != nil {
		return nil, nil, err
	}
	l.run.WarnOfTimes(sess.Timeout())
	fits := survey.Lock
	switch some := l.permits.limit > 0; {
	case some && l.layout.Value == layoutKazoo:
		fits = survey.KazooPermits
	case some:
		fits = survey.Permits
	}
	m, err := l.anyLock(client)
	if err != nil {
		return client, nil, &command.Error{Code: command.ExitUsage, Err: err}
	}
	err = l.run.Connection.During(ctx, client, sess, func(ctx context.Context) error {
		if err := refuseOthers(ctx, client, sess, l.run.Paths, fits); err != nil {
			return err
		}
		return l.storeLimit(ctx, sess)
	})
	if err != nil {
		return client, nil, err
	}
	hold, err := l.take(ctx, m, client, sess)
	if err != nil {
		return client, nil, err
	}
	l.app.Detail("%s: locked after %v, token %d, session %s with a timeout of %v, at %s",
		l.run.Path, time.Since(begin).Round(time.Millisecond), hold.Token(),
		command.SessionID(hold.Session().ID()), hold.Session().Timeout(), l.run.Connection.Where())
	return client, hold, nil
}

// take takes the lock as --no-wait and --wait say.
func (l *locker) take(ctx context.Context, m anyLock, client *zk.Client, sess *zk.Session) (*lock.Hold, error) {
	wait := func(ctx context.Context) (*lock.Hold, error) {
		ctx, stop := l.run.Connection.Until(ctx, client, sess, func(cause error) {
			l.app.Detail("%s: joining the line again, at its end: %v", l.run.Path, cause)
		})
		defer stop()
		l.warnOfNesting(ctx, client)
		hold, err := m.Lock(ctx)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		return hold, err
	}
	inTheWay := func(ctx context.Context) string { return l.inTheWay(ctx, client) }
	return command.Acquire(ctx, &l.run, client, m.TryLock, wait, lock.ErrHeld, inTheWay)
}

// warnOfNesting warns if we wait for the turnstile that runs us, which waits for us to end. It is only a warning: in
// the background of that turnstile's command it may be intended.
func (l *locker) warnOfNesting(ctx context.Context, client *zk.Client) {
	ours := strings.Split(l.app.Env.Vars["TURNSTILE_PATHS"], "\n")
	for _, path := range l.run.Paths {
		if !slices.Contains(ours, path) {
			continue
		}
		line, err := lock.Inspect(ctx, client, path)
		i := slices.IndexFunc(line, func(c lock.Contender) bool {
			return c.Holder && command.SessionID(c.Session) == l.app.Env.Vars["TURNSTILE_SESSION"]
		})
		if err != nil || i < 0 || l.shared && line[i].Kind == lock.Reader || line[i].Kind == lock.Permit {
			continue
		}
		l.app.Say("%s: warning: it is held by pid %d, which runs this command: "+
			"if it waits for this command to end, they deadlock", path, line[i].Owner.PID)
	}
}
