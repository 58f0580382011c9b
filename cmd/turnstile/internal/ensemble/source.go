// Package ensemble is what screens and pages show of an ensemble, and how they come by it: locks from one survey, and
// lines, deadlocks, queues, sessions and servers when somebody looks at them.
package ensemble

// Where it comes from.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// A Source is where a screen has what it shows from. Text in it is as others have written it. Its functions may be
// called from several goroutines at once.
type Source struct {
	// Next is survey.Survey.Next: all locks come from there.
	Next func(ctx context.Context, last *survey.Snapshot, shown []string) (*survey.Snapshot, error)
	// Line is lock.Inspect. It is asked about a lock only while its line is shown, and after it has changed.
	Line  func(ctx context.Context, path string) ([]lock.Contender, error)
	Owner func(lock.Contender) string // says whose a contender is
	// Records is lock.Revocations: who was asked to release a lock, by whom and why.
	Records func(ctx context.Context, path string) ([]lock.Record, error)
	// Deadlocks is lock.Deadlocks. It is asked while somebody looks at who waits.
	Deadlocks func(ctx context.Context) ([]lock.FoundDeadlock, error)
	// Queue counts the items of a queue, and tells of so many of its consumers: those with the most items. Before are
	// the rates at the last look, empty if there was none.
	Queue func(ctx context.Context, path string, consumers int, before Rates) (Queue, error)
	// Items returns the first items of a queue that are in a state, without bodies, headers and failures, and
	// ErrTooMany behind some if all would be too much to read.
	Items func(ctx context.Context, path, state string, most int) ([]Item, error)
	// Item returns the item of a queue with an id, which may be in that state, and with its body and headers only if
	// data is set: ErrNotFound if there is none, ErrTooMany if it would take too long to look at all.
	Item func(ctx context.Context, path, state, id string, data bool) (Item, error)
	// Node reads a node, with its data only if that is set.
	Node     func(ctx context.Context, path string, data bool) (Node, error)
	Sessions func(ctx context.Context) (list []Session, lacks []string)
	Servers  func(ctx context.Context) []Server
	Findings func(ctx context.Context) ([]Finding, error) // of turnstile doctor, without notes
	// Revoke asks the holders at these nodes, as they were with these tokens, to release the lock.
	Revoke func(
		ctx context.Context, path string, holders map[string]lock.Token, reason string, force bool,
	) (string, error)
	// Pause pauses a queue, or resumes it.
	Pause func(ctx context.Context, path string, pause bool, reason string) error
	// Letters puts the first so many dead letters of a queue back, or removes them, and tells of each batch how many
	// that were.
	Letters func(ctx context.Context, path string, remove bool, most int, tell func(n int)) error
	// EndSession ends a session, if the server can.
	EndSession func(ctx context.Context, id int64, reason string) error
}

// A Queue is how many items a queue has.
type Queue struct {
	Ready, Delayed, Claimed, Dead int
	Oldest                        time.Duration
	Paused                        string     // who has paused it, and why; empty if it is not
	Consumers                     int        // how many there are
	Busiest                       []Consumer // those that were asked for
	Waiting                       int        // behind others of their group
	Rates                         Rates
}

// What a Node and an Item have at most.
const (
	MaxNames    = 1000
	MaxData     = 16 << 10
	MaxFailures = 20
	MaxHeaders  = 100
)

// A Node is a node of the tree.
type Node struct {
	Stat     zk.Stat
	ACL      []zk.ACL // nil if it may not be read
	Data     []byte   // its first bytes; nil if it was not read, or may not be
	Children []Child  // the first ones by name
}

// A Child is a child of a Node.
type Child struct {
	Name string
	Stat zk.Stat
}

// Why Source.Item has no item, or Source.Items not all.
var (
	ErrNotFound = errors.New("there is no such item")
	ErrTooMany  = errors.New("there are too many items, or too large ones, to read all")
)

// An Item is an item of a queue.
type Item struct {
	ID, State          string
	Priority, Attempts int
	Bytes              int // of its body
	Put                time.Time
	Due                time.Time // if it is delayed
	Died               time.Time // if it is dead
	Reason             string    // if it is dead
	Consumer           string    // if it is claimed
	Group              string
	Timeout            time.Duration
	Failures           []Failure // the latest, MaxFailures at most
	Headed             int       // how many headers it has
	Headers            []Header  // MaxHeaders at most
	Body               []byte    // its first MaxData bytes
}

// A Header is one of an item.
type Header struct{ Name, Value string }

// A Failure is a failed attempt.
type Failure struct {
	At     time.Time
	Reason string
}

// A Consumer takes items of a queue.
type Consumer struct {
	ID, Who, Session string
	Since            time.Time
	Claimed          int
}

// A Finding is something that is wrong with an ensemble.
type Finding struct {
	Error        bool // else it is a warning
	Text, Remedy string
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
