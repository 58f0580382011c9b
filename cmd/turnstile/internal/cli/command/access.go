package command

// How commands reach what is at a path.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/zk"
)

// ExitMissing is the exit code of a command that finds no node at its path, or another state than it requires.
const ExitMissing = 1

// Access is how a command reaches what is at a path: its flags, and its connection while it runs.
type Access struct {
	App        *App
	Connection Connection
	AsJSON     bool
	Path       string
}

// Flags adds the flags that all such commands have. Object says what --json prints.
func (a *Access) Flags(cmd *cobra.Command, object string) {
	flags := cmd.Flags()
	flags.BoolVarP(&a.App.Quiet, "quiet", "q", false, "print only results and errors")
	flags.BoolVar(&a.AsJSON, "json", false, "print "+object+" (docs/cli-json.md)")
	a.Connection.Flags(flags)
}

// ParsePath takes the PATH of a node that may be the server's own, from args.
func (a *Access) ParsePath(cmd *cobra.Command, args []string, example string) error {
	if len(args) == 0 {
		return Usagef(cmd, "PATH is missing: name a node, such as %s", example)
	}
	a.Path = args[0]
	if !strings.HasPrefix(a.Path, "/") {
		return Usagef(cmd, "PATH %q must begin with a slash, such as %s", a.Path, example)
	}
	if err := zk.ValidatePath(a.Path); err != nil {
		return Usage(cmd, err)
	}
	return nil
}

// With connects and calls f, until a signal comes or the servers stay away for longer than --connect-timeout.
func (a *Access) With(ctx context.Context, f func(ctx context.Context, client *zk.Client) error) error {
	return UntilSignal(ctx, func(ctx context.Context) error { return a.Open(ctx, true, f) })
}

// Open connects and calls f, until ctx ends. With giveUp, what f waits for also ends when the servers stay away for
// longer than --connect-timeout.
func (a *Access) Open(ctx context.Context, giveUp bool, f func(context.Context, *zk.Client) error) error {
	client, sess, err := a.Connection.Open(ctx, a.App)
	if err != nil {
		return err
	}
	defer closeUnlessSilent(ctx, client)
	if giveUp {
		var stop func()
		ctx, stop = a.Connection.Until(ctx, client, sess, nil)
		defer stop()
	}
	return a.Explain(ctx, client, f(ctx, client))
}

// Serve calls f with a client that connects, also while no server answers, until ctx ends.
func (a *Access) Serve(ctx context.Context, f func(context.Context, *zk.Client) error) error {
	client, err := a.Connection.Begin(ctx, a.App)
	if err != nil {
		return err
	}
	defer closeUnlessSilent(ctx, client)
	return a.Explain(ctx, client, f(ctx, client))
}

// silentClose is how long a server may take to close the session of a command that a signal has ended.
const silentClose = 200 * time.Millisecond

// closeUnlessSilent closes the client. If that fails, the session ends by itself. When a signal has ended ctx, the user
// waits: then it does not wait for a server that is silent. This process ends soon after it.
func closeUnlessSilent(ctx context.Context, client *zk.Client) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = client.Close()
	}()
	var silent <-chan time.Time
	if _, signal := errors.AsType[supervise.SignalError](context.Cause(ctx)); signal {
		silent = time.After(silentClose)
	}
	select {
	case <-closed:
	case <-silent:
	}
}

// Explain returns the reason for an error: a signal, a server that is away, or a node that is missing or there.
func (a *Access) Explain(ctx context.Context, client *zk.Client, err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrNoAnswer), errors.Is(err, ErrNoAnswer):
		return a.Connection.NoServer(client.LastError())
	case errors.Is(cause, context.Canceled):
		return supervise.AsSignal(cause)
	case cause != nil:
		return cause
	case errors.Is(err, zk.NoNode) && pathOf(err, a.Path) == "/": // which every server has
		const format = "/: no such node: the chroot of --connect does not exist: %s"
		return &Error{Code: ExitMissing, Err: fmt.Errorf(format, a.Connection.Where())}
	case errors.Is(err, zk.NoNode):
		return &Error{Code: ExitMissing, Err: fmt.Errorf("%s: no such node", pathOf(err, a.Path))}
	}
	return err
}

// pathOf returns the path that an error of the client names, or else path.
func pathOf(err error, path string) string {
	if e, ok := errors.AsType[*zk.Error](err); ok && e.Path != "" {
		return e.Path
	}
	return path
}
