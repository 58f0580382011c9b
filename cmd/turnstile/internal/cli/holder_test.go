//go:build unix

package cli_test

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A process that the lock is held for learns of its loss as a command does.
func TestProcessEndsWhenTheLockThatIsHeldForItIsLost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		line   string // of the shell that is the process
		args   []string
		signal syscall.Signal
	}{
		{"term", "echo; exec cat", nil, syscall.SIGTERM},
		{"stubborn", "trap '' TERM; echo; cat", []string{"--grace", "100ms"}, syscall.SIGKILL},
		{"kill", "echo; exec cat", []string{"--on-lost", "kill"}, syscall.SIGKILL},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t)
			sess := srv.Session(t, time.Minute)
			process := exec.CommandContext(t.Context(), "sh", "-c", test.line)
			if _, err := process.StdinPipe(); err != nil { // it runs until that is closed
				t.Fatal(err)
			}
			out, err := process.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := firstLine(out); err != nil {
				t.Fatal(err)
			}
			pid := strconv.Itoa(process.Process.Pid)
			args := append([]string{"lock", "--connect", srv.Addr(), "--pid", pid}, test.args...)
			start(t, append(args, "/x")...).wantCode(0)
			expire(t, srv, sess, "/x")
			_ = process.Wait() // its end is in its state
			if status := process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != test.signal {
				t.Errorf("it ended with %v, want signal %v", process.ProcessState, test.signal)
			}
		})
	}
}

func TestProcessEndsWhenTheLockThatIsHeldForItIsRevoked(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	process := exec.CommandContext(t.Context(), "cat")
	if _, err := process.StdinPipe(); err != nil { // it runs until that is closed
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	start(t, "lock", "--connect", srv.Addr(), "--pid", strconv.Itoa(process.Process.Pid), "/x").wantCode(0)
	start(t, "revoke", "--connect", srv.Addr(), "--reason", "test", "/x").wantCode(0)
	_ = process.Wait() // its end is in its state
	if status := process.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, want SIGTERM", process.ProcessState)
	}
}
