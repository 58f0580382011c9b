package zk

// The states of a session.

import "fmt"

// State is how a session stands.
type State int

// The states.
const (
	Connected         State = iota + 1 // a server answers
	ConnectedReadOnly                  // a server answers that has lost its ensemble: reads only
	Suspended                          // no connection; requests wait for the next one
	Ended                              // for good
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
