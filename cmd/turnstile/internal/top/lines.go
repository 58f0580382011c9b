package top

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

const (
	maxLines  = 200              // so many lines are read for the waits and the sessions
	maxQueues = 50               // and so many queues
	atOnce    = 16               // at a time
	lineAge   = 10 * time.Second // after which a line is read again, as the survey does not tell of each waiter
	maxPaths  = 10_000           // whose changes are remembered
	maxPast   = 50               // changes of each
)

// stale returns the locks whose lines the view shows and that have changed since they were read.
func (m *model) stale(v view) []survey.Entry {
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if v == viewLock && e.Path != m.path || v == viewWaits && e.Waiting == 0 || e.Holding+e.Waiting == 0 {
			continue
		}
		list = append(list, e)
	}
	now := time.Now()
	if v != viewLock {
		list = slices.DeleteFunc(list, func(e survey.Entry) bool { return !e.Kind.Contended() })
		slices.SortStableFunc(list, func(a, b survey.Entry) int {
			return cmp.Compare(longest(b, now), longest(a, now))
		})
		list = list[:min(len(list), maxLines)]
		for path := range m.lines {
			if e, ok := m.snapshot.Entry(path); !ok || e.Holding+e.Waiting == 0 {
				delete(m.lines, path)
			}
		}
	}
	return slices.DeleteFunc(list, func(e survey.Entry) bool {
		l, ok := m.lines[e.Path]
		return ok && now.Sub(l.read) < lineAge && reflect.DeepEqual(l.entry, e)
	})
}

// readLines reads lines.
func readLines(
	ctx context.Context, read func(context.Context, string) ([]lock.Contender, error), entries []survey.Entry,
) map[string]lineOf {
	return inParallel(entries, func(e survey.Entry) (string, lineOf, bool) {
		l := lineOf{entry: e, read: time.Now()}
		l.list, l.err = read(ctx, e.Path)
		return e.Path, l, true
	})
}

// queuePaths returns the queues to be counted.
func (m *model) queuePaths() []string {
	var list []string
	for _, e := range m.snapshot.Entries {
		if e.Kind == survey.Queue && len(list) < maxQueues {
			list = append(list, e.Path)
		}
	}
	return list
}

// readQueues counts the items of queues. Those that cannot be counted are left out.
func readQueues(
	ctx context.Context, count func(context.Context, string) (Queue, error), paths []string,
) map[string]Queue {
	return inParallel(paths, func(path string) (string, Queue, bool) {
		q, err := count(ctx, path)
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

// past is what has happened to a lock since the screen is there.
type past struct {
	n    int
	last []event
}

type event struct {
	at   time.Time
	text string
}

// remember notes which locks have other holders than before.
func (m *model) remember(before, after *survey.Snapshot) {
	if before == nil {
		return
	}
	who := func(e survey.Entry) (lock.Token, string) {
		if len(e.Holders) == 0 {
			return 0, "nobody"
		}
		return e.Holders[0].Token, m.source.Owner(e.Holders[0])
	}
	note := func(old, e survey.Entry) {
		oldToken, oldOwner := who(old)
		token, owner := who(e)
		p := m.past[e.Path]
		if oldToken == token || p == nil && len(m.past) >= maxPaths {
			return
		}
		if p == nil {
			p = new(past)
			m.past[e.Path] = p
		}
		p.n++
		p.last = append(p.last, event{m.now, clean(oldOwner + " → " + owner)})
		p.last = p.last[max(0, len(p.last)-maxPast):]
	}
	for _, e := range after.Entries {
		old, _ := before.Entry(e.Path)
		note(old, e)
	}
	for _, old := range before.Entries {
		if _, ok := after.Entry(old.Path); !ok {
			note(old, survey.Entry{Path: old.Path})
		}
	}
}

// longest returns for how long the first in line has waited.
func longest(e survey.Entry, now time.Time) time.Duration {
	if e.First == nil {
		return 0
	}
	return max(0, now.Sub(e.First.Since))
}
