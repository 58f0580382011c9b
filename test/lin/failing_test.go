//go:build unix

package lin_test

// Workers that fail: the run must find that too, also of those that are killed.

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The jobs of workers that fail.
const (
	racyJob  = "racy"  // has a data race
	shortJob = "short" // the first process ends at once
	idleJob  = "idle"  // does nothing
)

// failingTrial is a trial without locks, whose workers fail.
type failingTrial struct {
	lockTrial
	job string
}

func (f failingTrial) places() []string { return []string{"mutex-0", "mutex-slow"} } // no worker uses them

func (f failingTrial) instruct(o *orders) { o.Job = f.job }

func (failingTrial) settle(*epoch, *zk.Session) error { return nil }

func race(context.Context, *worker, *sync.WaitGroup, *zk.Client, int) error {
	n := 0
	var racers sync.WaitGroup
	for range 2 {
		racers.Go(func() { n++ })
	}
	racers.Wait()
	return nil
}

func idle(context.Context, *worker, *sync.WaitGroup, *zk.Client, int) error { return nil }

func endEarly(_ context.Context, w *worker, _ *sync.WaitGroup, _ *zk.Client, _ int) error {
	if w.First == 0 {
		os.Exit(0)
	}
	return nil
}

// Promise: 1
func TestWorkerIsFoundThatHasADataRace(t *testing.T) {
	t.Parallel()
	needsRaceDetector(t)
	plant{trial: failingTrial{job: racyJob}, want: errRace.Error(), length: time.Second}.find(t)
}

// Such a worker has no exit of its own, which would tell.
//
// Promise: 1
func TestWorkerIsFoundThatHasADataRaceBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	needsRaceDetector(t)
	e := newFailing(t, racyJob)
	e.team[0].calmDown()
	if err := e.team[0].awaitCalm(e.patience); err != nil {
		t.Fatal(err)
	}
	e.hit(fault{what: killProcess})
	if err := errors.Join(e.failed...); !errors.Is(err, errRace) {
		t.Errorf("got %v, want %v", err, errRace)
	}
}

// Promise: 1
func TestWorkerIsFoundThatHasEndedBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	e := newFailing(t, shortJob)
	<-e.team[0].ended
	e.hit(fault{what: killProcess})
	if err := errors.Join(e.failed...); err == nil || !strings.Contains(err.Error(), "it had ended") {
		t.Errorf("got %v, want the failure of a worker that had ended by itself", err)
	}
}

// Promise: 1
func TestWorkerThatIsKilledHasNotFailed(t *testing.T) {
	t.Parallel()
	e := newFailing(t, idleJob)
	e.hit(fault{what: killProcess})
	if err := errors.Join(e.failed...); err != nil {
		t.Errorf("got %v, want no failure", err)
	}
	if err := e.team[0].end(); err != nil {
		t.Errorf("got %v, want no failure", err)
	}
}

// newFailing starts an epoch with one process and without faults.
func newFailing(t *testing.T, job string) *epoch {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs processes")
	}
	a := newArena(t, 0)
	a.servers, a.trial = zktest.Run(t).Addr(), failingTrial{job: job}
	e := &epoch{arena: a, t: t, dir: a.dir, journal: a.trial.newJournal(), team: make([]*process, 1), first: []int{0}}
	for range clientsPerProcess {
		e.links = append(e.links, zktest.Proxy(t, a.servers))
	}
	e.start(0)
	if e.broken != nil {
		t.Fatal(e.broken)
	}
	t.Cleanup(func() { _ = e.team[0].kill() })
	return e
}

func needsRaceDetector(t *testing.T) {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok || !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector is off")
	}
}
