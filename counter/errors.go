package counter

// Errors.

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package. All are found with errors.Is; what returns them adds the package and the node.
var (
	// ErrUnresolved reports that a change may or may not have been made. The context ended after the change was sent,
	// and then the session before the answer came; or this process was cut off from the servers for more than an hour,
	// after which other processes remove its receipt; or it may not create receipts; or the node was to be created, and
	// the context ended meanwhile, or other clients have created or deleted nodes beside it.
	ErrUnresolved = errors.New("it is unknown whether the change was made")

	// ErrUnreadable reports that a node holds no number of the counter's layout. The error is an *UnreadableError.
	ErrUnreadable = errors.New("not a number of the counter's layout")

	// ErrOverflow reports that the new value does not fit into the layout. Nothing was changed.
	ErrOverflow = errors.New("the value does not fit into the layout")

	// ErrVersions reports that a node was written so often that its version is -1, after some four billion writes.
	// Servers take that version for any version, so no write can be conditional (CURATOR-688). Nothing was changed. To
	// go on, delete the node and create it again, or set it by hand, while no process uses it.
	ErrVersions = errors.New("the node's version is -1, which servers take for any version")

	// ErrTooLarge reports that a value is larger than servers accept. Nothing was changed.
	ErrTooLarge = errors.New("the value is larger than servers accept")

	// ErrRecreated reports that another client deleted the node and created it again between the read and the write of
	// a conditional change, and the new node had the old one's version by then. The write was done, and has replaced
	// what the new node held. It cannot happen to a client that may create nodes below the node.
	ErrRecreated = errors.New("the node was deleted and created again during a change")
)

// UnreadableError says what a node holds that is no number of the counter's layout. It is ErrUnreadable.
type UnreadableError struct {
	Path   string
	Layout Layout // of the counter that has read it
	Data   []byte
}

// Error names the node, the layout and the beginning of the data.
func (e *UnreadableError) Error() string {
	const most = 32
	shown, more := e.Data, ""
	if len(shown) > most {
		shown, more = shown[:most], "…"
	}
	var hint strings.Builder
	for _, l := range []Layout{Long, Int, Text} {
		if _, err := l.decode(e.Path, e.Data); l != e.Layout && err == nil {
			fmt.Fprintf(&hint, "; layout %v would read it", l)
		}
	}
	return fmt.Sprintf(
		"%s holds %d bytes that are not a number of layout %v: %q%s%s",
		e.Path, len(e.Data), e.Layout, shown, more, &hint,
	)
}

// Unwrap returns ErrUnreadable.
func (e *UnreadableError) Unwrap() error { return ErrUnreadable }
