//go:build unix

package lin_test

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// A run that cannot fail proves nothing. These are locks that are broken, and the run must find two holders.

func TestBugIsFoundThatInfersOwnershipInsteadOfCheckingIt(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program and runs it for a while: not in short mode")
	}
	exe := filepath.Join(t.TempDir(), "lin.test")
	args := []string{"test", "-c", "-tags", "plantedbug", "-o", exe}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race") // what it consists of is built already
	}
	if out, err := exec.CommandContext(t.Context(), "go", append(args, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	found(t, func(a *arena) { a.exe = exe })
}

func TestHolderIsFoundThatDoesNotHeedTheEndOfItsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes for a while: not in short mode")
	}
	found(t, func(a *arena) { a.deaf = true })
}

// found lets broken mutexes run until two holders are found. They run on a server whose faults are those of the connections alone.
func found(t *testing.T, plant func(*arena)) {
	t.Helper()
	const tries = 10
	seed := seedOf(t)
	a := newArena(t, seed)
	srv := zktest.Run(t, zktest.SessionTimeouts(time.Second, time.Minute), zktest.Tick(200*time.Millisecond))
	a.servers, a.places = srv.Addr(), []string{"mutex-0", "mutex-slow"}
	plant(&a)
	for range tries {
		err := a.run(t, seed, 10*time.Second)
		if err != nil && strings.Contains(err.Error(), "is not a mutex's") {
			t.Logf("found: %v", err)
			return
		}
		t.Logf("not what is planted: %v", err)
		seed++
	}
	t.Errorf("%d epochs have not found the bug", tries)
}
