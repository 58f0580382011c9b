package recipecmd

// turnstile share.

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/member"
)

// sharer is "turnstile share".
type sharer struct {
	app    *command.App
	run    command.Runner
	file   string
	id     string
	settle command.Duration
	again  command.Duration

	program string
	group   *supervise.Group
}

func newShare(app *command.App) *cobra.Command {
	s := &sharer{app: app, run: command.Runner{App: app, CheckPath: command.CheckPath, Words: command.Words{
		Path: "members", Noun: "item", Over: "ended",
	}}}
	cmd := &cobra.Command{
		Use:   "share [flags] PATH --items-file FILE -- COMMAND [ARG...]",
		Short: "Share items with other processes, and run a command for each of one's own",
		Long: `Joins those that share the items at PATH, and runs the command for each item that is this process's
share, all at the same time. An item belongs to one process at most. When processes come or go, few items move:
the command of an item that is to go receives SIGTERM, and SIGKILL after --grace, and the item passes on when
the whole group of the command has ended. When no server answers, all commands end in the same way before
another process can have their items, and are run again when this process has items again. Items are the lines
of the file; all processes should have the same.

The command's environment has TURNSTILE_ITEM, TURNSTILE_TOKEN (larger for every later owner of the item),
TURNSTILE_ID, TURNSTILE_PATH, TURNSTILE_SESSION and TURNSTILE_SESSION_TIMEOUT_MS. A command that ends with 0
is not run again while the item stays here; one that fails is run again after --retry-delay.

At the first signal to end, the commands receive it, and each item passes on when its command has ended; the
second one kills them.

Exit codes: 0 ended by a signal; 128+N if signal N came twice; 64 usage; 69 no server at the start; 77 access
denied; 126 command cannot be executed; 127 not found.`,
		Example: `  turnstile share /feeds --items-file feeds.txt -- sh -c './fetch "$TURNSTILE_ITEM"'
  seq 0 15 | turnstile share /partitions --items-file - --id "$(hostname)" -- ./consume`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.run.Parse(cmd, args, s.check); err != nil {
				return err
			}
			return command.Failed(s.share(cmd.Context()))
		},
	}
	s.settle, s.again = command.Duration(time.Second), command.Duration(time.Second)
	flags := cmd.Flags()
	flags.StringVar(&s.file, "items-file", "", "`file` with an item on each line; - is standard input")
	flags.StringVar(&s.id, "id", "", "`name` of this process (default: the host's name and the process id)")
	flags.Var(&s.settle, "settle", "how long processes must not come or go before items move")
	flags.Var(&s.again, "retry-delay", "how long to wait before a command that failed is run again")
	s.run.Flags(cmd, supervise.Term, supervise.Kill)
	return cmd
}

func (s *sharer) check(cmd *cobra.Command) error {
	switch {
	case len(s.run.Paths) > 1:
		return command.Usagef(cmd, "items are shared at one PATH")
	case s.run.Argv == nil:
		return command.Usagef(cmd, "the command is missing: name one to run for each item")
	case s.file == "":
		return command.Usagef(cmd, "--items-file is missing: a file with an item on each line")
	case s.again == 0:
		return command.Usagef(cmd, "--retry-delay must not be 0: a failed command would fail again at once")
	case s.settle == 0:
		return command.Usagef(cmd, "--settle must not be 0")
	}
	if s.id == "" {
		host, _ := os.Hostname() // the process id is enough on one machine
		s.id = host + "-" + strconv.Itoa(os.Getpid())
	}
	return nil
}

// items reads the file.
func (s *sharer) items() ([]string, error) {
	from := s.app.Stdin
	if s.file != "-" {
		f, err := os.Open(s.file)
		if err != nil {
			return nil, misuse("--items-file: %w", err)
		}
		defer f.Close()
		from = f
	}
	var items []string
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if item := lines.Text(); item != "" { // without the \r of a line that ends with \r\n
			items = append(items, item)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, misuse("--items-file: %w", err)
	}
	if len(items) == 0 {
		return nil, misuse("--items-file %s has no items", s.file)
	}
	return items, nil
}

