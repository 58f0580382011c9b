//go:build unix

package server

// The limit of open files.

import "syscall"

// fileLimit returns how many file descriptors the process may have, -1 if unknown.
func fileLimit() int64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return -1
	}
	return int64(r.Cur)
}
