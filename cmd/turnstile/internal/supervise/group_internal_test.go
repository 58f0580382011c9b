//go:build unix

package supervise

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/zktest"
)

// A stop that came between a command's fork and its being noted would leave the command running.
func TestStopWaitsForACommandThatIsStarting(t *testing.T) {
	t.Parallel()
	sess := zktest.Run(t).Session(t, 10*time.Minute)
	hold := Hold{sess.Context(), sess}
	g := NewGroup(false, nil)
	defer g.Close()
	session, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	g.terminal = &terminal{group: session} // without a shell that would continue us, we do not stop ourselves

	syscall.ForkLock.RLock() // keeps the command from its fork
	ended, handled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c := Command{Program: "/bin/sh", Args: []string{"sh", "-c", "exit 0"}}
		if r, err := g.Run(t.Context(), c, hold); err != nil || r.Code != 0 {
			t.Errorf("got %+v, %v, want code 0", r, err)
		}
	}()
	for g.starting.TryLock() { // until it is starting
		g.starting.Unlock()
	}
	go func() {
		defer close(handled)
		g.handle(syscall.SIGTSTP)
	}()
waits:
	for g.starting.TryRLock() { // until the stop waits for it
		g.starting.RUnlock()
		select {
		case <-handled:
			t.Error("the stop has passed a command by that was starting")
			break waits
		default:
		}
	}
	syscall.ForkLock.RUnlock()
	<-handled
	<-ended
}
