package zk

// The time for which a Linux machine was suspended.

import (
	"syscall"
	"time"
	"unsafe"
)

// The clocks of clock_gettime(2).
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspended returns for how long the machine has been suspended since it was started: CLOCK_BOOTTIME goes on meanwhile, and CLOCK_MONOTONIC
// does not.
func suspended() time.Duration { return clockTime(clockBoottime) - clockTime(clockMonotonic) }

func clockTime(id uintptr) time.Duration {
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0 // a kernel before 2.6.39
	}
	return time.Duration(t.Nano())
}
