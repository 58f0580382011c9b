package cli

// turnstile locks.

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// locksJSON is what "turnstile locks --json" prints for a path.
type locksJSON struct {
	Path    string          `json:"path"`
	Place   survey.Kind     `json:"place"`
	Layout  string          `json:"layout,omitempty"`
	Holder  *contenderJSON  `json:"holder"` // as in whoJSON
	Holders []contenderJSON `json:"holders"`
	Holding int             `json:"holding"`
	Waiters []contenderJSON `json:"waiters"` // the first alone
	Waiting int             `json:"waiting"`
	Longest int64           `json:"longest_wait_ms"`
	Groups  int             `json:"groups,omitempty"` // if there are several
	Numbers *numbersJSON    `json:"numbers,omitempty"`
}

// What --sort and --kind of "turnstile locks" take.
const (
	sortWait, sortWaiters, sortSince, sortPath = "wait", "waiters", "since", "path"

	anyKind = "any"
)

// kinds are what the words of --kind stand for.
var kinds = map[string][]survey.Kind{ //nolint:gochecknoglobals // a table
	"lock": {survey.Lock}, "election": {survey.Election, survey.Support},
	"permits": {survey.Permits, survey.KazooPermits}, "queue": {survey.Queue, survey.ClassicQueue},
}

// locks is a call of turnstile locks.
type locks struct {
	command.Access

	sort, kind command.Choice
	stuck      command.Duration
	readFor    command.Period
	all, watch bool
	limit      int
}

func newLocks(app *command.App) *cobra.Command {
	l := &locks{
		Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second),
		sort: command.NewChoice(sortWait, sortWaiters, sortSince, sortPath),
		kind: command.NewChoice(anyKind, "lock", "election", "permits", "queue"),
	}
	cmd := &cobra.Command{
		Use:   "locks [flags] [PATH]",
		Short: "List all locks, elections and semaphores, with holders and waits",
		Long: `Lists what is held or waited for at PATH and below it, or in the whole tree without PATH: locks,
elections and semaphores of any program that uses the names of Turnstile, Curator, kazoo or go-zookeeper.
Each line shows who holds it and for how long, how many wait, and for how long the first of them has waited.
"turnstile who" shows all contenders of one path.

It only reads, and lists each node once or twice: the number of requests does not depend on how many wait.
Paths that these credentials may not read are counted and left out.

With --watch it goes on until a signal comes. At a terminal it keeps the list up to date; elsewhere it prints
it again after each change, at most once a second. With --json it then prints a line for each path that has
changed, and a last one when a path is no longer to be listed. The servers tell of changes, unless there are
more than 2,000 a second or they are older than ZooKeeper 3.6: then it reads everything again each 10 s.

Exit codes: 0, also if there is none; 64 usage; 69 no server; 77 access to PATH denied.`,
		Example: `  turnstile locks
  turnstile locks --connect zk1:2181,zk2:2181/app --stuck 5m /jobs
  turnstile locks --json --sort waiters --limit 10`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it is listed")
			case l.limit < 0:
				return command.Usagef(cmd, "--limit must not be negative")
			case len(args) == 1:
				if err := l.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			if l.watch {
				return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
					return l.App.WhileRead(ctx, func(ctx context.Context) error { return l.Open(ctx, false, l.follow) })
				})
			}
			return l.With(cmd.Context(), l.list)
		},
	}
	flags := cmd.Flags()
	l.Flags(cmd, "one JSON object per path")
	flags.Var(&l.sort, "sort", "order: by the longest wait, the number of waiters, since when it is held, or the path")
	flags.Var(&l.kind, "kind", "list only these; queues are listed only if asked for")
	flags.Var(&l.stuck, "stuck", "list only what somebody has waited for this long")
	flags.Var(&l.readFor, "read-for", "stop reading after this time, and show what was found")
	flags.BoolVar(&l.all, "all", false, "list free locks, too: nodes without data that have had children and have none")
	flags.BoolVarP(&l.watch, "watch", "w", false, "keep the list up to date until a signal comes")
	flags.IntVar(&l.limit, "limit", 0, "list at most so many; 0: all")
	return cmd
}

