package ensemble

// What is read besides the survey: the lines of locks that are looked at, and queues.

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// MaxQueues is how many queues ReadQueues counts.
const MaxQueues = 50

const (
	maxLines = 200              // so many lines are read for the waits and the sessions
	atOnce   = 16               // at a time
	lineAge  = 10 * time.Second // after which a line is read again, as the survey does not tell of each waiter

	// A line of more contenders than maxLine is not read, and not more lines at once than have maxContenders: each is a
	// request, and nothing shows so many.
	maxLine, maxContenders = 5000, 50_000
)

// TooLong reports whether the line of a lock is too long to be read.
func TooLong(e survey.Entry) bool { return e.Holding+e.Waiting > maxLine }

// A Line is the line of a lock, as it was when the lock was like Entry.
type Line struct {
	Entry survey.Entry
	List  []lock.Contender
	Err   error
	Read  time.Time
}

// Crowded returns the locks whose lines show who waits for whom: those with waiters, with all also those that are held,
// the longest waits first. Not all of them if there are many, and none whose line is too long.
func Crowded(s *survey.Snapshot, all bool, now time.Time) []survey.Entry {
	var list []survey.Entry
	for _, e := range s.Entries {
		if e.Kind.Contended() && (e.Waiting > 0 || all && e.Holding > 0) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int { return cmp.Compare(Longest(b, now), Longest(a, now)) })
	left := maxContenders
	return slices.DeleteFunc(list[:min(len(list), maxLines)], func(e survey.Entry) bool {
		n := e.Waiting + e.Holding
		if TooLong(e) || n > left {
			return true
		}
		left -= n
		return false
	})
}

// Stale returns those of some locks whose lines have changed since they were read, or were read long ago.
func Stale(list []survey.Entry, lines map[string]Line, now time.Time) []survey.Entry {
	return slices.DeleteFunc(slices.Clone(list), func(e survey.Entry) bool {
		l, ok := lines[e.Path]
		return ok && now.Sub(l.Read) < lineAge && reflect.DeepEqual(l.Entry, e)
	})
}

// ReadLines reads the lines of some locks.
func (s Source) ReadLines(ctx context.Context, entries []survey.Entry) map[string]Line {
	return inParallel(entries, func(e survey.Entry) (string, Line, bool) {
		l := Line{Entry: e, Read: time.Now()}
		l.List, l.Err = s.Line(ctx, e.Path)
		return e.Path, l, true
	})
}

// ReadQueues counts the items of the first queues. Last is what it returned before. Those that cannot be counted are
// left out.
func (s Source) ReadQueues(ctx context.Context, snapshot *survey.Snapshot, last map[string]Queue) map[string]Queue {
	var paths []string
	for _, e := range snapshot.Entries {
		if e.Kind == survey.Queue && len(paths) < MaxQueues {
			paths = append(paths, e.Path)
		}
	}
	return inParallel(paths, func(path string) (string, Queue, bool) {
		q, err := s.Queue(ctx, path, 0, last[path].Rates)
		return path, q, err == nil
	})
}

// inParallel returns what f returns for each of the list, by key, except what is not ok. It calls some at a time.
func inParallel[E, V any](list []E, f func(E) (key string, value V, ok bool)) map[string]V {
	var mu sync.Mutex
	found := make(map[string]V, len(list))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, e := range list {
		group.Go(func() error {
			if key, value, ok := f(e); ok {
				mu.Lock()
				defer mu.Unlock()
				found[key] = value
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	return found
}
