package treecmd

// turnstile watch.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// eventJSON is what turnstile watch --json prints for an event.
type eventJSON struct {
	Event string `json:"event"` // created, changed, deleted, children; or missed: some events may have been
	Path  string `json:"path"`
	Zxid  string `json:"zxid,omitempty"`
	Time  string `json:"time"`
}

// missed is the event that stands for those that were not seen.
const missed = "missed"

func newWatch(app *command.App) *cobra.Command {
	a := newAccess(app)
	var recursive bool
	var count int
	cmd := a.run(&cobra.Command{
		Use:   "watch PATH",
		Short: "Print a line for every change of a node",
		Long: `Prints a line for each change of the node at PATH, which need not exist, until a signal comes: created,
changed, deleted, or children for a change of the list of its children. With --recursive it prints every
node below PATH that is created, changed or deleted. When the connection was lost, changes may have been
missed meanwhile: it prints "missed" and goes on. The server must be ZooKeeper 3.6 or later, or
Turnstile's.` +
			fmt.Sprintf(exitCodes, "never: it ends with a signal"),
		Example: `  turnstile watch -r /app
  turnstile watch -n 1 /app/config >/dev/null && ./reload.sh`,
	}, "/app", "one JSON object per event", func(ctx context.Context, client *zk.Client) error {
		if count < 0 {
			return misuse("-n must not be negative; 0 means without end")
		}
		w := watcher{access: a, recursive: recursive, left: count, endless: count == 0}
		return app.WhileRead(ctx, func(ctx context.Context) error { return w.run(ctx, client) })
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "watch everything below PATH, too")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many changes; 0 means never")
	return cmd
}

// watcher prints events.
type watcher struct {
	*access
	recursive bool
	left      int // how many changes to print yet, unless endless
	endless   bool
}

// run prints events until enough were printed.
func (w *watcher) run(ctx context.Context, client *zk.Client) error {
	for first := true; ; first = false {
		sess, err := client.Session(ctx)
		if err != nil {
			return err
		}
		err = w.follow(ctx, sess, first)
		if err == nil || ctx.Err() != nil || sess.Context().Err() == nil {
			return err
		}
	}
}

// follow prints the events of one session. It returns nil when enough were printed.
func (w *watcher) follow(ctx context.Context, sess *zk.Session, first bool) error {
	set := sess.Watch
	if w.recursive {
		set = sess.WatchRecursive
	}
	watch, err := set(ctx, w.Path)
	if errors.Is(err, zk.Unimplemented) {
		return fmt.Errorf("the server is older than ZooKeeper 3.6, which has no watches that last: %w", err)
	}
	if err != nil {
		return err
	}
	defer watch.Close()
	if first {
		w.App.Say("watching %s", w.Path)
	} else if err := w.missed(); err != nil {
		return err
	}
	for e, err := range watch.All(ctx) {
		if err != nil {
			return err
		}
		if e.Type == zk.EventResynced {
			err = w.missed()
		} else {
			var enough bool
			if enough, err = w.print(e); enough {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) missed() error {
	w.App.Say("the connection was lost: changes may have been missed")
	return w.line(eventJSON{Event: missed, Path: w.Path})
}

// print prints a change, and reports whether it was the last one.
func (w *watcher) print(e zk.Event) (enough bool, err error) {
	j := eventJSON{Path: e.Path}
	switch e.Type {
	case zk.EventCreated:
		j.Event = "created"
	case zk.EventDeleted:
		j.Event = "deleted"
	case zk.EventDataChanged:
		j.Event = "changed"
	case zk.EventChildrenChanged:
		j.Event = "children"
	default:
		return false, nil
	}
	if e.Zxid > 0 {
		j.Zxid = zxid(e.Zxid)
	}
	if err := w.line(j); err != nil {
		return false, err
	}
	w.left--
	return !w.endless && w.left == 0, nil
}

func (w *watcher) line(j eventJSON) error {
	if w.AsJSON {
		j.Time = command.Timestamp(time.Now())
		return w.App.JSON(j)
	}
	return w.App.Line("%s %s", j.Event, j.Path)
}
