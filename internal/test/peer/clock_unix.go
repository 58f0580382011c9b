//go:build unix

package peer

// A clock that all processes share.

import "golang.org/x/sys/unix"

// Clock returns the time in nanoseconds of a clock that all processes of the machine share and that is never set:
// CLOCK_MONOTONIC.
func Clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Unix has it
	}
	return now.Nano()
}
