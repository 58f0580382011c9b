package peer

// Use outside of tests.

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A Host is a T for programs that are not tests. It holds the servers' directories, and their cleanups until Close.
// Only one goroutine may use it at a time.
type Host struct {
	dir      string
	log      io.Writer
	cleanups []func()
}

// A failure is the panic of Fatalf and Skipf, which Recover turns into an error.
type failure struct{ text string }

// NewHost returns a host with a new directory in parent, or in the system's directory for temporary files if parent is
// empty.
func NewHost(parent string, log io.Writer) (*Host, error) {
	dir, err := os.MkdirTemp(parent, "turnstile-")
	if err != nil {
		return nil, err
	}
	return &Host{dir: dir, log: log}, nil
}

// Dir returns the host's directory, which Close removes.
func (h *Host) Dir() string { return h.dir }

// Helper does nothing.
func (h *Host) Helper() {}

// Cleanup makes Close call f, before the functions of earlier calls.
func (h *Host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

// Fatalf panics; see Recover.
func (h *Host) Fatalf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// Skipf panics; see Recover.
func (h *Host) Skipf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// Logf writes a line.
func (h *Host) Logf(format string, args ...any) {
	fmt.Fprintln(h.log, strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"))
}

// TempDir creates a directory in the host's.
func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "server-")
	if err != nil {
		h.Fatalf("%v", err)
	}
	return dir
}

// Recover turns a panic of Fatalf or Skipf into an error. The function that may panic must defer it directly.
func (h *Host) Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s", p.text)
	default:
		panic(p)
	}
}

// Close calls the cleanups, the last one first, and removes the host's directory.
func (h *Host) Close() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
	_ = os.RemoveAll(h.dir) // the system removes what is left in its directory for temporary files
}
