package lock

// Set.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Set is several mutexes that are taken together, all or none. It stands in the lines of its paths, which it shares
// with Mutex, Curator's InterProcessMutex and the other locks that Mutex respects.
//
// Its nodes are created in one transaction, so all lines have the same order of sets: two sets with common paths never
// deadlock, whatever the order of their paths. Taking one mutex after the other does not guarantee that.
//
// A Set may be used by any number of goroutines. They exclude each other like any other contenders, each with nodes
// of its own.
type Set struct {
	base
	lines []*line.Line
	paths []string
}

// NewSet returns the set of the mutexes at paths. It does not contact the server. It returns an error if there is no
// path, if one is invalid or given twice, if their nodes do not fit into one request of half a mebibyte (about a
// thousand paths of ordinary length), and if the configuration is invalid.
func NewSet(client *zk.Client, paths []string, config SetConfig) (*Set, error) {
	if len(paths) == 0 {
		return nil, attempt.Bad("lock: no path given; a set needs at least one")
	}
	cfg := config.config()
	s := &Set{base: base{client: client, name: strings.Join(paths, " and "), cfg: cfg}, paths: slices.Clone(paths)}
	paths = s.paths
	named := setRecords(paths)
	for i, path := range paths {
		checked, err := checkNew(client, path, cfg)
		if err != nil {
			return nil, err
		}
		s.cfg = checked
		if slices.Contains(paths[:i], path) {
			return nil, fmt.Errorf("lock: duplicate path %s; a set would wait for itself", path)
		}
		l := new(line.Line)
		contenderLine(l, path, checked, lockPrefixes, anyone)
		l.Data = ownerData(cfg.Label, named[i])
		s.lines = append(s.lines, l)
	}
	if err := checkSize(s.lines...); err != nil {
		return nil, err
	}
	return s, nil
}

// Paths returns the set's paths as they were given.
func (s *Set) Paths() []string { return slices.Clone(s.paths) }

// Lock waits until it is first in all of the lines, and returns one hold of all locks: they end together, and Unlock
// releases all. Its token is larger than that of every earlier hold of any of the paths; Guards checks a node at each
// path. Its errors are those of Mutex.Lock. If another client deletes one of its nodes while it waits, it joins all
// lines again.
//
// With Reenter, Lock nests in a hold of this Set and of no other: a Mutex or another Set with one of its paths waits.
func (s *Set) Lock(ctx context.Context) (*Hold, error) {
	return s.lock(ctx, func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error) {
		own, err := line.Enter(ctx, sess, s.lines...)
		if err != nil {
			return nil, err
		}
		return s.await(ctx, own, queued)
	})
}

// TryLock returns the hold if all of the mutexes are free, and otherwise ErrHeld at once, as Mutex.TryLock does. A
// try that fails costs one round trip.
func (s *Set) TryLock(ctx context.Context) (*Hold, error) {
	return s.lock(ctx, func(ctx context.Context, sess *zk.Session, _ func(*line.Own)) (*line.Own, error) {
		return s.cfg.tryEnter(ctx, sess, s.lines...)
	})
}

// lock locks as try does, which calls queued when it has to wait.
func (s *Set) lock(ctx context.Context, try contend) (*Hold, error) {
	return s.acquire(ctx, s, Exclusive, func(ctx context.Context, r *report) (*Hold, error) {
		return s.alone(ctx, r, try)
	})
}
