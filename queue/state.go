package queue

// The states of items, and what is told of one.

import (
	"encoding/json"
	"time"

	"github.com/seed-a3166700/turnstile/queue/internal/segment"
)

// State is where an item is in its life.
type State int

// The states of an item.
const (
	Ready   State = iota + 1 // it waits for a consumer
	Delayed                  // it is not due yet
	Claimed                  // a consumer works on it, or is about to
	Dead                     // it is a dead letter
	Waiting                  // it waits for another item of its group to be finished
)

// String returns the state in lower case: ready, delayed, claimed, dead, waiting.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Delayed:
		return "delayed"
	case Claimed:
		return "claimed"
	case Dead:
		return "dead"
	case Waiting:
		return "waiting"
	}
	return "unknown"
}

// Peeked is an item that was looked at and not taken.
type Peeked struct {
	ID         string
	Body       []byte
	Headers    map[string]string
	Priority   int
	EnqueuedAt time.Time // when it was first put
	State      State
	Attempts   int           // deliveries so far, with that of Claimed
	Timeout    time.Duration // its own time limit; 0 if it has none
	Group      string        // "" if it has none
	Failures   []Failure     // the latest failed attempts that have a reason

	DueAt     time.Time // if it is Delayed: when it is ready, by the servers' clock
	Consumer  *Consumer // if it is Claimed: which has it; nil otherwise
	Delivered bool      // if it is Claimed: the consumer may have begun to work on it, and not only claimed it ahead
	DiedAt    time.Time // if it is Dead
	Reason    string    // if it is Dead

	ready time.Time // since when it is ready
}

// Consumer is a Queue that takes items, as the servers know it.
type Consumer struct {
	ID      string // differs from that of every other consumer
	Host    string
	PID     int
	Program string
}

// parseConsumer reads a consumer's node. Data that another program has written there tells nothing.
func parseConsumer(id string, data []byte) *Consumer {
	var p processInfo
	if json.Unmarshal(data, &p) != nil {
		p = processInfo{}
	}
	return &Consumer{ID: id, Host: p.Host, PID: p.PID, Program: p.Program}
}

// peeked returns what a stored item tells of itself. What its place tells is the caller's to add.
func (x *storedItem) peeked(state State, priority int) Peeked {
	put := x.created // when its node was created
	if x.rec.Enqueued > 0 {
		put = x.rec.Enqueued
	}
	p := Peeked{
		ID: x.rec.ID.String(), Body: x.rec.Body, Headers: x.rec.Headers, Priority: priority,
		EnqueuedAt: time.UnixMilli(put), State: state, Attempts: x.rec.Attempts,
		Timeout: time.Duration(x.rec.Timeout) * time.Millisecond, Group: x.rec.Group,
		Failures: failures(x.rec.Failures),
	}
	switch state {
	case Ready, Claimed:
		p.ready = time.UnixMilli(x.created)
	case Delayed:
		p.DueAt = time.UnixMilli(x.rec.DueAt(x.created))
	case Dead:
		p.DiedAt, p.Reason = time.UnixMilli(x.created), x.rec.Reason
	case Waiting:
	}
	return p
}

// corruptRecord reports whether a node that is named like an item is not one.
func (x *storedItem) corruptRecord() bool {
	return x.rec.ID == segment.ID{} && x.rec.Reason == segment.ErrRecord.Error()
}
