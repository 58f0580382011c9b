package cli

// turnstile top.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/top"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/words"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// topCall is a call of turnstile top.
type topCall struct {
	command.Access

	interval command.Duration
	changes  bool
}

func newTop(app *command.App) *cobra.Command {
	t := &topCall{Access: command.Access{App: app, Path: "/"}, interval: command.Duration(time.Second)}
	cmd := &cobra.Command{
		Use:   "top [flags] [PATH]",
		Short: "Show locks, waits, leaders, queues, sessions and servers on one screen",
		Long: `Shows what is held or waited for at PATH and below it, or in the whole tree without PATH, and keeps it up
to date. The keys 1 to 6 choose what it shows: locks, who waits for whom, leaders, queues, sessions, servers.
Enter shows the line of a lock, / filters, s sorts, p pauses, ? lists the keys, q quits.

The servers tell of changes, as with "turnstile locks --watch". Besides that it reads only what the view shows:
the lines of locks that are looked at and have changed, the counts of queues, and what servers answer to the
four-letter words srvr, mntr, cons and dump.

It changes nothing without --allow-changes. With it, r asks the holder of the chosen lock to release it, for a
reason that must be given, and F takes the lock from it after 10 s, once the last part of its path is typed.

Colours are those of the terminal; NO_COLOR turns them off. If standard input or output is not a terminal it
prints what "turnstile locks" prints, and ends.

Exit codes: 0; 64 usage; 69 no server; 77 access to PATH denied.`,
		Example: `  turnstile top
  turnstile top --connect zk1:2181,zk2:2181,zk3:2181/app --interval 2s /jobs`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is shown")
			case time.Duration(t.interval) < 100*time.Millisecond:
				return command.Usagef(cmd, "--interval must be at least 100ms")
			case len(args) == 1:
				if err := t.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			in, out := terminal(app.Stdin), terminal(app.Stdout)
			if in == nil || out == nil {
				return t.once(cmd.Context())
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return t.Open(ctx, false, func(ctx context.Context, client *zk.Client) error {
					return t.run(ctx, client, in, out)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&app.Quiet, "quiet", "q", false, "print only results and errors")
	t.Connection.Flags(flags)
	t.Connection.ACLFlag(flags)
	flags.Var(&t.interval, "interval", "how often the screen is drawn")
	flags.BoolVar(&t.changes, "allow-changes", false, "allow to revoke locks and to take them by force")
	return cmd
}

// terminal returns a stream that is a terminal, or nil.
func terminal(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// once prints the list of the locks.
func (t *topCall) once(ctx context.Context) error {
	l := &locks{
		Access: t.Access, readFor: command.Duration(30 * time.Second),
		sort: command.NewChoice(sortWait), kind: command.NewChoice(anyKind),
	}
	return l.With(ctx, l.list)
}

// run shows the screen.
func (t *topCall) run(ctx context.Context, client *zk.Client, in, out *os.File) error {
	s, err := survey.Follow(ctx, client, survey.FollowConfig{Config: survey.Config{Root: t.Path}})
	if err != nil {
		return err
	}
	defer s.Close()
	first, err := s.Next(ctx, nil, nil)
	if err != nil {
		return err
	}
	if err := closed(first, t.Path); err != nil {
		return err
	}
	source := top.Source{
		Next:  s.Next,
		Owner: owner,
		Line: func(ctx context.Context, path string) ([]lock.Contender, error) {
			return lineOf(ctx, client, path)
		},
		Deadlocks: func(ctx context.Context) ([]lock.FoundDeadlock, error) {
			return lock.Deadlocks(ctx, client, "")
		},
		Queue:    func(ctx context.Context, path string) (top.Queue, error) { return countQueue(ctx, client, path) },
		Sessions: func(ctx context.Context) ([]top.Session, []string) { return t.sessions(ctx, client) },
		Servers:  func(ctx context.Context) []top.Server { return t.servers(ctx, client) },
		Revoke: func(
			ctx context.Context, path string, holders map[string]lock.Token, reason string, force bool,
		) (string, error) {
			return t.revoke(ctx, client, path, holders, reason, force)
		},
	}
	plain := t.App.Env.Vars["NO_COLOR"] != ""
	opts := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithEnvironment(t.App.Env.List)}
	if plain {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	}
	return top.Run(ctx, source, top.Config{
		Ensemble: t.Connection.Where(), Root: t.Path, Interval: time.Duration(t.interval), Changes: t.changes,
		Plain: plain,
	}, opts...)
}

// lineOf returns the line of a lock, with what revocations have overwritten.
func lineOf(ctx context.Context, client *zk.Client, path string) ([]lock.Contender, error) {
	list, err := lock.Inspect(ctx, client, path)
	if err == nil {
		err = restoreData(ctx, client, path, list)
	}
	return list, err
}

// countQueue counts the items of a queue.
func countQueue(ctx context.Context, client *zk.Client, path string) (top.Queue, error) {
	q, err := queue.New(client, path, queue.Config{})
	if err != nil {
		return top.Queue{}, err
	}
	n, err := q.Len(ctx)
	counts := top.Queue{Ready: n.Ready + n.Waiting, Delayed: n.Delayed, Claimed: n.Claimed, Dead: n.Dead}
	if err == nil && n.Ready > 0 {
		counts.Oldest, err = q.Age(ctx)
		if errors.Is(err, queue.ErrEmpty) { // a consumer was quicker
			err = nil
		}
	}
	return counts, errors.Join(err, q.Close(ctx))
}

// sessions returns what the servers say of the sessions.
func (t *topCall) sessions(ctx context.Context, client *zk.Client) (list []top.Session, lacks []string) {
	s := &sessions{Access: t.Access}
	found, missing := s.known(ctx, client)
	found.forgetOurs(ctx, client)
	for _, lack := range missing {
		lacks = append(lacks, string(lack))
	}
	for _, f := range found {
		list = append(list, top.Session{
			ID: f.id, Server: f.server, Address: f.address, Timeout: f.timeout, Answered: f.answered,
			Ephemerals: f.ephemerals,
		})
	}
	return list, lacks
}

// servers asks the servers for their state.
func (t *topCall) servers(ctx context.Context, client *zk.Client) []top.Server {
	addresses := client.Servers()
	list := make([]top.Server, len(addresses))
	var group sync.WaitGroup
	for i, address := range addresses {
		group.Go(func() {
			text, err := t.Connection.Word(ctx, address, "srvr", command.MaxWord)
			list[i] = serverOf(words.Stats(text))
			list[i].Address, list[i].Err, list[i].Watches = address, err, -1
			text, _ = t.Connection.Word(ctx, address, "mntr", command.MaxWord) // many servers do not answer it
			if n, ok := words.Number(words.Gauges(text), "watch_count"); ok {
				list[i].Watches = n
			}
		})
	}
	group.Wait()
	return list
}

// serverOf returns what an answer to srvr says of a server.
func serverOf(stats map[string]string) top.Server {
	s := top.Server{Latency: stats["Latency min/avg/max"], Mode: stats["Mode"]}
	s.Version, _, _ = strings.Cut(stats["Zookeeper version"], "-")
	s.Version, _, _ = strings.Cut(s.Version, ",")
	if parts := strings.Split(s.Latency, "/"); len(parts) == 3 {
		if ms, err := strconv.ParseFloat(parts[1], 64); err == nil {
			s.Latency = fmt.Sprintf("%.2f ms", ms)
		}
	}
	s.Connections, _ = words.Number(stats, "Connections") // 0 if it does not say so
	s.Outstanding, _ = words.Number(stats, "Outstanding")
	s.Nodes, _ = words.Number(stats, "Node count")
	s.Zxid, _ = strconv.ParseInt(stats["Zxid"], 0, 64)
	return s
}

// forcedAfter is for how long holders are asked.
const forcedAfter = 10 * time.Second

// revoke asks holders to release a lock, and says what became of them.
func (t *topCall) revoke(
	ctx context.Context, client *zk.Client, path string, holders map[string]lock.Token, reason string, force bool,
) (string, error) {
	// Only those that the user has seen: another one may hold it by now.
	list, err := lock.Revoke(ctx, client, path, lock.RevokeOptions{
		Reason: reason, Grace: forcedAfter, Force: force, Record: true, ACL: t.Connection.ACL(),
		Holder: func(c lock.Contender) bool {
			token, ok := holders[c.Path]
			return ok && token == c.Token
		},
	})
	if err != nil && !errors.Is(err, lock.ErrKept) {
		return "", err
	}
	if len(list) == 0 {
		return path + ": that holder does not hold it any more", nil
	}
	parts := make([]string, len(list))
	for i, r := range list {
		parts[i] = owner(r.Holder) + " " + became(r.Ending)
	}
	return path + ": " + strings.Join(parts, "; "), nil
}
