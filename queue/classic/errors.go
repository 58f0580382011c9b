package classic

import (
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue"
)

// What can go wrong besides what the client and the servers report. Errors that package queue has, too, are also its
// errors: code that calls errors.Is(err, queue.ErrEmpty) serves both.
var (
	// ErrEmpty: there is no item, or none that is due and not locked by others. It is a queue.ErrEmpty.
	ErrEmpty error = &kindError{"no item is ready", queue.ErrEmpty}
	// ErrLost: the lock on the item is gone, or the item itself is. Others may have it, now or later. It is a
	// queue.ErrClaimLost.
	ErrLost error = &kindError{"the item is not ours any more", queue.ErrClaimLost}
	// ErrTooLarge: the items do not fit into a request that the servers accept (Config.MaxPacket). It is a
	// queue.ErrTooLarge.
	ErrTooLarge error = &kindError{"too large for one request", queue.ErrTooLarge}
	// ErrRemoved: the item was removed when it was taken, because the queue has no locks; it can only be put again.
	ErrRemoved = errors.New("the item was removed when it was taken")
	// ErrCorrupt: a node of the queue is not what its layout says.
	ErrCorrupt = errors.New("corrupt item")
	// ErrUnresolved: it is unknown whether a write was done, because the session ended before its answer came, or its
	// receipt was deleted or could not be read. It is a queue.ErrUnresolved.
	ErrUnresolved error = &kindError{attempt.ErrUnresolved.Error(), queue.ErrUnresolved}
)

// kindError is an error of this package that is also one of package queue.
type kindError struct {
	text string
	kind error
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// UnresolvedError is about a write that may have been done or not. It is an ErrUnresolved. If Item is not nil it was
// to be taken: it is gone from the queue, and then this is the only copy of it, or it is still there, or another
// consumer has it. An item that was to be locked stays in the queue, and its lock is removed if it was made.
type UnresolvedError struct {
	Item *Item // nil for a put and for a lock
	Err  error // why the outcome cannot be found out
}

// Error says what is unknown, and why.
func (e *UnresolvedError) Error() string {
	text := e.Err.Error()
	if !errors.Is(e.Err, attempt.ErrUnresolved) { // which says it
		text = fmt.Sprintf("%v: %s", ErrUnresolved, text)
	}
	if e.Item != nil {
		text = fmt.Sprintf("taking %s: %s", e.Item.Name(), text)
	}
	return text
}

// Unwrap returns ErrUnresolved and why.
func (e *UnresolvedError) Unwrap() []error {
	return []error{ErrUnresolved, attempt.ErrUnresolved, e.Err}
}

// CorruptError is about a node that stays where it is, because its content cannot be read. A queue reports each such
// node once, and then passes it over. It is an ErrCorrupt.
type CorruptError struct {
	Path string // of the node
	Data []byte // its content
	Err  error  // what is wrong with it
}

// Error returns the node's path and what is wrong with it.
func (e *CorruptError) Error() string { return fmt.Sprintf("%v %s: %v", ErrCorrupt, e.Path, e.Err) }

// Unwrap returns ErrCorrupt and what is wrong.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
