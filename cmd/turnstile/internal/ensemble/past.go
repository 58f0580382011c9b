package ensemble

// What has happened since somebody looks.

import (
	"maps"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

const (
	maxPaths = 10_000 // whose changes are remembered
	maxPast  = 50     // changes of each
)

// A Past is what has happened to a lock since somebody looks.
type Past struct {
	Changes int // of its holder
	Last    []Change
}

// A Change is that a lock has another holder.
type Change struct {
	Path     string
	At       time.Time
	From, To string // as others have written it; empty if nobody holds it
}

// A History is the past of all locks, by path.
type History map[string]*Past

// Note notes which locks have other holders than before, which may be nil, and returns what has changed.
func (h History) Note(
	before, after *survey.Snapshot, owner func(lock.Contender) string, now time.Time,
) (changes []Change) {
	if before == nil {
		return nil
	}
	who := func(e survey.Entry) (lock.Token, string) {
		if len(e.Holders) == 0 {
			return 0, ""
		}
		return e.Holders[0].Token, owner(e.Holders[0])
	}
	full := false
	note := func(old, e survey.Entry) {
		oldToken, from := who(old)
		token, to := who(e)
		if oldToken == token {
			return
		}
		change := Change{e.Path, now, from, to}
		changes = append(changes, change)
		p := h[e.Path]
		if p == nil {
			if len(h) >= maxPaths && !full {
				h.forget(after)
				full = len(h) >= maxPaths
			}
			if p = new(Past); !full {
				h[e.Path] = p
			}
		}
		p.Changes++
		p.Last = append(p.Last, change)
		p.Last = p.Last[max(0, len(p.Last)-maxPast):]
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
	return changes
}

// forget makes room: it forgets paths that are not there any more.
func (h History) forget(now *survey.Snapshot) {
	maps.DeleteFunc(h, func(path string, _ *Past) bool {
		_, ok := now.Entry(path)
		return !ok
	})
}

// Since returns since when an entry is held: since the node of its holder was made, or since another holder was seen.
// It is zero if nobody holds it.
func (h History) Since(e survey.Entry) time.Time {
	if len(e.Holders) == 0 {
		return time.Time{}
	}
	since := e.Holders[0].Since
	if p := h[e.Path]; p != nil && p.Last[len(p.Last)-1].At.After(since) {
		since = p.Last[len(p.Last)-1].At
	}
	return since
}

// Held returns for how long an entry has been held.
func (h History) Held(e survey.Entry, now time.Time) time.Duration {
	if len(e.Holders) == 0 {
		return 0
	}
	return max(0, now.Sub(h.Since(e)))
}
