// Package top draws what is at an ensemble, and keeps it up to date: locks, waits, leaders, queues, sessions, servers.
package top

// Where it comes from.

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// A Source is where a screen has what it shows from. Text in it is as others have written it.
type Source struct {
	// Next is survey.Survey.Next: all locks come from there.
	Next func(ctx context.Context, last *survey.Snapshot, shown []string) (*survey.Snapshot, error)
	// Line is lock.Inspect. It is asked about a lock only while the screen shows its line, and after it has changed.
	Line  func(ctx context.Context, path string) ([]lock.Contender, error)
	Owner func(lock.Contender) string // says whose a contender is
	// Deadlocks is lock.Deadlocks. It is asked while the screen shows who waits.
	Deadlocks func(ctx context.Context) ([]lock.FoundDeadlock, error)
	Queue     func(ctx context.Context, path string) (Queue, error)
	Sessions  func(ctx context.Context) (list []Session, lacks []string)
	Servers   func(ctx context.Context) []Server
	// Revoke asks the holders at these nodes, as they were with these tokens, to release the lock.
	Revoke func(
		ctx context.Context, path string, holders map[string]lock.Token, reason string, force bool,
	) (string, error)
}

// A Queue is how many items a queue has.
type Queue struct {
	Ready, Delayed, Claimed, Dead int
	Oldest                        time.Duration
}

// A Session is what the servers tell of a session.
type Session struct {
	ID         int64
	Server     string
	Address    string
	Timeout    time.Duration
	Answered   time.Time
	Ephemerals int // -1 if no server says so
}

// A Server is what a server tells of itself.
type Server struct {
	Address, Mode, Latency, Version string
	Outstanding, Connections, Nodes int64
	Watches                         int64 // -1 if it does not say so
	Zxid                            int64
	Err                             error
}

// Config says how a screen is.
type Config struct {
	Ensemble string // its name, which the screen always shows
	Root     string // the path below which it looks
	Interval time.Duration
	Changes  bool // allow revoke and force
	Plain    bool // no colours
}
