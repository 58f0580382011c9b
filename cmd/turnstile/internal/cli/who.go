package cli

// turnstile who.

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// whoJSON is what "turnstile who --json" prints for a path.
type whoJSON struct {
	Path    string          `json:"path"`
	Holder  *contenderJSON  `json:"holder"` // the first of the holders; null if the lock is free
	Holders []contenderJSON `json:"holders"`
	Waiters []contenderJSON `json:"waiters"`
	Place   survey.Kind     `json:"place"`
	Numbers numbersJSON     `json:"numbers"`
}

// numbersJSON is how far the sequence numbers of a lock's nodes are used up.
type numbersJSON struct {
	Path string `json:"path"`
	Left int    `json:"left"`
	Low  bool   `json:"low"`
}

// contenderJSON is a contender: it holds the lock or waits for it.
type contenderJSON struct {
	Node    string          `json:"node"`
	Kind    string          `json:"kind"`
	Owner   ownerJSON       `json:"owner"`
	Since   string          `json:"since"`
	Session string          `json:"session"`
	Token   int64           `json:"token,omitempty"` // of holders only
	Permits int             `json:"permits,omitempty"`
	Revoked *revocationJSON `json:"revoked,omitempty"`
	WaitsAt []string        `json:"waits_at,omitempty"`

	WaitsFor []string     `json:"waits_for,omitempty"` // of holders only
	Holds    []nestedJSON `json:"holds,omitempty"`     // of waiters only

	MayHold bool   `json:"may_hold,omitempty"`
	Behind  string `json:"behind,omitempty"`
	Group   int    `json:"group,omitempty"` // from 1, if there are several
}

// nestedJSON is a lock or a leadership that somebody holds who waits for another.
type nestedJSON struct {
	Path  string   `json:"path"`
	Paths []string `json:"paths,omitempty"` // of a set
	Token int64    `json:"token"`
}

// ownerJSON is what a contender's node says of its owner: only text if another program wrote it.
type ownerJSON struct {
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Program string   `json:"program,omitempty"`
	Label   string   `json:"label,omitempty"`
	Set     []string `json:"set,omitempty"`
	Text    string   `json:"text,omitempty"`
}

// contender is a contender as it is shown.
type contender struct {
	lock.Contender
	permits int      // how many of a semaphore's it has
	waitsAt []string // at which paths of its set it waits although it is first here

	waitsFor []string          // what a holder waits for inside of the hold
	holds    []lock.NestedHold // what a waiter waits inside of
}

