package zk

// The events of watches.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// EventType says what happened to a watched node.
type EventType int32

// The event types.
const (
	EventCreated         = EventType(wire.EventCreated)
	EventDeleted         = EventType(wire.EventDeleted)
	EventDataChanged     = EventType(wire.EventDataChanged)
	EventChildrenChanged = EventType(wire.EventChildrenChanged)
	// EventResynced comes to persistent watches only: events may have been missed, because the connection was away for a while
	// or because nobody took the events out of the watch. Read again what you need to know.
	EventResynced EventType = 100
)

// String returns the type's name.
func (t EventType) String() string {
	switch t {
	case EventCreated:
		return "created"
	case EventDeleted:
		return "deleted"
	case EventDataChanged:
		return "data changed"
	case EventChildrenChanged:
		return "children changed"
	case EventResynced:
		return "resynced"
	default:
		return fmt.Sprintf("event(%d)", int32(t))
	}
}

// Event is what a watch has seen.
type Event struct {
	Type EventType
	Path string
	Zxid int64 // the transaction that did it, -1 if the server does not say (before 3.9, and after a reconnect)
}
