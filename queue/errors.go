package queue

import "fmt"

// FullError tells how full a queue is that takes no more. It is an ErrFull.
type FullError struct{ Items, MaxItems int }

// Error returns how many items there are, and how many there may be.
func (e *FullError) Error() string {
	return fmt.Sprintf("%v: %d items are in, and Config.MaxItems is %d", ErrFull, e.Items, e.MaxItems)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }
