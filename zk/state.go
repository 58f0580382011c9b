package zk

// The states of a session.

import "fmt"

// State is the state of a session.
type State int

// The states.
const (
	Connected         State = iota + 1 // connected to a server
	ConnectedReadOnly                  // connected to a server that has lost its ensemble and only serves reads
	Suspended                          // not connected; requests wait for the next connection
	Ended                              // final
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case ConnectedReadOnly:
		return "connected read-only"
	case Suspended:
		return "suspended"
	case Ended:
		return "ended"
	default:
		return fmt.Sprintf("state(%d)", int(s))
	}
}
