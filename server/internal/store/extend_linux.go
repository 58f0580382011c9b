package store

// Extending a log to its full size.

import "syscall"

// extend extends a file with zeros if the file system can do so without writing them. If it cannot, or has no room, the
// file grows as it is written.
func extend(fd uintptr, size int64) { _ = syscall.Fallocate(int(fd), 0, 0, size) }
