package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
)

// A plan says what a worker process of a contender does. Workers in other languages get it as plain arguments.
type plan struct {
	addr    string // of the server
	root    string // where its locks are, or its queue
	clients int    // connections
	lockers int    // goroutines or threads that lock or take, spread over the connections; 0 for the order stand alone
	locks   int    // that they share; locker i uses lock i modulo this

	strict  bool          // Turnstile's locks only: no hand-off in memory
	retain  time.Duration // Turnstile's locks only
	packet  int           // Java only: the largest packet it accepts; 0 for its default
	hooks   string        // Turnstile only: what is told of all that happens: see observers
	profile string        // Go only: file for a CPU profile
}

func (p *plan) flags(flags *flag.FlagSet) {
	flags.StringVar(&p.addr, "addr", "", "")
	flags.StringVar(&p.root, "root", "", "")
	flags.IntVar(&p.clients, "clients", 1, "")
	flags.IntVar(&p.lockers, "lockers", 1, "")
	flags.IntVar(&p.locks, "locks", 1, "")
	flags.BoolVar(&p.strict, "strict", false, "")
	flags.DurationVar(&p.retain, "retain", 0, "")
	flags.StringVar(&p.hooks, "hooks", "", "")
	flags.StringVar(&p.profile, "profile", "", "")
}

// args writes the plan as flags can read it.
func (p *plan) args() []string {
	return []string{
		"-addr", p.addr, "-root", p.root,
		"-clients", strconv.Itoa(p.clients), "-lockers", strconv.Itoa(p.lockers), "-locks", strconv.Itoa(p.locks),
		"-strict=" + strconv.FormatBool(p.strict), "-retain", p.retain.String(), "-hooks", p.hooks,
		"-profile", p.profile,
	}
}

// foreign writes the plan for a worker that is no Go.
func (p *plan) foreign(kind string) []string {
	return []string{p.addr, p.root, strconv.Itoa(p.clients), strconv.Itoa(p.lockers), strconv.Itoa(p.locks), kind}
}

// path is where lock i is.
func (p *plan) path(i int) string { return fmt.Sprintf("%s/%03d", p.root, i%p.locks) }

// work is what a worker process does: it connects, prints "ready", and obeys the orders on its standard input until
// that ends. An answer is a line "ok" with figures, or a line "error" and why; see measure.Work.
//
// Workers with queues obey these orders, in Go by queueworker.go:
//
//	put MILLISECONDS     one producer puts items one by one for so long: ok ITEMS NANOSECONDS
//	batch MILLISECONDS   the same, a thousand at a time
//	take N MILLISECONDS  all lockers take and acknowledge items, until N are done or the time is over:
//	                     ok ITEMS NANOSECONDS
//	serve MILLISECONDS   all lockers take and acknowledge items for so long: ok ITEMS NANOSECONDS
//	consume MILLISECONDS every connection takes items, works on each for a while, and acknowledges it:
//	                     ok ITEMS NANOSECONDS
//	relay MILLISECONDS   one connection puts an item, and the next one when another connection has acknowledged it:
//	                     after a line "t BEGAN TAKEN TAKEN" for each: ok ITEMS NANOSECONDS
//	memory               ok BYTES THREADS, what this process needs after a garbage collection
//
// Workers with caches obey these orders, in Go by cacheworker.go:
//
//	load                 makes a cache of each tree, and waits until all are complete: ok NODES NANOSECONDS
//	unload               ends them: ok
//	follow MILLISECONDS  one connection sets a node, again when the cache of another connection has told of it:
//	                     after a line "t BEGAN TOLD TOLD" for each: ok CHANGES NANOSECONDS
//	memory               as above
//
// Workers with counters obey these orders, in Go by counterworker.go:
//
//	count MILLISECONDS   all lockers call their counter for so long: ok CALLS NANOSECONDS
//	memory               as above
//
// Workers with barriers obey these, in Go by barrierworker.go:
//
//	meet N               all parties meet N times: ok N NANOSECONDS
//	gather               all parties but one come: ok NANOSECONDS
//	enter                the last one comes: ok NANOSECONDS, until all have entered
//	leave                all leave: ok NANOSECONDS, until all have left
//
// Workers with members obey these, in Go by memberworker.go:
//
//	join                 the member comes: ok
//	leave                the member begins to leave: ok
//	tally                ok GAINED LOST, how often it was given an item, and how often one was taken from it
//
// All others obey these, in Go by lockworker.go:
//
//	run MILLISECONDS     all lockers lock and unlock for so long: ok CYCLES NANOSECONDS
//	trace MILLISECONDS   the same, after a line "t BEGAN LOCKED UNLOCKED" for each cycle, in nanoseconds of the
//	                     system's clock
//	stand N              one goroutine locks lock 0, then N more wait for it: ok
//	step                 the holder unlocks: ok NANOSECONDS, until the next one has the lock; that one keeps it
//	drain                each holder unlocks at once: ok NANOSECONDS, until the last one has
//	memory               as above
//
// All workers that are written in Go obey this one:
//
//	processor            ok NANOSECONDS, how much of the processor's time this process has had
func work(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New("worker: the kind is missing")
	}
	var p plan
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	p.flags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if p.profile != "" {
		f, err := os.Create(p.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if args[0] == kindServer {
		return hostServer(ctx, p, stdin, stdout)
	}
	w, err := newWorker(ctx, args[0], &p)
	if err != nil {
		return err
	}
	defer w.close()
	obey := func(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error) {
		if order == processorOrder {
			return processorTime()
		}
		return w.obey(ctx, order, n)
	}
	return measure.Work(ctx, stdin, stdout, obey)
}

// A worker is what obeys in one worker process.
type worker interface {
	obey(ctx context.Context, order string, n measure.Numbers) (measure.Answer, error)
	close()
}

func newWorker(ctx context.Context, kind string, p *plan) (worker, error) {
	if open := kinds[kind]; open != nil {
		return newLockWorker(ctx, p, open)
	}
	if open := queueKinds[kind]; open != nil {
		return newQueueWorker(ctx, p, open)
	}
	if kind == kindTurnstileCache {
		return newCacheWorker(ctx, p)
	}
	if open := counterKinds[kind]; open != nil {
		return newCounterWorker(ctx, p, open)
	}
	if meeters[kind] != nil {
		return newBarrierWorker(ctx, p, kind)
	}
	if kind == kindPartitioner {
		return newMemberWorker(ctx, p)
	}
	return nil, fmt.Errorf("worker: there is no %q", kind)
}
