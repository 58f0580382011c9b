// Package queuecmd is the commands of turnstile queue.
package queuecmd

// What all queue commands share.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// New returns turnstile queue.
func New(app *command.App) *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "queue",
		Short: "Put items into a queue, and process them",
		Long: `A queue at PATH holds items, each with a body of any bytes: across machines with --connect, otherwise
among the processes of this machine. An item that put has acknowledged is delivered at least once, even if
clients or servers crash, by priority and then in the order of arrival. After its consumer has acknowledged
it, it is never delivered again.`,
		Example: `  turnstile queue put /mail 'to: ann'
  turnstile queue work /mail --workers 4 -- ./send-mail
  seq 1000 | turnstile queue put /numbers --lines
  turnstile queue len /numbers`,
	}, newPut(app), newCron(app), newTake(app), newWork(app), newList(app), newItems(app), newShow(app), newLen(app),
		newConsumers(app), newRemove(app), newPause(app), newResume(app), newRate(app), newDead(app), newPurge(app))
}

// access is how a subcommand reaches its queue.
type access struct {
	command.Access
	cfg queue.Config
}

func newAccess(app *command.App) *access { return &access{Access: command.Access{App: app}} }

// flags adds the flags that all these commands have. Object says what --json prints.
func (u *access) flags(cmd *cobra.Command, object string) {
	u.Flags(cmd, object)
	u.Connection.ACLFlags(cmd.Flags())
}

// parsePath checks the PATH.
func (u *access) parsePath(cmd *cobra.Command, args []string) error {
	const example = "/mail"
	if len(args) == 0 {
		return command.Usagef(cmd, "PATH is missing: name the queue, such as %s", example)
	}
	if err := u.ParsePath(cmd, args, example); err != nil {
		return err
	}
	if err := checkPath(u.Path); err != nil {
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
		return fmt.Errorf("%s belongs to the server: choose another path, such as /mail", path)
	}
	return nil
}

// with connects and calls f with the queue, until a signal comes.
func (u *access) with(ctx context.Context, f func(ctx context.Context, client *zk.Client, q *queue.Queue) error) error {
	return command.UntilSignal(ctx, func(ctx context.Context) error { return u.open(ctx, true, f) })
}

// inspect is with for commands that do not create the queue. If there is none it calls none instead.
func (u *access) inspect(ctx context.Context, none func() error, f func(context.Context, *queue.Queue) error) error {
	return u.with(ctx, func(ctx context.Context, client *zk.Client, q *queue.Queue) error {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		if err := sess.Sync(ctx, u.Path); err != nil { // the server that we are connected to may be behind
			return err
		}
		_, there, err := sess.Exists(ctx, u.Path)
		switch {
		case err != nil:
			return err
		case !there:
			u.App.Say("there is no queue at %s yet", u.Path)
			return none()
		}
		return f(ctx, q)
	})
}

// open connects, and calls f with the queue. With giveUp, what f waits for also ends when the servers stay away for
// longer than --connect-timeout.
func (u *access) open(ctx context.Context, giveUp bool, f func(context.Context, *zk.Client, *queue.Queue) error) error {
	return u.Open(ctx, giveUp, func(ctx context.Context, client *zk.Client) error {
		u.cfg.ACL, u.cfg.AnyACL = u.Connection.ACL(), u.Connection.AnyACL
		q, err := queue.New(client, u.Path, u.cfg)
		if err != nil {
			return &command.Error{Code: command.ExitUsage, Err: err}
		}
		err = f(ctx, client, q)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), command.ReconnectWait)
		defer cancel()
		_ = q.Close(closing) // what cannot be given back now goes back when the session ends
		if errors.Is(err, queue.ErrNotQueue) {
			return &command.Error{Code: command.ExitUsage, Err: err, Hint: "choose another PATH"}
		}
		if errors.Is(err, zk.BadArguments) {
			return &command.Error{Code: command.ExitUsage, Err: err}
		}
		return err
	})
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
