package lock

// Semaphore.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// MaxPermits is how many permits one Acquire may take: their nodes are created in one transaction.
const MaxPermits = 1000

// Semaphore is a number of permits that all processes with its path share. It is fair: contenders stand in a line,
// and only the first is given permits, so a large request waits until there are enough for it, and smaller ones wait
// behind it. It works on the nodes of Curator's InterProcessSemaphoreV2, or, with SemaphoreConfig.Layout, on those of
// kazoo's Semaphore. The two have nothing in common: all users of a path have one layout.
//
// Curator acquires several leases one by one, and keeps what it has while it waits for more. With fewer permits than
// docs/interop.md asks for, such clients can deadlock with each other, and an Acquire in front of them waits with
// them until its context ends.
//
// A Semaphore may be used by any number of goroutines, each with nodes of its own. Acquisitions of one Semaphore join
// the line in the order of the calls.
//
// Tokens grow in the order in which permits are given out, and no two holds have the same. A fence that refuses smaller
// tokens would admit only the latest of several holders, so use guards here.
type Semaphore struct {
	base
	limit  Limit
	queue  line.Line
	leases line.Line
	pool   line.Pool
	access attempt.Access // to the path itself

	mu      sync.Mutex // guards the tickets; never held while anything is waited for
	tickets ticket     // the head of a ring of callers that have not joined the line yet
}

// Where a semaphore's line is, and its permits: as Curator's InterProcessSemaphoreV2 has them.
const (
	queueDir  = "locks"
	leasesDir = "leases"
)

// kazooQueue ends the path of the lock at which kazoo's Semaphore has its line, a sibling. The permits are the children
// of the semaphore itself.
const kazooQueue = "-__lock__"

// NewSemaphore returns the semaphore at path, which no other recipe may use. It does not contact the server: the path
// and missing parents are created when they are needed, and removed when they are not, unless they store a limit. It
// returns an error if the path, the limit or the configuration is invalid.
func NewSemaphore(client *zk.Client, path string, limit Limit, config SemaphoreConfig) (*Semaphore, error) {
	cfg, err := checkNew(client, path, config.config())
	if err != nil {
		return nil, err
	}
	if err := limit.check(path); err != nil {
		return nil, err
	}
	s := &Semaphore{base: base{client: client, name: path, cfg: cfg}, limit: limit}
	s.tickets.init()
	s.access.ACL, s.access.AnyACL = cfg.ACL, cfg.AnyACL
	switch {
	case cfg.Layout == Both:
		return nil, attempt.Bad("lock: %s: a semaphore has one layout; use Curator or Kazoo", path)
	case cfg.Layout == Kazoo && !limit.stored:
		return nil, attempt.Bad("lock: %s: kazoo stores a semaphore's limit; use StoredLimit", path)
	case cfg.Layout == Kazoo:
		contenderLine(&s.queue, path+kazooQueue, cfg, lockPrefixes, anyone)
		contenderLine(&s.leases, path, cfg, leasePrefixes, anyone)
		s.leases.Fixed, s.leases.Prefix = true, func(guid string) string { return strings.ReplaceAll(guid, "-", "") }
	default:
		contenderLine(&s.queue, path+"/"+queueDir, cfg, lockPrefixes, anyone)
		contenderLine(&s.leases, path+"/"+leasesDir, cfg, leasePrefixes, anyone)
	}
	s.leases.Markers = []line.Marker{line.CuratorLease}
	s.pool = line.Pool{Line: &s.queue, Leases: &s.leases, Limit: limit.line(path)}
	if err := checkSize(&s.queue, &s.leases); err != nil {
		return nil, err
	}
	return s, nil
}

// Path returns the semaphore's path.
func (s *Semaphore) Path() string { return s.name }

// Acquire waits until n permits are free and all earlier contenders are served, and returns one hold of all n: they end
// together, and Unlock returns all.
//
// Acquire returns an error at once if n can never be served: if it is less than one, larger than the limit or larger
// than MaxPermits, or if the nodes of n permits do not fit into one request of half a mebibyte. A watched limit may
// still be raised, so a larger request waits, and others behind it; it must exist all the time, or Acquire returns an
// error. All other errors are those of Mutex.Lock.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Hold, error) {
	s.mu.Lock()
	t := s.tickets.draw()
	s.mu.Unlock()
	defer t.drop(&s.mu)
	return s.permits(ctx, n, func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error) {
		if err := s.tickets.turn(ctx, &s.mu, t, sess); err != nil {
			return nil, err
		}
		own, count, err := s.pool.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		t.enter(&s.mu, sess)
		if !own.First() {
			queued(own)
		}
		if count, err = s.pool.Await(ctx, own, count); err != nil {
			own.Release()
			return nil, err
		}
		return s.exchange(ctx, own, n, count, func() error {
			queued(own)
			return nil
		})
	})
}

// TryAcquire returns a hold of n permits if so many are free and no contender waits, and otherwise ErrHeld at once.
// As with Mutex.TryLock, ErrHeld may be outdated, and no permit is given twice. A try that fails costs one round
// trip, or two with a stored limit.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Hold, error) {
	return s.permits(ctx, n, func(ctx context.Context, sess *zk.Session, _ func(*line.Own)) (*line.Own, error) {
		count := s.pool.Count(sess)
		empty, err := line.Empty(ctx, sess, &s.queue)
		if err != nil {
			return nil, err
		}
		if free, err := count.Free(ctx); err != nil {
			return nil, err
		} else if !empty || free < n {
			return nil, ErrHeld
		}
		own, count, err := s.pool.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		if !own.First() {
			own.Release()
			return nil, ErrHeld
		}
		return s.exchange(ctx, own, n, count, func() error { return ErrHeld })
	})
}

// permits acquires n permits. Take waits for them, or does not. It calls queued when it has to wait.
func (s *Semaphore) permits(ctx context.Context, n int, take contend) (*Hold, error) {
	if err := s.check(n); err != nil {
		return nil, s.report(Permit).failed(ctx, s.failed(err))
	}
	return s.acquire(ctx, s, Permit, func(ctx context.Context, r *report) (*Hold, error) {
		r.wants(n)
		return s.alone(ctx, r, func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error) {
			if err := s.access.Check(ctx, sess, s.name); err != nil { // its line and its permits may be below
				return nil, err
			}
			if err := s.store(ctx, sess); err != nil {
				return nil, err
			}
			return take(ctx, sess, queued)
		})
	})
}

// check returns an error if n permits can never be served.
func (s *Semaphore) check(n int) error {
	switch {
	case n < 1 || n > MaxPermits:
		return attempt.Bad("permits out of range: %d; use 1 to %d", n, MaxPermits)
	case !s.limit.holds(n):
		return fmt.Errorf("%d permits exceed the limit of %d", n, s.limit.permits)
	}
	return line.CheckSize(slices.Repeat([]*line.Line{&s.leases}, n)...)
}

// exchange gives up a contender that is first, for permits.
func (s *Semaphore) exchange(
	ctx context.Context, own *line.Own, n int, count *line.Count, full func() error,
) (*line.Own, error) {
	leases, err := s.pool.Take(ctx, own, n, count, full)
	if err != nil {
		own.Release()
		return nil, err
	}
	return leases, nil
}
