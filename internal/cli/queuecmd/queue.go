// Package queuecmd is the commands of turnstile queue.
package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// New returns turnstile queue.
func New(app *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Put items into a queue, and work on them",
		Long: `A queue at PATH holds items, each a body of any bytes, until somebody has worked on them: across machines with
--connect, among the processes of this one without. An item that put has acknowledged is delivered at least
once, however many crash, by priority and then in the order of arrival. What is acknowledged as done is never
delivered again.`,
		Example: `  turnstile queue put /mail 'to: ann'
  turnstile queue work /mail --workers 4 -- ./send-mail
  seq 1000 | turnstile queue put /numbers --lines
  turnstile queue len /numbers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPut(app), newTake(app), newWork(app), newList(app), newLen(app), newDead(app), newPurge(app))
	return cmd
}

// access is how the subcommands that run no command reach their queue.
type access struct {
	app        *command.App
	connection command.Connection
	asJSON     bool
	path       string
	cfg        queue.Config
}

func (u *access) flags(cmd *cobra.Command, object string) {
	flags := cmd.Flags()
	flags.BoolVarP(&u.app.Quiet, "quiet", "q", false, "say nothing but what was asked for, and errors")
	flags.BoolVar(&u.asJSON, "json", false, "print "+object+" (docs/cli-json.md)")
	u.connection.Flags(flags)
	u.connection.ACLFlag(flags)
}

// parsePath checks the PATH.
func (u *access) parsePath(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usage(cmd, errors.New("PATH is missing: name the queue, such as /mail"))
	}
	u.path = args[0]
	if err := checkPath(u.path); err != nil {
		return command.Usage(cmd, err)
	}
	return nil
}

// checkPath returns an error if path cannot be the path of a queue.
func checkPath(path string) error {
	switch err := zk.ValidatePath(path); {
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("PATH %q must begin with a slash, such as /mail", path)
	case err != nil:
		return err
	case path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/"):
		return fmt.Errorf("%s belongs to the server: name a path of the queue's own, such as /mail", path)
	}
	return nil
}

// with connects and calls f with the queue, until a signal comes.
func (u *access) with(ctx context.Context, f func(ctx context.Context, client *zk.Client, q *queue.Queue) error) error {
	ctx, stop := supervise.Until(ctx)
	defer stop()
	return command.Failed(withQueue(ctx, u.app, &u.connection, u.path, u.cfg, true, f))
}

// inspect is with for commands that do not create the queue. If there is none it calls none instead.
func (u *access) inspect(ctx context.Context, none func() error, f func(ctx context.Context, q *queue.Queue) error) error {
	return u.with(ctx, func(ctx context.Context, client *zk.Client, q *queue.Queue) error {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		if err := sess.Sync(ctx, u.path); err != nil { // the server that we are connected to may be behind
			return err
		}
		_, there, err := sess.Exists(ctx, u.path)
		switch {
		case err != nil:
			return err
		case !there:
			u.app.Say("nobody has put anything into %s yet", u.path)
			return none()
		}
		return f(ctx, q)
	})
}

// withQueue connects, and calls f with the queue at a path. With giveUp, what f waits for also ends when the servers
// stay away for longer than --connect-timeout.
func withQueue(ctx context.Context, app *command.App, n *command.Connection, path string, cfg queue.Config, giveUp bool,
	f func(ctx context.Context, client *zk.Client, q *queue.Queue) error,
) error {
	client, sess, err := n.Open(ctx, app)
	if err != nil {
		return err
	}
	defer client.Close() // if it fails, the session ends by itself
	cfg.ACL = n.ACL()
	q, err := queue.New(client, path, cfg)
	if err != nil {
		return &command.Error{Code: command.ExitUsage, Err: err}
	}
	until, stop := ctx, func() {}
	if giveUp {
		until, stop = n.Until(ctx, client, sess, nil)
	}
	defer stop()
	err = f(until, client, q)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), command.ReconnectWait)
	defer cancel()
	_ = q.Close(closing) // what cannot be given back now goes back when the session ends
	return queueError(until, n, client, err)
}

// queueError says what is behind the error of a queue: a signal, a server that is away, or something else at the path.
func queueError(ctx context.Context, n *command.Connection, client *zk.Client, err error) error {
	if _, ok := errors.AsType[*command.Error](err); ok || err == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, command.ErrNoAnswer), errors.Is(err, command.ErrNoAnswer):
		return n.NoServer(client.LastError())
	case errors.Is(cause, context.Canceled):
		return supervise.AsSignal(cause)
	case cause != nil:
		return cause
	case errors.Is(err, queue.ErrNotQueue):
		return &command.Error{
			Code: command.ExitUsage, Err: err, Hint: "choose another PATH: this one is somebody else's",
		}
	}
	return err
}

// bodyJSON is a body in JSON: text if it is UTF-8.
type bodyJSON struct {
	Body   *string `json:"body,omitempty"`
	Base64 []byte  `json:"body_base64,omitempty"`
}

func newBodyJSON(body []byte) bodyJSON {
	if !utf8.Valid(body) {
		return bodyJSON{Base64: body}
	}
	text := string(body)
	return bodyJSON{Body: &text}
}

// excerpt is the beginning of a body, for people.
func excerpt(body []byte) string {
	const most = 40
	text := command.Printable(strings.ToValidUTF8(string(body[:min(len(body), 4*most)]), "\uFFFD"))
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
