package ownserver

// Who owns its files.

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// Ours reports whether a file or directory exists. The directories in question are in the user's profile, which other
// users cannot enter.
func Ours(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Executable returns a path of the running program.
func Executable() (string, error) { return os.Executable() }

// checkHome accepts every directory: Windows has no superuser whose files others cannot use.
func checkHome(string, int) error { return nil }

// detached makes a process independent of our console and our end.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

// CloseInherited does nothing: handles are inherited only when the parent says so.
func CloseInherited() error { return nil }

// tryLock locks a file, until it is closed. It reports false if another process has locked it.
func tryLock(f *os.File) (locked bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// terminateSignal ends a process: Windows has no gentler way to end one without a console. The server's data survive
// that.
var terminateSignal = os.Kill

// alive reports whether a process still runs.
func alive(p *os.Process) bool {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(p.Pid))
	if err != nil {
		return false
	}
	defer func() { _ = windows.CloseHandle(handle) }()
	event, err := windows.WaitForSingleObject(handle, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}
