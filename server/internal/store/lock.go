package store

// The data directory, and its lock.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/seed-a3166700/turnstile/internal/lockfile"
)

// InUseError is returned by Open if another process uses the data directory.
type InUseError struct {
	Dir string
	PID int // of the process that uses it, 0 if unknown
}

// ErrInUse is what every InUseError is, for errors.Is.
var ErrInUse = errors.New("the data directory is in use")

// Is reports whether target is ErrInUse.
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// Error names the directory and the process that uses it.
func (e *InUseError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("store: data directory %s is in use by %s; stop it or choose another directory", e.Dir, by)
}

// makeDir creates a directory and its missing parents, and makes all of them durable. It returns those that were
// missing, the innermost first, also with an error.
func makeDir(fs vfs.FS, dir string) (made []string, err error) {
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || d == fs.PathDir(d) {
			break
		}
		made = append(made, d)
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return made, err
	}
	named := made
	if len(made) == 0 {
		named = []string{dir} // its maker may have crashed
	}
	for _, d := range named {
		if err := syncDir(fs, fs.PathDir(d)); err != nil {
			return made, err
		}
	}
	return made, nil
}

// lockDir takes the directory's lock, which the operating system releases when the process ends, and writes the process
// id, which only people and scripts read. The id has its own file because taking the lock truncates the lock file. If
// the file system is the operating system's, both files are private.
func lockDir(fs vfs.FS, dir string, private bool) (io.Closer, error) {
	lock := fs.PathJoin(dir, "lock")
	if private {
		makeFilePrivate(lock)
	}
	unlock, err := fs.Lock(lock)
	if err != nil {
		if pid, held := holder(lock, err); held {
			return nil, &InUseError{Dir: dir, PID: pid}
		}
		return nil, fmt.Errorf("store: cannot lock %s: %w", dir, err)
	}
	if err := writePID(fs, dir, private); err != nil {
		_ = unlock.Close()
		return nil, fmt.Errorf("store: cannot write to %s: %w", dir, err)
	}
	return unlock, nil
}

func pidFile(fs vfs.FS, dir string) string { return fs.PathJoin(dir, "pid") }

func writePID(fs vfs.FS, dir string, private bool) error {
	f, err := fs.Create(pidFile(fs, dir), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if private { // only now: Create replaces an existing file by a new one
		makeFilePrivate(pidFile(fs, dir))
	}
	if _, err = fmt.Fprintln(f, os.Getpid()); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// holder reports whether a process has the lock that could not be taken because of err, and its id if that is known.
// The file pid is not asked: it may be that of a process that was killed long ago.
func holder(lock string, err error) (pid int, held bool) {
	if _, system := errors.AsType[syscall.Errno](err); !system {
		return os.Getpid(), true // this process has it; asking the system would open the file and give up its lock
	}
	pid, held, herr := lockfile.Holder(lock)
	if herr == nil && held {
		return max(0, pid), true
	}
	return 0, errors.Is(err, syscall.EAGAIN) // it has just ended
}
