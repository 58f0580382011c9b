package cli

// The worker processes of turnstile bench.

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/internal/measure"
)

// workerFlag makes a process one of those that "turnstile bench lock --processes" starts: a worker that measures at the
// order "run".
const workerFlag = "worker"

// workerGrace is how long a worker may take to end when it is told to.
const workerGrace = 5 * time.Second

// work is what a worker does.
func (b *bencher) work(ctx context.Context) error {
	b.app.Quiet = true
	client, _, err := b.connection.Open(ctx, b.app)
	if err != nil {
		return err
	}
	defer client.Close() // if it fails, the session ends by itself
	var failed error
	err = measure.Work(ctx, b.app.Stdin, b.app.Stdout,
		func(ctx context.Context, _ string, _ measure.Numbers) (a measure.Answer, err error) {
			a, failed = b.measure(ctx, client)
			return a, failed
		})
	return cmp.Or(failed, err)
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

// measureProcesses measures in several processes at the same time. They have ended when it returns.
func (b *bencher) measureProcesses(ctx context.Context) (a measure.Answer, err error) {
	var workers measure.Processes
	defer func() {
		workers.Close()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	program, err := ownserver.Executable()
	if err != nil {
		return a, err
	}
	for range b.processes {
		cmd := exec.CommandContext(ctx, program, b.again...)
		cmd.Args[0], cmd.Env, cmd.WaitDelay = "turnstile", b.app.Env.List, workerGrace
		w, err := measure.Start("one of the processes", cmd)
		if err != nil {
			return a, err
		}
		w.Limit = measure.OrderLimit + time.Duration(b.duration)
		workers = append(workers, w)
	}
	if err := workers.Ready(); err != nil {
		return a, workerError(err)
	}
	n, took, cycles, err := workers.Run("run")
	return measure.Answer{Figures: []int64{n, took.Nanoseconds()}, Cycles: cycles}, workerError(err)
}

// workerError is the error that a worker has printed, with its exit code, if it has ended with one.
func workerError(err error) error {
	failed, ok := errors.AsType[*measure.ProcessError](err)
	if !ok {
		return err
	}
	exit, ok := errors.AsType[*exec.ExitError](failed.Process.Close())
	text, _ := strings.CutPrefix(failed.Process.Stderr(), "turnstile: ")
	if !ok || text == "" {
		return err
	}
	return &command.Error{Code: exit.ExitCode(), Err: errors.New(text)}
}
