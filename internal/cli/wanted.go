package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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

// lockLayouts are how the nodes are named of whoever takes one of these words.
var lockLayouts = map[string]lock.Layout{ //nolint:gochecknoglobals // a table
	layoutCurator: lock.Curator, layoutCuratorRW: lock.Curator, layoutKazoo: lock.Kazoo, layoutBoth: lock.Both,
}

// wanted is a lock of some kind.
type wanted interface {
	Lock(ctx context.Context) (*lock.Hold, error)
	TryLock(ctx context.Context) (*lock.Hold, error)
}

// takeKind checks the flags that say which kind of lock it is.
func (l *locker) takeKind(cmd *cobra.Command) error {
	var wrong string
	switch set, some, delay := len(l.paths) > 1, l.permits.limit > 0, l.delay > 0; {
	case set && (l.shared || some):
		wrong = "several PATHs are locked for one holder: leave --shared and --permits out, or name one PATH"
	case set && l.layout.value == layoutCuratorRW:
		wrong = "several PATHs have no --layout curator-rw: choose another, or name one PATH"
	case some && l.shared:
		wrong = "--permits and --shared contradict each other: leave one out"
	case some && l.layout.value != layoutCurator:
		wrong = "--permits has no --layout but curator: leave one out"
	case l.newLimit && !some:
		wrong = "--new-limit is for --permits"
	case delay && some:
		wrong = "--delay is for locks: holders of --permits are at work at the same time in any case"
	default:
		return nil
	}
	return usage(cmd, errors.New(wrong))
}

// wanted returns the lock that the flags ask for.
//
// A Mutex, a Set and an RWMutex of one path exclude each other, and each is known to the program in Java or Python that its nodes are
// named after. So who wants a lock alone gets a Mutex, which InterProcessMutex knows; only a path that is shared with
// InterProcessReadWriteLock, which does not know that, takes a writer.
func (l *locker) wanted(client *zk.Client) (wanted, error) {
	label, acl, layout, delay := l.label, l.connection.acl.list, lockLayouts[l.layout.value], time.Duration(l.delay)
	rw := lock.RWConfig{Label: label, ACL: acl, Layout: layout, Delay: delay}
	switch {
	case l.permits.limit > 0:
		s, err := lock.NewSemaphore(client, l.path, lock.StoredLimit(l.permits.limit), lock.SemaphoreConfig{Label: label, ACL: acl})
		return some{s, l.permits.n}, err
	case len(l.paths) > 1:
		return lock.NewSet(client, l.paths, lock.SetConfig{Label: label, ACL: acl, Layout: layout, Delay: delay})
	case l.shared:
		m, err := lock.NewRWMutex(client, l.path, rw)
		return reading{m}, err
	case l.layout.value == layoutCuratorRW:
		return lock.NewRWMutex(client, l.path, rw)
	default:
		return lock.NewMutex(client, l.path, lock.Config{Label: label, ACL: acl, Layout: layout, Delay: delay})
	}
}

// reading is a read/write lock that is wanted for reading.
type reading struct{ m *lock.RWMutex }

func (r reading) Lock(ctx context.Context) (*lock.Hold, error)    { return r.m.RLock(ctx) }
func (r reading) TryLock(ctx context.Context) (*lock.Hold, error) { return r.m.TryRLock(ctx) }

// inTheWay says for whom we wait, at the first of our paths where there is somebody. It is empty if nobody is there, or nobody knows.
func (l *locker) inTheWay(ctx context.Context, client *zk.Client) string {
	for _, path := range l.paths {
		line, err := lock.Inspect(ctx, client, path)
		if err != nil {
			return ""
		}
		if l.permits.limit > 0 {
			return l.crowded(line)
		}
		if why := l.blocked(path, line); why != "" {
			return why
		}
	}
	if l.delay > 0 {
		return "the holder before was lost, and its --delay has not passed"
	}
	return ""
}

// blocked says who in the line keeps us waiting.
func (l *locker) blocked(path string, line []lock.Contender) string {
	where := ""
	if len(l.paths) > 1 {
		where = path + " is "
	}
	readers := 0
	for i, c := range line {
		switch {
		case c.Known && c.Owner.PID == l.pid && c.Owner.Host == l.host: // who stands behind us is not in our way
			return ""
		case c.Kind == lock.Reader && l.shared:
			readers++
			continue
		case readers > 0: // one who will not share stands between us and those who do
			return fmt.Sprintf("%s waits for it alone, %d in line", owner(c), len(line))
		}
		how := "held"
		if c.Kind == lock.Reader {
			how = "shared"
		}
		others := ""
		if n := countHolders(line[i+1:]); n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		return fmt.Sprintf("%s%s by %s%s for %v, %d in line", where, how, owner(c), others, max(0, time.Since(c.Since)).Round(time.Second), len(line))
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
