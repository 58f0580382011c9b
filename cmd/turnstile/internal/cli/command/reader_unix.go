//go:build unix

package command

// Whether a pipe has a reader.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether file is a pipe whose reader has gone.
func readerGone(file *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd())}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}

// onReaderGone calls gone once if a pipe's reader goes. The caller calls stop.
func onReaderGone(file *os.File, gone func()) (stop func()) {
	wake, quit, err := os.Pipe()
	if err != nil {
		return func() {} // the next line tells
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fds := []unix.PollFd{{Fd: int32(file.Fd())}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err == nil && readerGone(file):
				gone()
			}
			return
		}
	}()
	return func() {
		_ = quit.Close() // which wakes the goroutine
		<-done
		_ = wake.Close() // it was only waited for
	}
}
