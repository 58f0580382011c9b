package queue

// Errors.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// unresolvedError is an ErrUnresolved, and says why.
type unresolvedError struct{ why error }

func (e unresolvedError) Error() string { return fmt.Sprintf("%v: %v", ErrUnresolved, e.why) }

func (e unresolvedError) Unwrap() []error {
	return []error{ErrUnresolved, attempt.ErrUnresolved, e.why}
}

// FullError says how full a queue is that takes no more items. It is an ErrFull.
type FullError struct{ Items, MaxItems int }

// Error says how many items there are, and how many there may be.
func (e *FullError) Error() string {
	if e.Items < e.MaxItems {
		return fmt.Sprintf("%v: there is room, but not for so many at once: %d items are in, and Config.MaxItems is %d",
			ErrFull, e.Items, e.MaxItems)
	}
	return fmt.Sprintf("%v: %d items are in, and Config.MaxItems is %d", ErrFull, e.Items, e.MaxItems)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// TooLargeError says which item no server would accept. It is an ErrTooLarge.
type TooLargeError struct {
	Message int // the index of the first such message of a PutBatch
	Size    int // in bytes, with its headers
	Limit   int
	packet  int
}

// Error says how large the item is, and how large it may be.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d bytes with its headers, and the limit is %d (Config.MaxPacket is %d)",
		ErrTooLarge, e.Size, e.Limit, e.packet)
}

// Unwrap returns ErrTooLarge.
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }
