package store

import "syscall"

// extend gives a file its size, zeros, if the file system can do that without writing them. If it cannot, or has no room, the
// file grows as it is written.
func extend(fd uintptr, size int64) { _ = syscall.Fallocate(int(fd), 0, 0, size) }
