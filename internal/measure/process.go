package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// orderLimit bounds what a worker may take for one order, startLimit until it is ready.
const (
	orderLimit = 2 * time.Minute
	startLimit = time.Minute
)

// A crew is the worker processes of one contender under one load.
type crew []*process

// A process is one worker.
type process struct {
	name    string
	pid     int
	limit   time.Duration // that one order may take; orderLimit if zero
	stdin   io.WriteCloser
	answers *bufio.Scanner
	stderr  bytes.Buffer // the worker's; read when it has ended
	kill    func()
	wait    func() error
	ended   bool
}

// An answer is what a worker says to one order.
type answer struct {
	figures []int64
	cycles  []cycle
}

// A refusal is what a worker says when it cannot do what it was ordered to.
type refusal string

func (r refusal) Error() string { return string(r) }

// hire starts a worker. It ends when ctx does, and when it is dismissed.
func hire(ctx context.Context, name, program string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	p := &process{name: name, wait: cmd.Wait}
	p.kill = func() { _ = cmd.Process.Kill() } // fails only if it is gone already
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = time.Second
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return p, nil
}

// ready returns when the worker is connected.
func (p *process) ready() error {
	defer p.killAfter(startLimit)()
	switch {
	case !p.answers.Scan():
		return p.failed("start")
	case p.answers.Text() != "ready":
		return fmt.Errorf("%s: start: it says %q", p.name, p.answers.Text())
	}
	return nil
}

// order gives an order and returns the answer.
func (p *process) order(order string) (answer, error) {
	defer p.killAfter(cmp.Or(p.limit, orderLimit))()
	if _, err := io.WriteString(p.stdin, order+"\n"); err != nil {
		return answer{}, errors.Join(err, p.failed(order))
	}
	var a answer
	for p.answers.Scan() {
		word, rest, _ := strings.Cut(p.answers.Text(), " ")
		switch word {
		case "t":
			var c cycle
			if _, err := fmt.Sscan(rest, &c.began, &c.locked, &c.unlocked); err != nil {
				return a, fmt.Errorf("%s: %s: %q: %w", p.name, order, rest, err)
			}
			a.cycles = append(a.cycles, c)
		case "ok":
			for field := range strings.FieldsSeq(rest) {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					return a, fmt.Errorf("%s: %s: %w", p.name, order, err)
				}
				a.figures = append(a.figures, n)
			}
			return a, nil
		default:
			return a, fmt.Errorf("%s: %s: %w", p.name, order, refusal(strings.TrimPrefix(p.answers.Text(), "error ")))
		}
	}
	return a, p.failed(order)
}

func (p *process) killAfter(limit time.Duration) (stop func()) {
	timer := time.AfterFunc(limit, p.kill)
	return func() { timer.Stop() }
}

// failed says why a worker has nothing more to say.
func (p *process) failed(order string) error {
	const limit = 2000
	err := p.dismiss()
	text := bytes.TrimSpace(p.stderr.Bytes())
	return fmt.Errorf("%s: %s: no answer (%w): %s", p.name, order, err, text[max(0, len(text)-limit):])
}

// dismiss ends the worker and waits for its end.
func (p *process) dismiss() error {
	if p.ended {
		return nil
	}
	p.ended = true
	_ = p.stdin.Close() // tells it to end
	defer p.killAfter(10 * time.Second)()
	if err := p.wait(); err != nil {
		return err
	}
	return errors.New("it has ended")
}

func (c crew) dismiss() {
	var group sync.WaitGroup
	for _, p := range c {
		group.Go(func() { _ = p.dismiss() }) // what it had to say was said in its answers
	}
	group.Wait()
}

// order gives all workers the same order at the same time and returns their answers.
func (c crew) order(order string) ([]answer, error) {
	answers := make([]answer, len(c))
	errs := make([]error, len(c))
	var group sync.WaitGroup
	for i, p := range c {
		group.Go(func() { answers[i], errs[i] = p.order(order) })
	}
	group.Wait()
	return answers, errors.Join(errs...)
}
