package ownserver

import "golang.org/x/sys/unix"

// listener returns the id of the process that listens on the socket that fd is connected to.
func listener(fd uintptr) (int, error) {
	return unix.GetsockoptInt(int(fd), 0, unix.LOCAL_PEERPID) // 0 is SOL_LOCAL
}
