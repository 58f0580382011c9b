package queuecmd

// turnstile queue take and turnstile queue work.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// consumer is "turnstile queue take" and "turnstile queue work": their flags.
type consumer struct {
	run        command.Runner
	attempts   int
	backoff    command.Duration
	retryDelay command.Duration
	timeout    command.Duration
	maxDead    int
	keepDead   command.Duration
	onStop     command.Choice

	count int // how many items "take" takes; 0 for "work", which has no limit
	ack   bool
	null  bool
	json  bool

	workers int // how many commands at the same time
	until   command.Choice
}

// takenJSON is what "turnstile queue take --json" prints of each item.
type takenJSON struct {
	Path       string            `json:"path"`
	ID         string            `json:"id"`
	Attempt    int               `json:"attempt"`
	Priority   int               `json:"priority"`
	Group      string            `json:"group,omitempty"`
	EnqueuedAt string            `json:"enqueued_at"`
	Token      int64             `json:"token"`
	Headers    map[string]string `json:"headers,omitempty"`
	bodyJSON
}

// What --on-stop takes.
const (
	onStopSignal = "signal"
	onStopFinish = "finish"
)

// maxHeld is how many items "take" holds at the same time: as many as can be given back into their places.
const maxHeld = 1000

// aboutItems is part of the help of take and work.
const aboutItems = `The command gets the item's body, byte for byte, as its standard input. Its environment has
TURNSTILE_ITEM_ID, TURNSTILE_ITEM_ATTEMPT (1 for the first), TURNSTILE_ITEM_PRIORITY,
TURNSTILE_ITEM_ENQUEUED_AT, TURNSTILE_ITEM_GROUP (empty if it has none, or one with NUL bytes),
TURNSTILE_ITEM_HEADERS (a JSON object), TURNSTILE_ITEM_HEADER_NAME for each header NAME, TURNSTILE_PATH,
TURNSTILE_TOKEN (larger for every later delivery of the item), TURNSTILE_SESSION and
TURNSTILE_SESSION_TIMEOUT_MS. It runs in a session of its own without a terminal; the output of commands that
run at the same time may mix. Its exit code decides:

   0      the item is done, and never delivered again
   75     not now: the item comes again after --retry-delay, and the attempt does not count
   other  failed, also if a signal ended it: the item comes again after --backoff, which doubles each time up
          to ten minutes; after --max-attempts it is a dead letter (turnstile queue dead)

If the claim of the item is lost, the command's group receives SIGTERM, and SIGKILL before another consumer
receives the item. So does a command that takes longer than --timeout, or than the item's
own limit: that attempt has failed, whatever code it then exits with; exit code 124 tells of it.
A command that does not exist is reported before an item is taken. If a command cannot be
started, turnstile ends, and the item goes back as if it had not been delivered. If SIGKILL ends turnstile,
the item is delivered again when the session has ended, which counts as an attempt.

At the first SIGINT, SIGTERM, SIGQUIT or SIGHUP turnstile takes no more items, and passes the signal on to
the running commands; with --on-stop finish it does not, and they run to their end. Items whose commands it
ends go back, and the attempt does not count. The second such signal kills the commands. Other signals are
passed on.`

func newConsumer(app *command.App) *consumer {
	return &consumer{run: command.Runner{App: app, CheckPath: checkPath, Words: command.Words{
		Path: "queue", Noun: "claim", Won: "taken", Over: "done",
		Busy: "no item is ready", Late: "no item is ready by this time", Next: "turnstile queue len counts the items",
	}}}
}

// commandFlags are the flags that go with a command.
func (w *consumer) commandFlags(cmd *cobra.Command) {
	w.backoff, w.retryDelay = command.Duration(time.Second), command.Duration(time.Second)
	w.onStop = command.NewChoice(onStopSignal, onStopFinish)
	flags := cmd.Flags()
	flags.IntVar(&w.attempts, "max-attempts", 20,
		"failed attempts after which an item is a dead letter; 0 means no limit")
	flags.Var(&w.backoff, "backoff", "pause after an item's first failed attempt")
	flags.Var(&w.retryDelay, "retry-delay", "pause after a command has exited with 75")
	flags.Var(&w.timeout, "timeout",
		"how long a command may take for an item without a limit of its own; 0 means no limit")
	flags.IntVar(&w.maxDead, "max-dead", 0, "remove the oldest dead letters beyond so many; 0 means no limit")
	flags.Var(&w.keepDead, "keep-dead", "remove dead letters that are older; 0 means never")
	flags.Var(&w.onStop, "on-stop", "what a signal to end does to running commands")
	w.run.Flags(cmd, supervise.Term, supervise.Kill)
}