// share runs commands for the items until a signal comes.
func (s *sharer) share(ctx context.Context) error {
	items, err := s.items()
	if err != nil {
		return err
	}
	if s.program, err = s.run.Program(); err != nil {
		return err
	}
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.group = supervise.NewGroup(false, func(sig os.Signal, running int) {
		stop(supervise.SignalError{Signal: sig})
		if running > 0 {
			s.app.Say("%s: %v: %s to end; the next signal kills", s.run.Path, sig, command.Plural(running, "command"))
		}
	})
	defer s.group.Close()
	err = s.connect(within, items)
	sig, killed := s.group.Asked()
	_, signal := errors.AsType[supervise.SignalError](err)
	switch {
	case killed:
		return supervise.SignalError{Signal: sig}
	case signal:
		return nil // what share waits for
	case ctx.Err() != nil:
		return supervise.AsSignal(err)
	}
	return err
}

// connect connects, and shares the items until ctx ends.
func (s *sharer) connect(ctx context.Context, items []string) error {
	client, sess, err := s.run.Connection.Open(ctx, s.app)
	if err != nil {
		return err
	}
	defer client.Close() // if it fails, the session ends by itself
	s.run.WarnOfTimes(sess.Timeout())
	p, err := member.NewPartitioner(client, s.run.Path, s.id, items, member.PartitionerConfig{
		Settle: time.Duration(s.settle), ACL: s.run.Connection.ACL(), AnyACL: s.run.Connection.AnyACL,
		Hooks: s.tell(),
	})
	if err != nil {
		return misuse("%w", err)
	}
	if err := p.Run(ctx, s.work); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// tell returns hooks that tell of a first refusal, and of the next one only after an item was gained.
func (s *sharer) tell() member.PartitionerHooks {
	var told sync.Map // the items
	return member.PartitionerHooks{
		Gained: func(share *member.Share) {
			told.Delete(share.Item())
			told.Delete("")
		},
		Refused: func(item string, err error) {
			if _, again := told.LoadOrStore(item, true); again {
				return
			}
			what := "the list of processes"
			if item != "" {
				what = "item " + item
			}
			s.app.Say("%s: %s: %v; retrying", s.run.Path, what, err)
		},
	}
}

// work runs the command for an item until it has succeeded or the item must go. A command that was ended because no
// server answered is run again if one answers before the session has ended: the item is still ours then.
func (s *sharer) work(ctx context.Context, share *member.Share) error {
	for {
		err := share.Session().Certify(ctx)
		if ctx.Err() != nil || share.Session().Err() != nil {
			return nil //nolint:nilerr // the item must go
		}
		if err != nil {
			return err
		}
		done, err := s.once(ctx, share)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(s.again)):
		}
	}
}

// once runs the command, and reports whether it need not be run again.
func (s *sharer) once(ctx context.Context, share *member.Share) (done bool, err error) {
	held, stop := untilMoved(share)
	defer stop()
	c := s.run.Command(s.program, share, "TURNSTILE_ITEM="+share.Item(), "TURNSTILE_ID="+s.id)
	result, err := s.group.Run(context.WithoutCancel(ctx), c, supervise.Hold{Context: held, Session: share.Session()})
	switch {
	case errors.Is(err, supervise.ErrStopping):
		return true, nil
	case err != nil:
		return true, command.CannotRun(err)
	case result.Lost != nil:
		s.app.Detail("%s: item %s: ended: %v", s.run.Path, command.Plain(share.Item()), result.Lost)
		return false, nil
	case result.Interrupted:
		return true, nil
	case result.Code == 0:
		s.app.Detail("%s: item %s: done", s.run.Path, command.Plain(share.Item()))
		return true, nil
	}
	s.app.Say("%s: item %s: exit code %d, again in %v",
		s.run.Path, command.Plain(share.Item()), result.Code, time.Duration(s.again))
	return false, nil
}

// untilMoved returns the context of a command that works on a share. A signal to this process does not end it: the
// command gets the signal, and the item stays until the command has ended.
func untilMoved(share *member.Share) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	moved := context.AfterFunc(share.Context(), func() {
		cause := context.Cause(share.Context())
		if _, ok := errors.AsType[supervise.SignalError](cause); !ok {
			cancel(cause)
		}
	})
	ended := context.AfterFunc(share.Session().Context(), func() { cancel(context.Cause(share.Session().Context())) })
	return ctx, func() {
		moved()
		ended()
		cancel(nil)
	}
}
