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

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/ownserver"
)

// workerFlag makes a process one of those that "turnstile bench lock --processes" starts. It connects and prints
// "ready", begins when it reads a line, prints its measurement as JSON, and ends at the latest at the end of its
// standard input.
const workerFlag = "worker"

var errParentGone = errors.New("the process that started this one is gone")

// workerGrace is how long a worker may take to end when it is told to.
const workerGrace = 5 * time.Second

// work is what such a process does.
func (b *bencher) work(ctx context.Context) error {
	b.app.Quiet = true
	client, _, err := b.connection.Open(ctx, b.app)
	if err != nil {
		return err
	}
	defer client.Close() // if it fails, the session ends by itself
	if err := b.app.Printf("ready\n"); err != nil {
		return err
	}
	input := bufio.NewReader(b.app.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return nil // the process that started us is gone
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the process at the latest
		_, _ = io.Copy(io.Discard, input) // an error is an end, too
		cancel(errParentGone)
	}()
	measured, err := b.measure(ctx, client)
	if err != nil {
		return err
	}
	return json.NewEncoder(b.app.Stdout).Encode(measured)
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

// measureProcesses measures in several processes at the same time, and combines what they have measured. They have
// ended when it returns.
func (b *bencher) measureProcesses(ctx context.Context) (all measurement, err error) {
	var workers []*worker
	defer func() {
		_ = each(workers, func(_ int, w *worker) error { return w.end() }) // their errors are known by now
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
	program, err := ownserver.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, program, b.again...)}
	w.cmd.Args[0] = "turnstile"
	w.cmd.Env = b.app.Env.List()
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

// failed returns why a process ended early: its message and exit code, or err if it printed none.
func (w *worker) failed(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](w.end())
	text, _ := strings.CutPrefix(strings.TrimSpace(w.stderr.String()), "turnstile: ")
	if !ok || text == "" {
		return fmt.Errorf("one of the processes has ended early: %w", cmp.Or(err, errors.New("unexpected output")))
	}
	return &command.Error{Code: exit.ExitCode(), Err: errors.New(text)}
}
