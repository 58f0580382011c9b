//go:build linux

package hostile_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attackEnv makes the test binary the attackers and no test: "ADDRESS ADMIN SEED NAME".
const attackEnv = "TURNSTILE_HOSTILE_ATTACK"

func TestMain(m *testing.M) {
	if what := os.Getenv(attackEnv); what != "" {
		if err := attackAs(what); err != nil {
			fmt.Fprintln(os.Stderr, "attackers:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// yield lets the server and the client that behaves have the processors whenever they want them, as if the attackers
// were on machines of their own. A policy belongs to a thread and is inherited by the threads and programs that it
// starts, so the process starts again from a thread that has it.
func yield() error {
	runtime.LockOSThread()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy == unix.SCHED_IDLE {
		return err
	}
	idle := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	if err := unix.SchedSetAttr(0, idle, 0); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return unix.Exec(self, os.Args, os.Environ())
}

// attackAs attacks until standard input ends, as it does when the test dies. It prints what it has done.
func attackAs(what string) error {
	parts := strings.SplitN(what, " ", 4)
	if len(parts) != 4 {
		return fmt.Errorf("want ADDRESS ADMIN SEED NAME, not %q", what)
	}
	seed, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return err
	}
	if err := yield(); err != nil {
		return err
	}
	g := &attackers{addr: parts[0], admin: parts[1], seed: seed, begun: make(chan struct{})}
	for _, a := range attacks {
		if a.name == parts[3] || parts[3] == everything {
			g.start(a)
		}
	}
	<-g.begun // with the lowest priority that takes its time on a busy machine
	fmt.Println("begun")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	fmt.Printf("%d %d\n", g.connections.Load(), g.bytes.Load())
	return nil
}
