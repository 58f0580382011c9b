package peer

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A Host plays the test for a program that wants this package's servers: it keeps their folders, and their cleanups until Close. It is used
// by one goroutine at a time.
type Host struct {
	dir      string
	log      io.Writer
	cleanups []func()
}

// A failure is what Fatalf and Skipf panic with; Recover makes an error of it.
type failure struct{ text string }

// NewHost returns a host with a new folder below parent, or where the system keeps temporary files if that is empty.
func NewHost(parent string, log io.Writer) (*Host, error) {
	dir, err := os.MkdirTemp(parent, "turnstile-")
	if err != nil {
		return nil, err
	}
	return &Host{dir: dir, log: log}, nil
}

// Dir returns the host's folder, which Close removes.
func (h *Host) Dir() string { return h.dir }

// Helper is part of T.
func (h *Host) Helper() {}

// Cleanup has Close call f, before what was to be called so far.
func (h *Host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

// Fatalf panics; see Recover.
func (h *Host) Fatalf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// Skipf panics; see Recover.
func (h *Host) Skipf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

// Logf writes a line.
func (h *Host) Logf(format string, args ...any) {
	fmt.Fprintln(h.log, strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"))
}

// TempDir makes a new folder in the host's.
func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "server-")
	if err != nil {
		h.Fatalf("%v", err)
	}
	return dir
}

// Recover turns a panic of Fatalf or Skipf into an error. Whoever calls what may panic so defers it, itself.
func (h *Host) Recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s", p.text)
	default:
		panic(p)
	}
}

// Close runs the cleanups, the last one first, and removes the host's folder.
func (h *Host) Close() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
	_ = os.RemoveAll(h.dir) // what is left of a temporary folder is the system's to sweep
}