// list reads, and prints what was found.
func (l *locks) list(ctx context.Context, client *zk.Client) error {
	s, err := survey.Read(ctx, client, survey.Config{Root: l.Path, Time: time.Duration(l.readFor)})
	if err != nil {
		return err
	}
	if err := closed(s, l.Path); err != nil {
		return err
	}
	now := time.Now()
	shown, more := l.choose(s.Entries, now)
	if l.AsJSON {
		for _, e := range shown {
			if err := l.App.JSON(newLocksJSON(s, e, now)); err != nil {
				return err
			}
		}
	} else if err := l.print(l.App.Stdout, s, shown, now); err != nil {
		return err
	}
	if more > 0 {
		l.App.Say("%d more are left out by --limit", more)
	}
	for _, lack := range lacks(s) {
		l.App.Complain("%s", lack)
	}
	for _, warning := range warnings(shown) {
		l.App.Say("warning: %s", warning)
	}
	return nil
}

// closed returns an error if these credentials may not read the path itself at which a survey begins.
func closed(s *survey.Snapshot, path string) error {
	if !slices.Contains(s.Denied.Paths, path) {
		return nil
	}
	err := fmt.Errorf("%s: these credentials may not read it", path)
	return &command.Error{Code: command.ExitNoAccess, Err: err}
}

// choose returns the entries that the flags ask for, in the order that they ask for, and how many more there are.
func (l *locks) choose(entries []survey.Entry, now time.Time) (list []survey.Entry, more int) {
	for _, e := range entries {
		free := e.Holding+e.Waiting == 0
		queue := slices.Contains(kinds["queue"], e.Kind)
		switch {
		case l.kind.Value == anyKind && queue:
		case l.kind.Value != anyKind && !slices.Contains(kinds[l.kind.Value], e.Kind):
		case free && !queue && !l.all:
		case l.stuck > 0 && longest(e, now) < time.Duration(l.stuck):
		default:
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int { // they come by path
		switch l.sort.Value {
		case sortWait:
			return cmp.Compare(longest(b, now), longest(a, now))
		case sortWaiters:
			return cmp.Compare(b.Waiting, a.Waiting)
		case sortSince:
			return heldSince(a, now).Compare(heldSince(b, now))
		}
		return 0
	})
	if l.limit > 0 && len(list) > l.limit {
		list, more = list[:l.limit], len(list)-l.limit
	}
	return list, more
}

// longest returns for how long the first in line has waited.
func longest(e survey.Entry, now time.Time) time.Duration {
	if e.First == nil {
		return 0
	}
	return max(0, now.Sub(e.First.Since)) // which is by the server's clock
}

// heldSince returns since when a path is held; now if it is not.
func heldSince(e survey.Entry, now time.Time) time.Time {
	if len(e.Holders) == 0 {
		return now
	}
	return e.Holders[0].Since
}

// print prints the entries for people.
func (l *locks) print(out io.Writer, s *survey.Snapshot, shown []survey.Entry, now time.Time) error {
	if s.Listed == 0 {
		err := command.Fprintf(out, "there is no path %s (asked %s)\n", l.Path, l.Connection.Where())
		return command.OutputError(err)
	}
	if len(shown) == 0 {
		what := map[string]string{
			anyKind: "lock", "lock": "lock", "election": "election", "permits": "semaphore", "queue": "queue",
		}[l.kind.Value]
		return command.OutputError(command.Fprintf(out, "no %s to show at %s or below it (%s listed; asked %s)\n",
			what, l.Path, command.Plural(s.Listed, "node"), l.Connection.Where()))
	}
	w := command.Table(out)
	_ = command.Fprintf(w, "PATH\tKIND\tHOLDER\tHELD FOR\tWAITING\tLONGEST WAIT\n") // Flush says whether it was written
	for _, e := range shown {
		held, waited := "-", "-"
		if len(e.Holders) > 0 {
			held = max(0, now.Sub(e.Holders[0].Since)).Round(time.Second).String()
		}
		if e.First != nil {
			waited = longest(e, now).Round(time.Second).String()
		}
		_ = command.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n",
			e.Path, kindOfEntry(e), holderOf(s, e), held, e.Waiting, waited)
	}
	return command.OutputError(w.Flush())
}

