package queuecmd

// turnstile queue put.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxBody is more than any server takes in one item by default.
const maxBody = 1 << 20

// maxTime is the longest delay or time limit of an item.
const maxTime = 10 * 365 * 24 * time.Hour

// putter is "turnstile queue put".
type putter struct {
	*access
	messageFlags
	writes writes
	key    string
	lines  bool
	null   bool

	message queue.Message // without its body
}

// messageFlags are the flags that say how an item is put.
type messageFlags struct {
	priority int
	delay    command.Duration
	timeout  command.Duration
	group    string
	headers  []string
}

func (m *messageFlags) flags(flags *pflag.FlagSet) {
	flags.IntVar(&m.priority, "priority", 0,
		fmt.Sprintf("smaller is served first, from %d to %d", queue.MostUrgent, queue.LeastUrgent))
	flags.Var(&m.delay, "delay", "how long until the item is ready")
	flags.Var(&m.timeout, "timeout", "how long an attempt at the item may take; 0 means as long as its consumer says")
	flags.StringVar(&m.group, "group", "", "`key` of items that are worked on one at a time and in their order")
	flags.StringArrayVar(&m.headers, "header", nil, "`name=value` to store with the item (repeatable)")
}

// parse returns the message without its body.
func (m *messageFlags) parse(cmd *cobra.Command) (queue.Message, error) {
	if m.priority < queue.MostUrgent || m.priority > queue.LeastUrgent {
		return queue.Message{},
			command.Usagef(cmd, "--priority must be from %d to %d", queue.MostUrgent, queue.LeastUrgent)
	}
	if m.group != "" && m.delay != 0 {
		return queue.Message{},
			command.Usagef(cmd, "--group takes no --delay: the items behind would have to wait, too")
	}
	for name, d := range map[string]command.Duration{"delay": m.delay, "timeout": m.timeout} {
		if time.Duration(d) > maxTime {
			return queue.Message{}, command.Usagef(cmd, "--%s must be between 0 and ten years", name)
		}
	}
	message := queue.Message{
		Priority: m.priority, Delay: time.Duration(m.delay), Timeout: time.Duration(m.timeout), Group: m.group,
	}
	for _, header := range m.headers {
		name, value, ok := strings.Cut(header, "=")
		if _, twice := message.Headers[name]; !ok || name == "" || twice {
			return message,
				command.Usagef(cmd, "--header %q must be name=value, and each name must be used once", header)
		}
		if message.Headers == nil {
			message.Headers = make(map[string]string)
		}
		message.Headers[name] = value
	}
	return message, nil
}

// putJSON is what "turnstile queue put --json" prints.
type putJSON struct {
	Path  string `json:"path"`
	ID    string `json:"id"`
	Added bool   `json:"added"`
}

func newPut(app *command.App) *cobra.Command {
	p := &putter{access: newAccess(app)}
	cmd := &cobra.Command{
		Use:   "put [flags] PATH [BODY | -]",
		Short: "Put one item, or one per input line",
		Long: `Puts an item with the given BODY into the queue at PATH, and prints the item's id. If BODY is - or
missing, the body is all of standard input, byte for byte. When it exits with 0, the item is on the servers'
disks.

With --key an item is put once: if an item was put with the same key in the last day, it puts nothing and
prints that item's id. So an interrupted put can be repeated.

With --with-create, --with-set, --with-delete and --with-check it also writes other nodes, in the order of the
command line: all of that and the item in one transaction, or nothing. With --key they are done only if the
item is put.

With --lines each line of standard input is an item, including its newline; with --null each text between
NUL bytes is, without them. Items are put in order, many at a time, as they arrive. If it is interrupted, a
message says how many lines are in and with which line to continue. A line that is too large for the servers
ends it after all lines before it are in.

Items with the same --group are worked on one at a time, in their order, and those of different groups at the
same time. One that fails keeps the others of its group waiting until it is done or a dead letter.

Smaller priorities are served first, from -100 to 100. A delayed item is ready when its time has come by the
servers' clock.

Exit codes: 0; 1 a write of --with-... was refused, so nothing was done; 64 usage; 65 too large (the limit is
about 1 MB); 69 no server; 77 access denied; 128+N if signal N interrupted it.`,
		Example: `  turnstile queue put /mail 'to: ann'
  turnstile queue put /thumbnails - <photo.jpg --header name=photo.jpg --priority -5
  turnstile queue put /mail --key order-4711 --delay 10m 'to: ann'
  turnstile queue put /orders --group customer-7 'ship order 4711'
  turnstile queue put /mail 'order 4711' --with-check /orders/4711=2 --with-set /orders/4711=paid
  seq 100000 | turnstile queue put /numbers --lines
  find . -name '*.jpg' -print0 | turnstile queue put /thumbnails --lines --null`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.parse(cmd, args); err != nil {
				return err
			}
			if p.lines {
				return p.putLines(cmd.Context())
			}
			body, err := p.body(cmd, args[1:])
			if err != nil {
				return err
			}
			return p.put(cmd.Context(), body)
		},
	}
	flags := cmd.Flags()
	p.messageFlags.flags(flags)
	p.writes.flags(flags)
	flags.StringVar(&p.key, "key", "", "put only if no item was put with the same `text` in the last day")
	flags.BoolVar(&p.lines, "lines", false, "put each line of standard input as one item")
	flags.BoolVarP(&p.null, "null", "0", false, "with --lines, lines end with a NUL byte, as find -print0 writes them")
	p.access.flags(cmd, "one JSON object")
	return cmd
}

