package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

func (c *cli) queue() *cobra.Command {
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
	cmd.AddCommand(c.queuePut(), c.queueTake(), c.queueWork(), c.queueList(), c.queueLen(), c.queueDead(), c.queuePurge())
	return cmd
}

// queuer is what the subcommands of "turnstile queue" have in common that run no command.
type queuer struct {
	*cli
	connection connection
	quiet      bool
	asJSON     bool
	path       string
	cfg        queue.Config
}

func (u *queuer) flags(cmd *cobra.Command, object string) {
	flags := cmd.Flags()
	flags.BoolVarP(&u.quiet, "quiet", "q", false, "say nothing but what was asked for, and errors")
	flags.BoolVar(&u.asJSON, "json", false, "print "+object+" (docs/cli-json.md)")
	u.connection.flags(flags)
	u.connection.aclFlag(flags)
}

// takePath checks the PATH.
func (u *queuer) takePath(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd, errors.New("PATH is missing: name the queue, such as /mail"))
	}
	u.path, u.connection.quiet = args[0], u.quiet
	if err := checkQueue(u.path); err != nil {
		return usage(cmd, err)
	}
	return nil
}

// checkQueue refuses what cannot be the path of a queue.
func checkQueue(path string) error {
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

// say writes a line for people, unless they want none.
func (u *queuer) say(format string, a ...any) {
	if !u.quiet {
		fmt.Fprintf(u.stderr, "turnstile: "+format+"\n", a...)
	}
}

// with connects and calls f with the queue, until a signal comes.
func (u *queuer) with(ctx context.Context, f func(ctx context.Context, client *zk.Client, q *queue.Queue) error) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	return failed(u.withQueue(ctx, &u.connection, u.path, u.cfg, f))
}

// inspect is with for those who do not make a queue where there is none: they get none.
func (u *queuer) inspect(ctx context.Context, none func() error, f func(ctx context.Context, q *queue.Queue) error) error {
	return u.with(ctx, func(ctx context.Context, client *zk.Client, q *queue.Queue) error {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		if err := sess.Sync(ctx, u.path); err != nil { // the server that we happen to be connected to may be behind
			return err
		}
		_, there, err := sess.Exists(ctx, u.path)
		switch {
		case err != nil:
			return err
		case !there:
			u.say("nobody has put anything into %s yet", u.path)
			return none()
		}
		return f(ctx, q)
	})
}

// withQueue connects, and calls f with the queue at a path. What f waits for ends, too, when the servers stay away for longer than
// --connect-timeout.
func (c *cli) withQueue(ctx context.Context, n *connection, path string, cfg queue.Config,
	f func(ctx context.Context, client *zk.Client, q *queue.Queue) error,
) error {
	client, sess, err := c.open(ctx, n)
	if err != nil {
		return err
	}
	defer client.Close() // the session ends by itself if it cannot be closed now
	cfg.ACL = n.acl.list
	q, err := queue.New(client, path, cfg)
	if err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	calm, stop := n.minded(ctx, client, sess, func(error) {})
	defer stop()
	err = f(calm, client, q)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconnectWait)
	defer cancel()
	_ = q.Close(closing) // what cannot be given back now goes back when the session ends
	return n.queueError(calm, err, client.LastError())
}

// queueError says what is behind the error of a queue: a signal, a server that is away, or what stands at the path.
func (n *connection) queueError(ctx context.Context, err, why error) error {
	if _, ok := errors.AsType[*exitError](err); ok || err == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errNoAnswer), errors.Is(err, errNoAnswer):
		return n.noServer(why)
	case errors.Is(cause, context.Canceled):
		return asSignal(cause)
	case cause != nil:
		return cause
	case errors.Is(err, queue.ErrNotQueue):
		return &exitError{code: ExitUsage, err: err, hint: "choose another PATH: this one is somebody else's"}
	}
	return err
}

// bodyJSON is a body in JSON: text if it is UTF-8.
type bodyJSON struct {
	Body   *string `json:"body,omitempty"`
	Base64 []byte  `json:"body_base64,omitempty"`
}

func inJSON(body []byte) bodyJSON {
	if !utf8.Valid(body) {
		return bodyJSON{Base64: body}
	}
	text := string(body)
	return bodyJSON{Body: &text}
}

// excerpt is the beginning of a body, for people.
func excerpt(body []byte) string {
	const most = 40
	text := printable(strings.ToValidUTF8(string(body[:min(len(body), 4*most)]), "\uFFFD"))
	runes := []rune(text)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// atTerminal reports whether a stream is a terminal, or another device for which nobody minds being told more.
func atTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// printf writes what was asked for.
func (u *queuer) printf(format string, a ...any) error {
	_, err := fmt.Fprintf(u.stdout, format, a...)
	return heard(err)
}

// heard is the error of output that cannot be written, if it cannot.
func heard(err error) error {
	if err != nil {
		return unheard(err)
	}
	return nil
}

// plural writes a number of things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
