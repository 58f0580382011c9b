//go:build unix

package supervise_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/zktest"
)

// newHold returns a hold that a test can lose.
func newHold(t *testing.T) (h supervise.Hold, lose context.CancelCauseFunc) {
	t.Helper()
	ctx, lose := context.WithCancelCause(t.Context())
	return supervise.Hold{Context: ctx, Session: zktest.Run(t).Session(t, 10*time.Minute)}, lose
}

func shell(line string) supervise.Command {
	return supervise.Command{
		Program: "/bin/sh", Args: []string{"sh", "-c", line}, Grace: time.Second,
		Lost: func(error, time.Duration) {}, Stopping: func(time.Duration) {},
	}
}

func TestCodeIsThatOfAShell(t *testing.T) {
	t.Parallel()
	signals := supervise.Catch()
	defer signals.Release()
	hold, _ := newHold(t)
	for line, want := range map[string]supervise.Ending{
		"exit 0":      {},
		"exit 3":      {Code: 3},
		"kill -9 $$":  {Code: 128 + 9, Signal: syscall.SIGKILL},
		"kill -15 $$": {Code: 128 + 15, Signal: syscall.SIGTERM},
	} {
		p, err := supervise.Start(shell(line), hold, signals)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Wait(t.Context()); got.Ending != want || got.Lost != nil {
			t.Errorf("%s: got %+v, want %+v", line, got, want)
		}
	}
}

func TestGroupIsGoneWhenTheHoldIsLost(t *testing.T) {
	t.Parallel()
	signals := supervise.Catch()
	defer signals.Release()
	hold, lose := newHold(t)
	why := errors.New("it is another client's now")
	var told error
	c := shell("trap '' TERM; sh -c 'trap \"\" TERM; sleep 60' & wait")
	c.Grace = 50 * time.Millisecond
	c.Lost = func(cause error, grace time.Duration) {
		told = cause
		if grace > c.Grace {
			t.Errorf("got a grace of %v, want %v at most", grace, c.Grace)
		}
	}
	p, err := supervise.Start(c, hold, signals)
	if err != nil {
		t.Fatal(err)
	}
	lose(why)
	got := p.Wait(t.Context())
	if !errors.Is(got.Lost, why) || !errors.Is(told, why) {
		t.Errorf("got %v and told %v, want %v", got.Lost, told, why)
	}
	if got.Signal != syscall.SIGKILL && got.Signal != syscall.SIGTERM { // SIGTERM came before the trap
		t.Errorf("got signal %v, want SIGKILL", got.Signal)
	}
	if p.RunsOn(0) {
		t.Error("part of the group still runs")
	}
}

func TestRestOfTheGroupIsGivenTimeToEnd(t *testing.T) {
	t.Parallel()
	signals := supervise.Catch()
	defer signals.Release()
	hold, _ := newHold(t)
	p, err := supervise.Start(shell("sleep 0.1 &"), hold, signals)
	if err != nil {
		t.Fatal(err)
	}
	p.Wait(t.Context())
	if p.RunsOn(time.Minute) {
		t.Error("part of the group still runs")
	}
}

func TestGroupRunsCommandsAtTheSameTime(t *testing.T) {
	t.Parallel()
	g := supervise.NewGroup(false, nil)
	defer g.Close()
	hold, lose := newHold(t)
	results := make(chan supervise.Result, 1)
	go func() {
		r, err := g.Run(t.Context(), shell("sleep 60"), hold)
		if err != nil {
			t.Error(err)
		}
		results <- r
	}()
	r, err := g.Run(t.Context(), shell("exit 4"), hold)
	if err != nil || r.Code != 4 || r.Interrupted {
		t.Errorf("got %+v %v, want code 4", r, err)
	}
	lose(errors.New("lost"))
	if r := <-results; r.Lost == nil || r.Code <= 128 {
		t.Errorf("got %+v, want a loss", r)
	}
	if _, err := g.Run(t.Context(), supervise.Command{Program: "/nonexistent", Args: []string{"x"}}, hold); err == nil {
		t.Error("a command that does not exist was started")
	}
	if sig, again := g.Asked(); sig != nil || again {
		t.Errorf("got %v, %v, want no signal", sig, again)
	}
}