// parse checks the command line.
func (p *putter) parse(cmd *cobra.Command, args []string) error {
	if err := p.parsePath(cmd, args); err != nil {
		return err
	}
	switch {
	case len(args) > 2:
		return command.Usagef(cmd, "unexpected argument %q: quote a BODY of several words", strings.Join(args[2:], " "))
	case p.lines && len(args) == 2 && args[1] != "-":
		return command.Usagef(cmd, "--lines reads items from standard input: leave BODY out")
	case p.lines && p.key != "":
		return command.Usagef(cmd, "--key is for one item: leave --lines out")
	case p.null && !p.lines:
		return command.Usagef(cmd, "--null is for --lines")
	case p.lines && len(p.writes) > 0:
		return command.Usagef(cmd, "--with-%s is for one item: leave --lines out", p.writes[0].kind)
	}
	var err error
	p.message, err = p.messageFlags.parse(cmd)
	return err
}

// body returns what to put: the argument, or standard input.
func (p *putter) body(cmd *cobra.Command, args []string) ([]byte, error) {
	if len(args) == 1 && args[0] != "-" {
		return []byte(args[0]), nil
	}
	if command.IsTerminal(p.App.Stdin) && command.IsTerminal(p.App.Stderr) {
		p.App.Say("reading the item from the terminal; Ctrl-D at the beginning of a line ends it")
	}
	body, err := io.ReadAll(io.LimitReader(p.App.Stdin, maxBody+1))
	switch {
	case err != nil:
		return nil, command.Usagef(cmd, "standard input: %w", err)
	case len(body) > maxBody:
		return nil, p.tooLarge(fmt.Errorf("standard input is longer than %d bytes", maxBody))
	}
	return body, nil
}

// tooLarge is the error of an item that no server would take.
func (p *putter) tooLarge(err error) error {
	hint := "store it elsewhere, and put its location"
	return &command.Error{Code: command.ExitData, Err: fmt.Errorf("%s: %w", p.Path, err), Hint: hint}
}

// put puts one item.
func (p *putter) put(ctx context.Context, body []byte) error {
	return p.with(ctx, func(ctx context.Context, _ *zk.Client, q *queue.Queue) error {
		ctx, cancel := endLate(ctx)
		defer cancel()
		var err error
		out := putJSON{Path: p.Path, Added: true}
		m := p.message
		m.Body = body
		ops := p.writes.ops(p.Connection.ACL())
		if p.key != "" {
			out.ID, out.Added, err = q.PutOnce(ctx, p.key, m, ops...)
		} else {
			out.ID, err = q.Put(ctx, m, ops...)
		}
		switch {
		case errors.Is(err, queue.ErrUnresolved):
			return p.unresolved(ctx, err)
		case errors.Is(err, queue.ErrTooLarge):
			return p.tooLarge(err)
		case err != nil:
			return p.writes.refused(err)
		}
		if !out.Added {
			p.App.Say("%s: an item with this key was put before", p.Path)
		}
		p.App.Did.Store(true)
		return p.App.Report(p.AsJSON, out, "%s\n", out.ID)
	})
}

// unresolved is the error of a put that may have been done.
func (p *putter) unresolved(ctx context.Context, err error) error {
	exit := &command.Error{
		Code: command.ExitNoServer,
		Err:  fmt.Errorf("%s: the item may or may not be in: %w", p.Path, err),
		Hint: "check with turnstile queue ls; with --key a put can be repeated in either case",
	}
	if sig, ok := errors.AsType[supervise.SignalError](context.Cause(ctx)); ok {
		exit.Code = sig.Ending().Code
	}
	if p.key != "" {
		exit.Hint = "repeat the same command: --key puts it once"
	}
	return exit
}

// endLate returns a context for requests that a signal should not interrupt: it ends a while after ctx, with the same
// cause.
func endLate(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), command.ErrNoAnswer) {
			cancel(command.ErrNoAnswer) // it has waited long enough
			return
		}
		select {
		case <-time.After(command.ReconnectWait):
			cancel(context.Cause(ctx))
		case <-late.Done():
		}
	})
	return late, func() {
		stop()
		cancel(nil)
	}
}
