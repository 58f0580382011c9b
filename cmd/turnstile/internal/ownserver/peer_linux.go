package ownserver

import "golang.org/x/sys/unix"

// listener returns the id of the process that listens on the socket that fd is connected to; 0 if that is out of our
// sight, in a container.
func listener(fd uintptr) (int, error) {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
