package ownserver

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// peerPID is SIO_AF_UNIX_GETPEERPID of afunix.h.
const peerPID = 0x58000100

// listener returns the id of the process that listens on the socket that fd is connected to.
func listener(fd uintptr) (int, error) {
	var pid, n uint32
	err := windows.WSAIoctl(windows.Handle(fd), peerPID, nil, 0,
		(*byte)(unsafe.Pointer(&pid)), uint32(unsafe.Sizeof(pid)), &n, nil, 0)
	return int(pid), err
}
