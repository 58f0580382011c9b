package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// A plan says what a worker process of a contender does. Workers of other languages get the same, in this order, as plain arguments.
type plan struct {
	addr    string // of the server
	root    string // where its locks are, or its queue
	clients int    // connections
	lockers int    // goroutines or threads that lock or take, spread over the connections; 0 if only stand is asked for
	locks   int    // that they share; locker i uses lock i modulo this

	strict  bool          // Turnstile's locks only: no hand-off in memory
	retain  time.Duration // Turnstile's locks only
	packet  int           // Java only: the largest packet it accepts; 0 for its default
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
	flags.StringVar(&p.profile, "profile", "", "")
}

// args writes the plan as flags can read it.
func (p *plan) args() []string {
	return []string{
		"-addr", p.addr, "-root", p.root, "-clients", strconv.Itoa(p.clients), "-lockers", strconv.Itoa(p.lockers), "-locks", strconv.Itoa(p.locks),
		"-strict=" + strconv.FormatBool(p.strict), "-retain", p.retain.String(), "-profile", p.profile,
	}
}

// foreign writes the plan for a worker that is no Go.
func (p *plan) foreign(kind string) []string {
	return []string{p.addr, p.root, strconv.Itoa(p.clients), strconv.Itoa(p.lockers), strconv.Itoa(p.locks), kind}
}

// path is where lock i is.
func (p *plan) path(i int) string { return fmt.Sprintf("%s/%03d", p.root, i%p.locks) }

// work is the life of a worker process: it connects, says "ready", and obeys the orders on its standard input until that ends.
//
// Those that use queues obey these, of which tasks.go has the Go side, and memory:
//
//	put MILLISECONDS    one producer puts items one by one for so long: ok ITEMS NANOSECONDS
//	batch MILLISECONDS  likewise, a thousand at a time
//	take N MILLISECONDS all lockers take items and acknowledge them, until N are done or the time is over: ok ITEMS NANOSECONDS
//	relay MILLISECONDS  one puts an item and, when another has taken and acknowledged it, the next one, for so long: after a line
//	                    "t BEGAN TAKEN TAKEN" for each: ok ITEMS NANOSECONDS
//
// All others obey these, of which gang.go has the Go side:
//
//	run MILLISECONDS    all lockers lock and unlock for so long: ok CYCLES NANOSECONDS
//	trace MILLISECONDS  the same, after a line "t BEGAN LOCKED UNLOCKED" for each cycle, in nanoseconds of the system's clock
//	stand N             one takes lock 0, then N more ask for it: ok
//	step                the holder unlocks: ok NANOSECONDS, until the next one has the lock; that one keeps it
//	drain               whoever gets the lock unlocks it at once: ok NANOSECONDS, until the last one has
//	memory              ok BYTES THREADS, what this process needs after a garbage collection
//
// An order that fails is answered by "error" and why.
func work(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errors.New("worker: which one?")
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
	g, err := form(ctx, args[0], &p)
	if err != nil {
		return err
	}
	defer g.close()
	return obey(stdin, stdout, func(order string, n numbers, out io.Writer) ([]int64, error) { return g.obey(ctx, order, n, out) })
}

// A group is the goroutines of one worker.
type group interface {
	obey(ctx context.Context, order string, n numbers, out io.Writer) ([]int64, error)
	close()
}

func form(ctx context.Context, kind string, p *plan) (group, error) {
	if open := kinds[kind]; open != nil {
		return newGang(ctx, p, open)
	}
	if open := queueKinds[kind]; open != nil {
		return newShift(ctx, p, open)
	}
	return nil, fmt.Errorf("worker: there is no %q", kind)
}

// numbers are what follows an order; what is not there is 0.
type numbers [2]int

func (n numbers) millis(i int) time.Duration { return time.Duration(n[i]) * time.Millisecond }

func parseNumbers(text string) (n numbers, err error) {
	words := strings.Fields(text)
	if len(words) > len(n) {
		return n, fmt.Errorf("%d numbers, want %d at most", len(words), len(n))
	}
	for i, word := range words {
		if n[i], err = strconv.Atoi(word); err != nil {
			return n, err
		}
	}
	return n, nil
}

// obey reads orders and answers them.
func obey(stdin io.Reader, stdout io.Writer, do func(order string, n numbers, out io.Writer) ([]int64, error)) error {
	out := bufio.NewWriter(stdout)
	fmt.Fprintln(out, "ready")
	if err := out.Flush(); err != nil {
		return err
	}
	orders := bufio.NewScanner(stdin)
	for orders.Scan() {
		order, rest, _ := strings.Cut(orders.Text(), " ")
		n, err := parseNumbers(rest)
		var figures []int64
		if err == nil {
			figures, err = do(order, n, out)
		}
		if err != nil {
			fmt.Fprintf(out, "error %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			fmt.Fprint(out, "ok")
			for _, f := range figures {
				fmt.Fprint(out, " ", f)
			}
			fmt.Fprintln(out)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return orders.Err()
}
