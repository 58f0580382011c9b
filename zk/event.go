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
	// EventResynced tells the reader of a persistent watch that events may have been missed, because the connection
	// broke or because too many events were not read. The reader should read the nodes again.
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

// An Event is a change of a watched node.
type Event struct {
	Type EventType
	Path string
	Zxid int64 // the transaction; -1 if the server does not tell it (before 3.9, and after a reconnect)
}