func newWho(app *command.App) *cobra.Command {
	var n command.Connection
	var asJSON, tree bool
	cmd := &cobra.Command{
		Use:   "who [flags] PATH...",
		Short: "Show the holders of a lock and the waiters",
		Long: `Shows which contenders hold the lock at PATH and which wait for it, in the order in which they will be
served, whichever program they use: Turnstile, Curator, kazoo or go-zookeeper. Holders in shared mode hold
it together. For an election it shows the leader and the candidates, and for permits how many each holder
has. A contender for several PATHs is shown at each of them.

Programs that look for different node names do not exclude each other (docs/interop.md). They are shown in
groups. A contender that "may hold" waits for those ahead only if its program was configured to.

Of Turnstile's own programs it also shows which locks a waiter holds while it waits, and what a holder waits
for meanwhile, once they have waited for 200 ms. With --tree it shows besides who waits for those locks, and
so on: all that a lock holds up.

Without --connect it asks this user's own server, as "turnstile lock" does.

Exit codes: 0; 1 something other than a lock is at PATH; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile who /jobs/report
  turnstile who --connect zk1:2181,zk2:2181/app --json /deploy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef(cmd, "PATH is missing: name the lock, such as /jobs/report")
			}
			for _, path := range args {
				if err := command.CheckPath(path); err != nil {
					return command.Usage(cmd, err)
				}
			}
			return command.UntilSignal(cmd.Context(), func(ctx context.Context) error {
				return showWho(ctx, app, &n, args, asJSON, tree)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per PATH (docs/cli-json.md)")
	cmd.Flags().BoolVar(&tree, "tree", false, "show below each waiter who waits for what it holds, and so on")
	n.Flags(cmd.Flags())
	return cmd
}

func showWho(ctx context.Context, app *command.App, n *command.Connection, paths []string, asJSON, tree bool) error {
	client, sess, err := n.Open(ctx, app)
	if err != nil {
		return err
	}
	defer client.Close() // nothing of ours is at the server
	ctx, cancel := n.Answering(ctx)
	defer cancel()
	nested, err := lock.NestedWaits(ctx, client, "")
	if err != nil && !errors.Is(err, zk.NoAuth) { // without them, less is shown
		return n.Unanswered(err, client)
	}
	lines, closed, err := readLines(ctx, client, sess, paths, nested, tree)
	if err != nil {
		return n.Unanswered(err, client)
	}
	var wrong error
	for i, l := range lines {
		other := ""
		if len(l.list) == 0 {
			other = l.found.instead(l.path)
		}
		switch {
		case asJSON:
			err = app.JSON(newWhoJSON(l))
		case i >= len(paths)-len(closed): // it is drawn below a waiter
		case other == "":
			warnOf(app, l)
			err = printLine(app, l, lines, len(paths) > 1, n.Where())
		}
		if other != "" {
			wrong = &command.Error{Code: command.ExitNotAcquired}
			app.Complain("%s", other)
		}
		if err != nil {
			return err
		}
	}
	for _, err := range closed {
		wrong = &command.Error{Code: command.ExitNoAccess}
		app.Complain("%v", err)
	}
	return wrong
}

// maxTree bounds how many locks a tree has.
const maxTree = 1000

// readLines returns what is at the paths, and why some of them may not be read. With tree, what is at the paths that
// waiters hold follows.
func readLines(
	ctx context.Context, client *zk.Client, sess *zk.Session, paths []string, nested []lock.NestedWait, tree bool,
) (lines []lineAt, closed []error, err error) {
	todo := slices.Clone(paths)
	for i := 0; i < len(todo); i++ {
		l, err := readLine(ctx, client, sess, todo[i], nested)
		switch {
		case errors.Is(err, zk.NoAuth) && i < len(paths):
			closed = append(closed, command.Failed(err))
			continue
		case errors.Is(err, zk.NoAuth): // it is not drawn
			continue
		case err != nil:
			return nil, nil, err
		}
		lines = append(lines, l)
		for _, c := range l.list {
			for _, h := range c.holds {
				for _, path := range h.Paths {
					if tree && len(todo) < maxTree && !slices.Contains(todo, path) {
						todo = append(todo, path)
					}
				}
			}
		}
	}
	return lines, closed, nil
}

// lineAt is what is at a path.
type lineAt struct {
	path    string
	list    []contender
	numbers lock.Numbers
	found   pathState
}

// groups returns how many groups there are that do not exclude each other.
func (l lineAt) groups() int {
	n := 0
	for _, c := range l.list {
		n = max(n, c.Group+1)
	}
	return n
}

// apart reports whether contenders of different groups hold, which are not all readers.
func (l lineAt) apart() bool {
	var s lock.Summary
	for _, c := range l.list {
		if c.Holder {
			s.Holders = append(s.Holders, c.Contender)
		}
	}
	return s.Apart()
}

// alone reports whether a contender may hold that is no reader beside the writer of its own session.
func (l lineAt) alone(c contender) bool {
	return c.MayHold && (c.Kind != lock.Reader || !slices.ContainsFunc(l.list, func(other contender) bool {
		return other.Holder && other.Kind == lock.Writer && other.Session == c.Session
	}))
}

// kazooAlone reports whether all contenders have the names of kazoo's locks.
func (l lineAt) kazooAlone() bool {
	return !slices.ContainsFunc(l.list, func(c contender) bool {
		name := path.Base(c.Path)
		return c.Second != "" || !strings.Contains(name, "__lock__") && !strings.Contains(name, "__rlock__")
	})
}

// warnOf warns of contenders that do not exclude each other, and of sequence numbers that are being used up.
func warnOf(app *command.App, l lineAt) {
	mayHold := slices.ContainsFunc(l.list, l.alone)
	switch {
	case mayHold && l.groups() == 1 && l.kazooAlone():
		app.Say("warning: kazoo's WriteLock waits for the readers at %s, its Lock does not, and their nodes have the "+
			"same names: those marked \"may hold\" may hold beside readers (docs/interop.md)", l.path)
	case mayHold, l.apart():
		app.Say("warning: not all contenders at %s exclude each other: their programs look for different "+
			"names, so several groups may hold at the same time (docs/interop.md)", l.path)
	}
	if i := slices.IndexFunc(l.list, func(c contender) bool { return c.Behind != "" }); i >= 0 {
		app.Say("warning: contenders at %s wait for %s, %s",
			l.path, l.list[i].Behind, command.BelongsToNone)
	}
	if names := l.found.unlisted(); len(names) > 0 {
		app.Say("warning: the program whose node is %s stands at %s, too: no other looks for its names, so both may "+
			"hold at the same time (docs/interop.md)", names[0], l.path)
	}
	if n := l.numbers; n.Low {
		app.Say("warning: only %d sequence numbers are left at %s, after which new contenders are refused; "+
			"delete %s when it is empty (zkCli.sh delete), so that its numbers start at 0 again",
			n.Left, n.Path, n.Path)
	}
}

// readLine returns what is at path.
func readLine(
	ctx context.Context, client *zk.Client, sess *zk.Session, path string, nested []lock.NestedWait,
) (lineAt, error) {
	l := lineAt{path: path}
	if err := sess.Sync(ctx, path); err != nil { // the server that we are connected to may be behind
		return l, err
	}
	line, err := lock.Inspect(ctx, client, path)
	if err == nil {
		l.numbers, err = lock.InspectNumbers(ctx, client, path)
	}
	if err == nil {
		l.found, err = readPath(ctx, sess, path, line)
	}
	if err == nil {
		err = restoreData(ctx, client, path, line)
	}
	list := groupPermits(line)
	for i := range list {
		list[i].nest(nested)
	}
	for i, c := range list {
		if !c.Holder || err != nil {
			continue
		}
		for _, other := range c.Owner.Set {
			var waits bool
			if waits, err = waitsAt(ctx, client, other, c.Contender); waits {
				list[i].waitsAt = append(list[i].waitsAt, other)
			}
		}
	}
	l.list = list
	return l, err
}

// nest notes what the contender's client tells of waits: a waiter's own, and those inside of a hold.
func (c *contender) nest(nested []lock.NestedWait) {
	for _, w := range nested {
		switch {
		case c.Holder && slices.ContainsFunc(w.Inside, func(h lock.NestedHold) bool { return h.Of(c.Contender) }):
			c.waitsFor = appendMissing(c.waitsFor, w.Paths)
		case !c.Holder && w.Session == c.Session && w.Token == c.Token:
			c.holds = append(c.holds, w.Inside...)
		}
	}
}

// appendMissing appends those of more that are not in the list.
func appendMissing(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// restoreData restores what is recorded of data that a revocation in Curator's layout has overwritten.
func restoreData(ctx context.Context, client *zk.Client, path string, line []lock.Contender) error {
	overwritten := func(c lock.Contender) bool { return c.Revoked != nil && !c.Known }
	if !slices.ContainsFunc(line, overwritten) {
		return nil
	}
	records, err := lock.Revocations(ctx, client, path)
	if err != nil {
		return err
	}
	for i := range line {
		for _, record := range records {
			for _, h := range record.Holders {
				if c := &line[i]; overwritten(*c) && h.Node == c.Path && h.Token == c.Token && h.Data != "" {
					c.Data = []byte(h.Data)
				}
			}
		}
	}
	return nil
}

// waitsAt reports whether a set's contender waits at another of its paths. Its nodes have the same session and were
// created in one transaction.
func waitsAt(ctx context.Context, client *zk.Client, path string, of lock.Contender) (bool, error) {
	line, err := lock.Inspect(ctx, client, path)
	return slices.ContainsFunc(line, func(c lock.Contender) bool {
		return c.Session == of.Session && c.Token == of.Token && !c.Holder
	}), err
}

func newWhoJSON(l lineAt) whoJSON {
	w := whoJSON{
		Path: l.path, Holders: []contenderJSON{}, Waiters: []contenderJSON{},
		Place: l.found.kind, Numbers: numbersJSON(l.numbers),
	}
	for _, c := range l.list {
		entry := newContenderJSON(c)
		if l.groups() > 1 {
			entry.Group = c.Group + 1
		}
		if c.Holder {
			w.Holders = append(w.Holders, entry)
		} else {
			w.Waiters = append(w.Waiters, entry)
		}
	}
	if len(w.Holders) > 0 {
		w.Holder = &w.Holders[0]
	}
	return w
}

func newContenderJSON(c contender) contenderJSON {
	j := contenderJSON{
		Node: c.Path, Kind: c.Kind.String(), Since: command.Timestamp(c.Since), Revoked: revocation(c.Revoked),
		Session: command.SessionID(c.Session), Permits: c.permits, WaitsAt: c.waitsAt, MayHold: c.MayHold,
		Behind: c.Behind, WaitsFor: c.waitsFor,
	}
	if c.Known {
		j.Owner = known(c.Owner)
	} else {
		j.Owner.Text = string(c.Data)
	}
	if c.Holder {
		j.Token = int64(c.Token)
	}
	for _, h := range c.holds {
		held := nestedJSON{Path: h.Paths[0], Token: int64(h.Token)}
		if len(h.Paths) > 1 {
			held.Paths = h.Paths
		}
		j.Holds = append(j.Holds, held)
	}
	return j
}

func known(o lock.Owner) ownerJSON {
	return ownerJSON{Host: o.Host, PID: o.PID, Program: o.Program, Label: o.Label, Set: o.Set}
}
