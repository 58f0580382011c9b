package elect

// Campaigns and leaderships as parts of deadlocks.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/lock"
)

// inside returns the wait of a campaign that goes on inside of a hold.
func (c *Candidate) inside(outer waits.Hold, r *report) *waits.Wait {
	began := time.Now()
	return &waits.Wait{
		Client: c.client, Path: c.cfg.WaitsPath, Dirs: attempt.Dirs{ACL: c.cfg.ACL, AnyACL: c.cfg.AnyACL},
		Label: c.id, Yields: c.cfg.OnDeadlock == lock.FailWait, Since: began, Outer: outer,
		Paths: []string{c.path}, Kind: c.cfg.Layout.stuck(),
		Found: func(found *stuck.Deadlock, owner func(record string) line.Owner) error {
			err := waits.Explain(found, owner)
			if hook := c.cfg.Hooks.Deadlock; hook != nil {
				hook(Event{ID: r.event.ID, Path: c.path, Took: time.Since(began), Err: err})
			}
			return err
		},
	}
}

// stuck returns the kind of which the holds and waits of such an election are: the layouts of one kind see each other.
func (l Layout) stuck() string {
	switch l {
	case LeaderSelector, KazooElection, Both:
		return stuck.Leader
	case LeaderElectionSupport:
		return stuck.Offer
	default:
		return stuck.Latch
	}
}

// link is a leadership in the chain of holds that a context descends from.
type link Leadership

// Over reports whether it was resigned.
func (l *link) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// Told returns what is told of the leadership.
func (l *link) Told() (told stuck.Hold, ok bool) {
	return stuck.Hold{
		Paths: []string{l.candidate.path}, Node: l.ownership.Own().Path(), Token: int64(l.token),
		Kind: l.candidate.cfg.Layout.stuck(),
	}, l.ownership.Err() == nil
}

// Outside returns the holds that it was won inside of.
func (l *link) Outside() (waits.Hold, []stuck.Hold) { return l.outer, l.around }
