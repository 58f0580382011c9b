//go:build unix

package lin_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// A run that cannot fail proves nothing. These locks and queues are broken, and the run must find that.

func TestBugIsFoundThatInfersOwnershipInsteadOfCheckingIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, lockTrial{names: broken}, "is not that of a mutex", func(a *arena) { a.exe = inference.program(t) })
}

// broken are the locks that show a bug.
var broken = []string{"mutex-0", "mutex-slow"}

// A bug is planted by replacing an expression of the sources, which know nothing of it.
type bug struct{ file, expression, planted string }

// inference is that of a waiter which takes itself for first whenever the node ahead is gone or was changed.
var inference = bug{"internal/line/position.go", "gone && p.ahead == 1 && p.steady()", "gone || true"}

// sharedClaim is that of a consumer which leaves the node of a claim that it takes over, so that the next one takes
// it over, too.
var sharedClaim = bug{"queue/takeover.go", "zk.DeleteOp(path, version)", "zk.CheckOp(path, version)"}

// bugs are planted together.
type bugs []bug

// program builds the workers' program with the bug.
func (b bug) program(t *testing.T) string {
	t.Helper()
	return bugs{b}.program(t)
}

// plant returns the overlay that has the bugs built in: a file for go build -overlay.
func (all bugs) plant(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replaced := make(map[string]string)
	for i, b := range all {
		file, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(b.file)))
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(cmp.Or(replaced[file], file))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(source, []byte(b.expression)); n != 1 {
			t.Fatalf("%s has the expression %q %d times, want once: change the bug with its file", b.file, b.expression,
				n)
		}
		replaced[file] = filepath.Join(dir, fmt.Sprintf("planted-%d.go", i))
		source = bytes.Replace(source, []byte(b.expression), []byte(b.planted), 1)
		if err := os.WriteFile(replaced[file], source, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err := errors.Join(err, os.WriteFile(overlay, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// program builds the workers' program with the bugs, and without the race detector: the bugs are no races, and such a
// program is built, and runs, in a fraction of the time.
func (all bugs) program(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "lin.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", all.plant(t), "-o", exe, "."}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return exe
}

func TestHolderIsFoundThatDoesNotHeedTheEndOfItsHold(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs many processes")
	}
	found(t, lockTrial{names: broken, deaf: true}, "is not that of a mutex", func(*arena) {})
}

// Producers without a bound put too much, as producers that count wrongly would.
func TestQueueIsFoundThatKeepsNoBound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs many processes")
	}
	found(t, queueTrial{names: []string{boundQueue, slowQueue}, deaf: true}, "more than the bound",
		func(a *arena) { a.length = 4 * time.Second })
}

// A client that takes over a claim leaves its node behind. Items are given back all the time, and each of them makes
// a claim to take over, so that the first moments show the bug.
func TestBugIsFoundThatLeavesAClaimToItsFormerOwner(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, queueTrial{}, "is not that of a queue", func(a *arena) {
		a.exe, a.length = sharedClaim.program(t), 3*time.Second
		a.patience = 5 * time.Second // such a queue is never empty
	})
}

// A client that counts its certainty from any answer trusts a server that is cut off from the others.
func TestHoldersAreFoundThatCountFromPings(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("partitions take long")
	}
	found(t, lockTrial{names: broken, unproved: true}, "is not that of a mutex", partitioned(t))
}

func TestQueueIsFoundWhoseConsumersCountFromPings(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("partitions take long")
	}
	found(t, queueTrial{unproved: true}, "two consumers at once", partitioned(t))
}

// partitioned gives the arena an ensemble whose links are cut.
func partitioned(t *testing.T) func(*arena) {
	t.Helper()
	return func(a *arena) {
		a.ensemble, a.plan, a.length = newEnsemble(t), partitionsAlone, epochLength
		a.servers = a.ensemble.ConnectString()
	}
}

// tries is how many epochs may run until a bug is found: as many as `make lin` runs in a minute. On 2026-11-22, on a
// busy machine, every bug but those of partitions was found in the first epoch, three times out of three. An epoch with
// partitions finds its bug only every other time, because the holder must be a client of the server that is cut off. So
// there are more of these epochs, and one run in 4,000 fails by bad luck.
const (
	tries          = int(time.Minute / epochLength)
	partitionTries = 12
)

// found runs what is broken until the bug is found. Unless plant says otherwise, it runs on one server, with faults
// of the connections only.
func found(t *testing.T, what trial, want string, plant func(*arena)) {
	t.Helper()
	seed := seedOf(t)
	a := newArena(t, seed)
	srv := zktest.Run(t, zktest.SessionTimeouts(time.Second, time.Minute), zktest.Tick(200*time.Millisecond))
	a.servers, a.trial, a.length = srv.Addr(), what, 10*time.Second
	plant(&a)
	tries := tries
	if a.ensemble != nil {
		tries = partitionTries
	}
	for range tries {
		err := a.run(t, seed, a.length)
		if err != nil && strings.Contains(err.Error(), want) {
			t.Logf("found: %v", err)
			return
		}
		t.Logf("got another failure: %v", err)
		seed++
	}
	t.Errorf("got no failure in %d epochs, want the planted bug found", tries)
}
