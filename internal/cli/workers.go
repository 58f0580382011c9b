package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// workerFlag makes a process one of those that "turnstile bench lock --processes" starts. It connects and says "ready", begins at a
// line on its standard input, prints its measurement as JSON, and ends at the latest when its standard input does.
const workerFlag = "worker"

var errLeftAlone = errors.New("whoever has started this process is gone")

// workerGrace is how long a worker may take to end when it is told to.
const workerGrace = 5 * time.Second

// work is the life of such a process.
func (b *bencher) work(ctx context.Context) error {
	b.connection.quiet = true
	client, _, err := b.open(ctx, &b.connection)
	if err != nil {
		return err
	}
	defer client.Close() // the session ends by itself if it cannot be closed now
	if _, err := fmt.Fprintln(b.stdout, "ready"); err != nil {
		return err
	}
	orders := bufio.NewReader(b.stdin)
	if _, err := orders.ReadString('\n'); err != nil {
		return nil // whoever has started us is gone
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the process if its starter lives longer
		_, _ = io.Copy(io.Discard, orders) // any end is one
		cancel(errLeftAlone)
	}()
	measured, err := b.measure(ctx, client)
	if err != nil {
		return err
	}
	return json.NewEncoder(b.stdout).Encode(measured)
}

// commandLine writes the flags that were on the command line, for another process with the same environment.
func commandLine(flags *pflag.FlagSet) []string {
	args := []string{"bench", "lock"}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name == "processes" || f.Name == workerFlag {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+f.Name+"="+v)
		}
	})
	return append(args, "--processes=1", "--"+workerFlag)
}

// worker is one of the processes, as its starter sees it.
type worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer // to be read when the process has ended
	end    func() error // ends the process, if it has not ended, and returns how it did
}

// together has processes lock and unlock at the same time, and puts together what they have measured. They have ended when it returns.
func (b *bencher) together(ctx context.Context) (all measurement, err error) {
	var workers []*worker
	defer func() {
		_ = each(workers, func(_ int, w *worker) error { return w.end() }) // what was wrong with one is known by now
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	for range b.processes {
		w, err := b.start(ctx)
		if err != nil {
			return all, err
		}
		workers = append(workers, w)
	}
	if err := each(workers, func(_ int, w *worker) error { return w.ready() }); err != nil {
		return all, err
	}
	measured := make([]measurement, len(workers))
	if err := each(workers, func(i int, w *worker) error { return w.measure(&measured[i]) }); err != nil {
		return all, err
	}
	for _, m := range measured {
		all.Waits, all.Took = append(all.Waits, m.Waits...), max(all.Took, m.Took)
	}
	return all, nil
}

// each calls f for all workers at the same time, and returns the first one's error.
func each(workers []*worker, f func(i int, w *worker) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		wg.Go(func() { errs[i] = f(i, w) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// start starts a process. It is told to end when ctx ends.
func (b *bencher) start(ctx context.Context) (*worker, error) {
	program, err := executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, program, b.again...)}
	w.cmd.Args[0] = "turnstile"
	w.cmd.Env = b.env.list
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = workerGrace
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	w.cmd.Cancel = w.stdin.Close
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.stdout = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	w.end = sync.OnceValue(func() error {
		_ = w.stdin.Close() // it may be closed
		return w.cmd.Wait()
	})
	return w, nil
}

// ready returns when the process is connected.
func (w *worker) ready() error {
	if line, err := w.stdout.ReadString('\n'); err != nil || line != "ready\n" {
		return w.failed(err)
	}
	return nil
}

// measure lets the process begin, and returns when it is done.
func (w *worker) measure(m *measurement) error {
	if _, err := io.WriteString(w.stdin, "go\n"); err != nil {
		return w.failed(err)
	}
	if err := json.NewDecoder(w.stdout).Decode(m); err != nil {
		return w.failed(err)
	}
	return nil
}

// failed returns why a process has said less than it should: what it told and its exit code, or err if it told nothing.
func (w *worker) failed(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](w.end())
	text, _ := strings.CutPrefix(strings.TrimSpace(w.stderr.String()), "turnstile: ")
	if !ok || text == "" {
		return fmt.Errorf("one of the processes has ended early: %w", cmp.Or(err, errors.New("it said what it should not")))
	}
	return &exitError{code: exit.ExitCode(), err: errors.New(text)}
}