func newTake(app *command.App) *cobra.Command {
	w := newConsumer(app)
	cmd := &cobra.Command{
		Use:   "take [flags] PATH [-- COMMAND [ARG...]]",
		Short: "Take items: print them, or run a command for each",
		Long: `Takes the next item from the queue at PATH, after waiting for one if there is none. With -n N it also
takes the items that are ready after it, up to N in all.

With --ack it prints the items, each followed by a newline if it does not end with one, and acknowledges
them once they are written: an item that it has not acknowledged is delivered again. At a terminal it escapes
control characters, without --null. Without --ack it prints
the items and gives them back, in their places and as if they had not been taken.

With a command it runs the command for one item after the other, and exits with the first code that is not
0.

` + aboutItems + `

Exit codes: 0; the command's, or 128+N if signal N ended it or the wait; 1 (or -E) no item was ready; 64 usage;
69 no server; 75 the claim was lost, and the item is delivered again; 77 access denied; 126 command cannot
be executed; 127 not found.`,
		Example: `  turnstile queue take /mail --ack
  turnstile queue take /mail -n 100 --no-wait --ack >batch.txt
  turnstile queue take /mail --wait 30s --ack --json | jq -r .body
  turnstile queue take /thumbnails -c 'convert - "$TURNSTILE_ITEM_ID.png"'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.run.Parse(cmd, args, w.checkTake); err != nil {
				return err
			}
			if w.run.Argv == nil {
				return w.printItems(cmd.Context())
			}
			return w.runCommands(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&w.count, "count", "n", 1, "how many items at most")
	w.run.WaitFlags(cmd, "")
	flags.BoolVar(&w.ack, "ack", false, "acknowledge the items that are printed")
	flags.BoolVarP(&w.null, "null", "0", false, "print each item as it is, followed by a NUL byte")
	flags.BoolVar(&w.json, "json", false, "print one JSON object per item (docs/cli-json.md)")
	w.commandFlags(cmd)
	return cmd
}

func (w *consumer) checkTake(cmd *cobra.Command) error {
	flags := cmd.Flags()
	switch {
	case w.count < 1:
		return command.Usagef(cmd, "-n must be at least 1")
	case w.run.Argv == nil && !w.ack && w.count > maxHeld:
		return command.Usagef(cmd, "-n is at most %d for items that are given back: see --ack, or queue ls", maxHeld)
	case w.run.Argv != nil && flags.Changed("ack"):
		return command.Usagef(cmd, "--ack is for printing: an item is acknowledged when its command has exited with 0")
	case w.run.Argv != nil && (flags.Changed("json") || flags.Changed("null")):
		return command.Usagef(cmd, "--json and --null are for printing: leave them out, or the command")
	case w.json && w.null:
		return command.Usagef(cmd, "--json and --null contradict each other: leave one out")
	}
	w.workers, w.until = 1, command.NewChoice(untilSignal)
	return w.checkCommand(cmd)
}

// checkCommand checks the flags that go with a command.
func (w *consumer) checkCommand(cmd *cobra.Command) error {
	switch {
	case len(w.run.Paths) > 1:
		return command.Usagef(cmd, "a queue has one PATH")
	case w.attempts < 0:
		return command.Usagef(cmd, "--max-attempts must not be negative; 0 means no limit")
	case w.maxDead < 0:
		return command.Usagef(cmd, "--max-dead must not be negative; 0 means no limit")
	case time.Duration(w.timeout) > maxTime:
		return command.Usagef(cmd, "--timeout is at most ten years; 0 means no limit")
	case w.run.Argv == nil && cmd.Flags().Changed("timeout"):
		return command.Usagef(cmd, "--timeout is for a command")
	case w.backoff == 0:
		return command.Usagef(cmd, "--backoff must not be 0: a failed item would fail again at once")
	case time.Duration(w.backoff) > maxTime:
		return command.Usagef(cmd, "--backoff is at most ten years")
	}
	return nil
}

func (w *consumer) access() *access {
	cfg := queue.Config{
		MaxAttempts: w.attempts, Backoff: queue.Backoff{First: time.Duration(w.backoff)},
		Timeout: time.Duration(w.timeout), MaxDead: w.maxDead, KeepDead: time.Duration(w.keepDead),
	}
	if w.attempts == 0 {
		cfg.MaxAttempts = -1
	}
	return &access{command.Access{App: w.run.App, Connection: w.run.Connection, Path: w.run.Path}, cfg}
}

// first takes the first item of "take", as --no-wait and --wait say.
func (w *consumer) first(ctx context.Context, client *zk.Client, q *queue.Queue) (*queue.Item, error) {
	return command.Acquire(ctx, &w.run, client, q.TryTake, q.Take, queue.ErrEmpty, func(ctx context.Context) string {
		n, err := q.Len(ctx)
		if err != nil {
			return ""
		}
		if p, err := q.Paused(ctx); err == nil && p != nil {
			return fmt.Sprintf("the queue is paused %s, %d ready", pauseText(p), n.Ready)
		}
		if r, err := q.Rate(ctx); err == nil && r != (queue.Rate{}) && n.Ready > 0 {
			return fmt.Sprintf("the queue delivers no more than %d items in %v, %d ready", r.Items, r.Per, n.Ready)
		}
		return fmt.Sprintf("no item is ready, %d delayed, %d claimed, %d dead", n.Delayed, n.Claimed, n.Dead)
	})
}

// printItems prints items, and acknowledges them or gives them back.
func (w *consumer) printItems(ctx context.Context) error {
	return w.access().with(ctx, func(ctx context.Context, client *zk.Client, q *queue.Queue) error {
		if _, err := w.run.Sync(ctx, client); err != nil {
			return err
		}
		item, err := w.first(ctx, client, q)
		if err != nil {
			return err
		}
		for left := w.count; ; {
			items := []*queue.Item{item}
			for err == nil && len(items) < min(left, maxHeld) {
				if item, err = q.TryTake(ctx); err == nil {
					items = append(items, item)
				}
			}
			left -= len(items)
			if perr := w.printAll(context.WithoutCancel(ctx), items); perr != nil {
				return perr
			}
			if err == nil && left > 0 {
				item, err = q.TryTake(ctx)
			}
			switch {
			case errors.Is(err, queue.ErrEmpty), err == nil && left == 0:
				return nil
			case err != nil:
				return err
			}
		}
	})
}

// printAll prints items, and then acknowledges them or gives them back, all at the same time.
func (w *consumer) printAll(ctx context.Context, items []*queue.Item) error {
	out := bufio.NewWriterSize(w.run.App.Stdout, 64<<10)
	for _, item := range items {
		if err := w.print(out, item); err != nil {
			return err
		}
	}
	finish := func(it *queue.Item) error { return it.Done(ctx) }
	werr := out.Flush()
	if werr != nil || !w.ack {
		finish = func(it *queue.Item) error { return it.Return(ctx, 0) }
	}
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { errs[i] = finish(item) })
	}
	wg.Wait()
	if werr != nil {
		return command.OutputError(werr)
	}
	if !w.ack {
		w.run.App.Say("%s: %s given back: --ack removes them, and -- COMMAND runs a command",
			w.run.Path, command.Plural(len(items), "item"))
		return nil // what is not given back now goes back when the session ends
	}
	lost := 0
	for _, err := range errs {
		if err != nil {
			lost++
		}
	}
	err := errors.Join(errs...)
	if errors.Is(err, queue.ErrClaimLost) {
		return &command.Error{
			Code: command.ExitLost,
			Err: fmt.Errorf("%s: the claim was lost: %d of the %d items printed last may be delivered again",
				w.run.Path, lost, len(items)),
			Hint: "check that the server runs",
		}
	}
	return err
}

func (w *consumer) print(out *bufio.Writer, item *queue.Item) error {
	if !w.json {
		body := item.Body()
		if !w.null {
			body = w.run.App.Bytes(body)
		}
		_, _ = out.Write(body) // Flush says whether it could be written
		switch {
		case w.null:
			_ = out.WriteByte(0)
		case !bytes.HasSuffix(body, []byte("\n")):
			_ = out.WriteByte('\n')
		}
		return nil
	}
	line, err := command.JSON(takenJSON{
		Path: w.run.Path, ID: item.ID(), Attempt: item.Attempt(), Priority: item.Priority(), Group: item.Group(),
		EnqueuedAt: command.Timestamp(item.EnqueuedAt()),
		Token:      int64(item.Token()), Headers: item.Headers(), bodyJSON: newBodyJSON(item.Body()),
	})
	if err == nil {
		_, _ = out.Write(append(line, '\n'))
	}
	return err
}

// maxHeaders is how many bytes of headers a command gets in its environment, whose size the system limits.
const maxHeaders = 64 << 10

// itemEnvironment is what a command finds of its item in its environment.
func itemEnvironment(item *queue.Item) []string {
	group := item.Group()
	if strings.Contains(group, "\x00") { // no command could be started with it
		group = ""
	}
	list := []string{
		"TURNSTILE_ITEM_ID=" + item.ID(),
		"TURNSTILE_ITEM_ATTEMPT=" + strconv.Itoa(item.Attempt()),
		"TURNSTILE_ITEM_PRIORITY=" + strconv.Itoa(item.Priority()),
		"TURNSTILE_ITEM_GROUP=" + group,
		"TURNSTILE_ITEM_ENQUEUED_AT=" + command.Timestamp(item.EnqueuedAt()),
	}
	headers := item.Headers()
	if headers == nil {
		headers = map[string]string{}
	}
	all, err := json.Marshal(headers)
	if err != nil || len(all) > maxHeaders { // the command could not be started
		return append(list, "TURNSTILE_ITEM_HEADERS={}")
	}
	list = append(list, "TURNSTILE_ITEM_HEADERS="+string(all))
	for name, value := range headers {
		if name = headerVariable(name); name != "" && !strings.Contains(value, "\x00") {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// headerVariable is the name of a header's variable, empty if the header cannot have one.
func headerVariable(name string) string {
	plain := func(r rune) rune {
		switch {
		case r == '-' || r == '.' || r == '_':
			return '_'
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z':
			return r
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return -1
	}
	upper := strings.Map(plain, name)
	if len(upper) != len(name) || name == "" {
		return ""
	}
	return "TURNSTILE_ITEM_HEADER_" + upper
}
