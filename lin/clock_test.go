//go:build unix

package lin_test

import "golang.org/x/sys/unix"

// clock returns the time in nanoseconds of a clock that all processes of the machine share and that is never set.
func clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Unix has it
	}
	return now.Nano()
}
