//go:build unix

package lin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// clientFaults injects the clients' faults at their times, and ends those that last.
func (e *epoch) clientFaults(ctx context.Context, faults []fault) {
	begin := time.Now()
	type end struct {
		at   time.Duration
		heal func()
	}
	var ends []end
	endUntil := func(at time.Duration) bool {
		slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
		for len(ends) > 0 && ends[0].at <= at {
			if !pause(ctx, time.Until(begin.Add(ends[0].at))) {
				return false
			}
			ends[0].heal()
			ends = ends[1:]
		}
		return pause(ctx, time.Until(begin.Add(at)))
	}
	for _, f := range faults {
		if !endUntil(f.at) {
			return
		}
		if heal := e.hit(f); heal != nil {
			ends = append(ends, end{f.at + f.lasts, heal})
		}
	}
	endUntil(math.MaxInt64)
}

// blips are the faults that hit one request.
var blips = map[string]func(f fault) zktest.Fault{
	dropReply:  func(fault) zktest.Fault { return zktest.DropReply },
	refuse:     func(fault) zktest.Fault { return zktest.Refuse },
	cutBefore:  func(fault) zktest.Fault { return zktest.CutBefore },
	cutAfter:   func(fault) zktest.Fault { return zktest.CutAfter },
	delayReply: func(f fault) zktest.Fault { return zktest.DelayReply(f.lasts) },
}

// hit injects f and returns the function that ends it. If a connection has two faults, the end of the first ends
// both.
func (e *epoch) hit(f fault) (heal func()) {
	if e.quiet.Load() {
		return nil
	}
	whom := f.whom
	if number, _, held := e.journal.busy(f.place); held {
		if i := slices.Index(e.first, number/numbersPerProcess*numbersPerProcess); i >= 0 { // unless it has been killed
			whom = i*clientsPerProcess + number%numbersPerProcess/goroutinesPerClient
		}
	}
	l, i := e.links[whom], whom/clientsPerProcess
	p := e.team[i]
	name := fmt.Sprintf("%s %d", f.what, whom)
	e.happens(name)
	if blips[f.what] == nil {
		e.tally.hit(f.what)
	}
	switch f.what {
	case drop:
		l.Drop()
		return nil
	case dropAll:
		for _, l := range e.links {
			l.Drop()
		}
		return nil
	case killProcess:
		if err := p.kill(); err != nil {
			e.failed = append(e.failed, err)
		}
		e.start(i)
		return nil
	case stopProcess:
		p.signal(syscall.SIGSTOP)
		return func() {
			e.happens("end: " + name)
			p.signal(syscall.SIGCONT)
		}
	case cut:
		l.Cut()
	case halfOpen:
		l.HalfOpen()
	case mute:
		l.Mute()
	case freeze:
		l.Freeze()
	case slow:
		l.Delay(f.lasts / 50)
	default:
		l.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq == f.nth {
				e.tally.hit(f.what)
				return blips[f.what](f)
			}
			return zktest.Pass
		})
		return nil
	}
	return func() {
		e.happens("end: " + name)
		l.Heal()
	}
}

// happens records the begin or end of a fault, by the clock of the workers' reports.
func (e *epoch) happens(what string) {
	e.faults.Lock()
	defer e.faults.Unlock()
	f, err := os.OpenFile(filepath.Join(e.dir, "happened.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, clock(), what)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		e.t.Error(err)
	}
}

// serverFaults injects the servers' faults, one after the other, until ctx ends. Then all servers serve.
func (e *epoch) serverFaults(ctx context.Context, faults []fault) {
	if e.ensemble == nil {
		e.restarts(ctx, faults)
		return
	}
	for _, f := range faults {
		if !pause(ctx, f.at) {
			return
		}
		e.serverFault(ctx, f)
	}
	<-ctx.Done()
}

// restarts restarts the one server, if it can be, at the times of faults, and each time with a limit on session
// timeouts that is below, at or above what clients ask for.
func (e *epoch) restarts(ctx context.Context, faults []fault) {
	limits := [servers]time.Duration{timeout / 2, timeout, 2 * timeout}
	for _, f := range faults {
		if e.restart == nil || !pause(ctx, f.at/2) {
			break
		}
		e.happens(fmt.Sprintf("restart with sessions of %v at most", limits[f.whom]))
		e.restart(limits[f.whom])
	}
	<-ctx.Done()
}

// serverFault injects f and returns when it is over.
func (e *epoch) serverFault(ctx context.Context, f fault) {
	whom, leader := e.aim(ctx, f)
	links := e.ensemble.Links()
	held := links.Held()
	name := fmt.Sprintf("%s %d (leader %d)", f.what, whom, leader)
	e.happens(name)
	switch f.what {
	case killServer, killLeader:
		e.ensemble.Kill(whom)
		pause(ctx, f.lasts)
		e.ensemble.Restart(whom)
	case stopServer, stopLeader:
		e.ensemble.Pause(whom)
		if pause(ctx, min(f.lasts, leaves)) && f.lasts > leaves {
			links.Zombie(whom) // when it resumes it may believe for a while that it leads
			pause(ctx, f.lasts-leaves)
		}
		e.ensemble.Resume(whom)
	default:
		e.quiet.Store(f.quiet)
		e.partition(f, whom, leader)
		pause(ctx, f.lasts)
		e.quiet.Store(false)
	}
	if !slices.Contains(partitions, f.what) || links.Held() > held {
		e.tally.hit(f.what)
	}
	links.Heal()
	e.happens("end: " + name)
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
