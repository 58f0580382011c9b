package queue

// Pausing a queue.

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// Pause says that a queue is paused, by which process, when and why.
type Pause struct {
	At      time.Time // by the servers' clock
	Host    string
	PID     int
	Program string
	Reason  string
}

// pauseRecord is the part of the gate node that says that the queue is paused.
type pauseRecord struct {
	processInfo
	Reason string `json:"reason,omitempty"`
	At     int64  `json:"at,omitempty"` // ms since 1970; 0: when the node was last written
}

// maxPauseReason is the longest reason of a pause, in bytes.
const maxPauseReason = 1000

// Pause makes all consumers of the queue, in all processes, take no more items until Resume. Items in hand are not
// affected: they can be finished as usual. Puts go on. If the queue is paused already, it stays as it is.
//
// After Pause has returned nil no consumer claims another item. What one has claimed ahead it may hand out until it has
// heard of the pause, which takes a connected one as long as an event from its server; then it gives the rest back. The
// pause outlives all sessions. If ctx ends first, the queue may be paused all the same.
//
// A reason of more than 1,000 bytes is refused: all consumers read it.
func (q *Queue) Pause(ctx context.Context, reason string) error {
	if len(reason) > maxPauseReason {
		return q.failed("pause",
			attempt.Bad("the reason must have at most %d bytes, not %d", maxPauseReason, len(reason)))
	}
	err := q.producer.setGate(ctx, func(g *gateRecord) bool {
		if g.Pause != nil {
			return false
		}
		g.Pause = &pauseRecord{processInfo: thisProcess(), Reason: reason}
		return true
	})
	if err != nil {
		return q.failed("pause", err)
	}
	return nil
}

// Resume ends a pause. If the queue is not paused, it does nothing. It fails as Pause does.
func (q *Queue) Resume(ctx context.Context) error {
	err := q.producer.setGate(ctx, func(g *gateRecord) bool {
		paused := g.Pause != nil
		g.Pause = nil
		return paused
	})
	if err != nil {
		return q.failed("resume", err)
	}
	return nil
}

// Paused returns the pause of the queue, nil if it is not paused.
func (q *Queue) Paused(ctx context.Context) (*Pause, error) {
	g, stat, err := q.reader.gate(ctx)
	if err != nil {
		return nil, q.failed("look at", err)
	}
	if g.Pause == nil {
		return nil, nil //nolint:nilnil // it is not paused
	}
	p := g.Pause
	return &Pause{time.UnixMilli(cmp.Or(p.At, stat.Mtime)), p.Host, p.PID, p.Program, p.Reason}, nil
}