// kindOfEntry says what an entry is.
func kindOfEntry(e survey.Entry) string {
	switch {
	case len(e.Holders) == 0:
		return string(e.Kind)
	case e.Holders[0].Kind == lock.Reader:
		return string(e.Kind) + ", shared"
	case e.Holders[0].Kind == lock.Permit && e.Kind == survey.KazooPermits:
		return string(survey.Permits) + ", kazoo"
	}
	return string(e.Kind)
}

// holderOf says who holds an entry.
func holderOf(s *survey.Snapshot, e survey.Entry) string {
	if len(e.Holders) == 0 {
		return "-"
	}
	list := groupPermits(e.Holders)
	text := owner(list[0].Contender)
	if list[0].permits > 1 {
		text += fmt.Sprintf(", %d permits", list[0].permits)
	}
	if n := e.Holding - max(1, list[0].permits); n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	if slices.ContainsFunc(e.Holders, func(c lock.Contender) bool { return c.Revoked != nil }) {
		text += ", asked to give it up"
	}
	if waits := s.WaitsAt(e); len(waits) > 0 {
		text += ", waits at " + command.Excerpt(strings.Join(waits, " "))
	}
	if e.MayHold > 0 && e.Groups > 1 {
		text += ", and others may hold it"
	}
	return text
}

// lacks says what the list lacks.
func lacks(s *survey.Snapshot) (lacks []command.Text) {
	if s.Partial != "" {
		lacks = append(lacks, command.Sprintf(
			"the list is not whole: %s; name a PATH, or raise --read-for", s.Partial))
	}
	for _, missed := range []struct {
		survey.Missed

		why string
	}{
		{s.Denied, "these credentials may not read them"},
		{s.TooLarge, "the lists of their children are too large; raise --reply-limit"},
	} {
		if missed.Count > 0 {
			more := ""
			if n := missed.Count - len(missed.Paths); n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			lacks = append(lacks, command.Sprintf("%s left out, with what is below: %s: %s%s",
				command.Plural(missed.Count, "path"), missed.why, strings.Join(missed.Paths, " "), more))
		}
	}
	return lacks
}

// warnings says what is wrong with what the list has.
func warnings(shown []survey.Entry) (list []command.Text) {
	for _, e := range shown {
		if e.Behind() != "" {
			list = append(list, command.Sprintf("contenders at %s wait for %s, %s",
				e.Path, e.Behind(), command.BelongsToNone))
		}
		if e.MayBeApart() {
			list = append(list, command.Sprintf(
				"not all contenders at %s exclude each other; turnstile who shows them", e.Path))
		}
		if e.Numbers.Low {
			list = append(list, command.Sprintf(
				"only %d sequence numbers are left at %s", e.Numbers.Left, e.Numbers.Path))
		}
	}
	return list
}

func newLocksJSON(s *survey.Snapshot, e survey.Entry, now time.Time) locksJSON {
	j := locksJSON{
		Path: e.Path, Place: e.Kind, Layout: e.Layout, Holders: []contenderJSON{}, Waiters: []contenderJSON{},
		Holding: e.Holding, Waiting: e.Waiting, Longest: longest(e, now).Milliseconds(),
	}
	for i, c := range groupPermits(e.Holders) {
		if i == 0 {
			c.waitsAt = s.WaitsAt(e)
		}
		j.Holders = append(j.Holders, newContenderJSON(c))
	}
	if len(j.Holders) > 0 {
		j.Holder = &j.Holders[0]
	}
	if e.First != nil {
		j.Waiters = append(j.Waiters, newContenderJSON(contender{Contender: *e.First}))
	}
	if e.Groups > 1 {
		j.Groups = e.Groups
	}
	if e.Numbers.Path != "" {
		n := numbersJSON(e.Numbers)
		j.Numbers = &n
	}
	return j
}
