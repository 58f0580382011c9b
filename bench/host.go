package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A host plays the test that internal/peer wants to start its servers for: it keeps their folders and their cleanups.
type host struct {
	dir      string
	log      io.Writer
	cleanups []func()
}

// A failure is what Fatalf and Skipf panic with; recover makes an error of it.
type failure struct{ text string }

func (h *host) Helper()          {}
func (h *host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

func (h *host) Fatalf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }
func (h *host) Skipf(format string, args ...any)  { panic(failure{fmt.Sprintf(format, args...)}) }

func (h *host) Logf(format string, args ...any) {
	fmt.Fprintln(h.log, strings.TrimSuffix(fmt.Sprintf(format, args...), "\n"))
}

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "server-")
	if err != nil {
		h.Fatalf("%v", err)
	}
	return dir
}

// recover turns a panic of Fatalf into an error; deferred by whoever calls what may panic so.
func (h *host) recover(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s", p.text)
	default:
		panic(p)
	}
}

// close runs the cleanups, the last one first.
func (h *host) close() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
}
