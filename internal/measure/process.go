package measure

// Worker processes.

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// OrderLimit is how long a worker may take for an order.
	OrderLimit = 2 * time.Minute
	// StartLimit is how long a worker may take until it is ready.
	StartLimit = time.Minute

	closeLimit = 10 * time.Second // for a worker to end
)

// Processes are workers that get the same orders at the same time.
type Processes []*Process

// Process is a worker process, as the process that has started it sees it. One goroutine at a time may use it.
type Process struct {
	Name  string
	Limit time.Duration // of one order; OrderLimit if zero

	stdin   io.WriteCloser
	answers *bufio.Scanner
	stderr  bytes.Buffer // read when the process has ended
	kill    func()
	wait    func() error
}

// Answer is what a worker answers to an order.
type Answer struct {
	Figures []int64
	Cycles  []Cycle
}

// RefusalError is why a worker cannot do what it was told to.
type RefusalError string

func (r RefusalError) Error() string { return string(r) }

// ProcessError is the error of a worker that refused an order, or gave no answer.
type ProcessError struct {
	Process *Process
	Order   string
	Err     error
}

func (e *ProcessError) Error() string {
	return fmt.Sprintf("%s: %s: %v", e.Process.Name, e.Order, e.Err)
}
func (e *ProcessError) Unwrap() error { return e.Err }

// Start starts a worker, and changes cmd. The caller calls Close. When cmd's context ends, the worker is told to end,
// and killed after cmd.WaitDelay.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	kill := func() { _ = cmd.Process.Kill() } // fails only if the process has ended
	p := NewProcess(name, stdin, out, kill, cmd.Wait)
	cmd.Stderr, cmd.Cancel = &p.stderr, stdin.Close
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, time.Second)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// NewProcess returns a worker that is reached in another way. wait returns how it ended.
func NewProcess(name string, stdin io.WriteCloser, stdout io.Reader, kill func(), wait func() error) *Process {
	return &Process{
		Name: name, stdin: stdin, answers: bufio.NewScanner(stdout), kill: kill, wait: sync.OnceValue(wait),
	}
}

// Ready returns when the worker is ready for orders.
func (p *Process) Ready() error {
	defer p.killAfter(StartLimit)()
	switch {
	case !p.answers.Scan():
		return p.ended("start")
	case p.answers.Text() != "ready":
		return &ProcessError{p, "start", fmt.Errorf("unexpected output %q", p.answers.Text())}
	}
	return nil
}

// Order gives an order and returns the answer.
func (p *Process) Order(order string) (Answer, error) {
	defer p.killAfter(cmp.Or(p.Limit, OrderLimit))()
	if _, err := io.WriteString(p.stdin, order+"\n"); err != nil {
		return Answer{}, p.ended(order)
	}
	var a Answer
	for p.answers.Scan() {
		word, rest, _ := strings.Cut(p.answers.Text(), " ")
		switch word {
		case "t":
			var c Cycle
			if _, err := fmt.Sscan(rest, &c.Began, &c.Locked, &c.Unlocked); err != nil {
				return a, &ProcessError{p, order, fmt.Errorf("cycle %q: %w", rest, err)}
			}
			a.Cycles = append(a.Cycles, c)
		case "ok":
			for field := range strings.FieldsSeq(rest) {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return a, &ProcessError{p, order, err}
				}
				a.Figures = append(a.Figures, n)
			}
			return a, nil
		default:
			return a, &ProcessError{p, order, RefusalError(strings.TrimPrefix(p.answers.Text(), "error "))}
		}
	}
	return a, p.ended(order)
}

func (p *Process) killAfter(limit time.Duration) (stop func() bool) {
	return time.AfterFunc(limit, p.kill).Stop
}

// ended is the error of a worker that has ended instead of answering.
func (p *Process) ended(order string) error {
	const limit = 2000
	err := cmp.Or(p.Close(), errors.New("it has ended"))
	text := p.Stderr()
	return &ProcessError{p, order, fmt.Errorf("no answer (%w): %s", err, text[max(0, len(text)-limit):])}
}

// Close ends the worker, and returns how it ended.
func (p *Process) Close() error {
	_ = p.stdin.Close() // tells it to end; it may be closed
	defer p.killAfter(closeLimit)()
	return p.wait()
}

// Stderr is what a worker that has ended has written to standard error.
func (p *Process) Stderr() string { return strings.TrimSpace(p.stderr.String()) }

// each calls f for all workers at the same time, and returns all errors.
func (all Processes) each(f func(i int, p *Process) error) error {
	var group sync.WaitGroup
	errs := make([]error, len(all))
	for i, p := range all {
		group.Go(func() { errs[i] = f(i, p) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Ready returns when all workers are ready.
func (all Processes) Ready() error {
	return all.each(func(_ int, p *Process) error { return p.Ready() })
}

// Order gives all workers the same order, and returns their answers.
func (all Processes) Order(order string) ([]Answer, error) {
	answers := make([]Answer, len(all))
	err := all.each(func(i int, p *Process) (err error) {
		answers[i], err = p.Order(order)
		return err
	})
	return answers, err
}

// Close ends all workers.
func (all Processes) Close() {
	_ = all.each(func(_ int, p *Process) error { return p.Close() }) // what was wrong was in their answers
}

// Run gives all workers an order whose answers are a count of cycles or items and a time. It returns the count of all,
// the time of the slowest, and all cycles.
func (all Processes) Run(order string) (n int64, took time.Duration, cycles []Cycle, err error) {
	answers, err := all.Order(order)
	for i, a := range answers {
		if err == nil && (len(a.Figures) != 2 || a.Figures[1] <= 0) {
			err = &ProcessError{all[i], order, fmt.Errorf("figures %v, want a count and a time", a.Figures)}
		}
		if err != nil {
			return 0, 0, nil, err
		}
		n += a.Figures[0]
		took = max(took, time.Duration(a.Figures[1]))
		cycles = append(cycles, a.Cycles...)
	}
	return n, took, cycles, err
}
