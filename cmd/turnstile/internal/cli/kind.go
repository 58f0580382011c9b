package cli

// The kinds of lock that turnstile lock takes.

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// What --layout of "turnstile lock" takes.
const (
	layoutCurator   = "curator"
	layoutCuratorRW = "curator-rw"
	layoutKazoo     = "kazoo"
	layoutBoth      = "both"
)

// lockLayouts are the layouts that the words stand for.
var lockLayouts = map[string]lock.Layout{ //nolint:gochecknoglobals // a table
	layoutCurator: lock.Curator, layoutCuratorRW: lock.Curator, layoutKazoo: lock.Kazoo, layoutBoth: lock.Both,
}

// anyLock is a lock of any kind.
type anyLock interface {
	Lock(ctx context.Context) (*lock.Hold, error)
	TryLock(ctx context.Context) (*lock.Hold, error)
}

// checkKind checks the flags that say which kind of lock it is.
func (l *locker) checkKind(cmd *cobra.Command) error {
	switch set, some := len(l.run.Paths) > 1, l.permits.limit > 0; {
	case set && (l.shared || some):
		return command.Usagef(cmd, "several PATHs have one holder: leave --shared and --permits out, or name one PATH")
	case set && l.layout.Value == layoutCuratorRW:
		return command.Usagef(cmd, "--layout curator-rw does not support several PATHs: choose another, or name one")
	case some && l.shared:
		return command.Usagef(cmd, "--permits and --shared contradict each other: leave one out")
	case some && l.layout.Value != layoutCurator && l.layout.Value != layoutKazoo:
		return command.Usagef(cmd, "--permits supports only --layout curator and kazoo: choose one of them")
	case l.newLimit && !some:
		return command.Usagef(cmd, "--new-limit is for --permits")
	case some && l.delay > 0:
		return command.Usagef(cmd, "--delay is for locks: holders of --permits work at the same time in any case")
	}
	return nil
}

// anyLock returns the lock that the flags ask for.
//
// A Mutex, a Set and an RWMutex of one path exclude each other, and each excludes the program in Java or Python that
// its nodes are named after. A lock that is not shared is therefore a Mutex, which InterProcessMutex understands; only
// a path that is used with InterProcessReadWriteLock, which does not understand that, needs a writer.
func (l *locker) anyLock(client *zk.Client) (anyLock, error) {
	label, acl, layout, delay := l.label, l.run.Connection.ACL(), lockLayouts[l.layout.Value], time.Duration(l.delay)
	anyACL := l.run.Connection.AnyACL
	hooks := lock.Hooks{
		Stranger: func(e lock.Event) { l.run.WarnOfStranger(e.Node) },
		Stray:    func(e lock.Event) { l.run.WarnOfStray(e.Node) },
		Deadlock: func(e lock.Event) { l.nesting.warn(l.run.Path, e.Err) },
	}
	onDeadlock := l.nesting.mode()
	rw := lock.RWConfig{
		Label: label, ACL: acl, AnyACL: anyACL, Layout: layout, Delay: delay, Hooks: hooks, OnDeadlock: onDeadlock,
	}
	switch {
	case l.permits.limit > 0:
		cfg := lock.SemaphoreConfig{
			Label: label, ACL: acl, AnyACL: anyACL, Layout: layout, Hooks: hooks, OnDeadlock: onDeadlock,
		}
		s, err := lock.NewSemaphore(client, l.run.Path, lock.StoredLimit(l.permits.limit), cfg)
		return semaphore{s, l.permits.n}, err
	case len(l.run.Paths) > 1:
		cfg := lock.SetConfig{
			Label: label, ACL: acl, AnyACL: anyACL, Layout: layout, Delay: delay, Hooks: hooks, OnDeadlock: onDeadlock,
		}
		return lock.NewSet(client, l.run.Paths, cfg)
	case l.shared:
		m, err := lock.NewRWMutex(client, l.run.Path, rw)
		return reader{m}, err
	case l.layout.Value == layoutCuratorRW:
		return lock.NewRWMutex(client, l.run.Path, rw)
	default:
		cfg := lock.Config{
			Label: label, ACL: acl, AnyACL: anyACL, Layout: layout, Delay: delay, Hooks: hooks, OnDeadlock: onDeadlock,
		}
		return lock.NewMutex(client, l.run.Path, cfg)
	}
}

// reader is the readers' side of a read/write lock.
type reader struct{ m *lock.RWMutex }

func (r reader) Lock(ctx context.Context) (*lock.Hold, error)    { return r.m.RLock(ctx) }
func (r reader) TryLock(ctx context.Context) (*lock.Hold, error) { return r.m.TryRLock(ctx) }

// inTheWay says which contender we wait for, at the first of our paths that has one; empty if that is not known.
func (l *locker) inTheWay(ctx context.Context, client *zk.Client) string {
	for _, path := range l.run.Paths {
		line, err := lock.Inspect(ctx, client, path)
		if err != nil {
			return ""
		}
		if l.permits.limit > 0 {
			return l.permitsTaken(line)
		}
		if why := l.blocked(path, line); why != "" {
			return why
		}
	}
	if l.delay > 0 {
		return "the previous holder was lost, and its --delay has not passed"
	}
	return ""
}

// blocked says which contender keeps us waiting, and how many do not hold, which is the "waiting" of turnstile locks.
func (l *locker) blocked(path string, line []lock.Contender) string {
	where := ""
	if len(l.run.Paths) > 1 {
		where = path + " is "
	}
	readers := 0
	for i, c := range line {
		switch {
		case c.Known && c.Owner.PID == l.pid && c.Owner.Host == l.host: // contenders behind us are not in our way
			return ""
		case c.Kind == lock.Reader && l.shared:
			readers++
			continue
		case readers > 0: // a writer stands between us and the readers
			return fmt.Sprintf("%s waits for it alone, %d in line", owner(c), len(line)-countHolders(line))
		}
		how := "held"
		if c.Kind == lock.Reader {
			how = "shared"
		}
		others := ""
		if n := countHolders(line[i+1:]); n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		held := max(0, time.Since(c.Since)).Round(time.Second)
		return fmt.Sprintf("%s%s by %s%s for %v, %d in line",
			where, how, owner(c), others, held, len(line)-countHolders(line))
	}
	return ""
}

func countHolders(line []lock.Contender) int {
	n := 0
	for _, c := range line {
		if c.Holder {
			n++
		}
	}
	return n
}
