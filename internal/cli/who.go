package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// whoJSON is what "turnstile who --json" prints for a path.
type whoJSON struct {
	Path    string          `json:"path"`
	Holder  *contenderJSON  `json:"holder"` // the first of the holders; null when nobody holds the lock
	Holders []contenderJSON `json:"holders"`
	Waiters []contenderJSON `json:"waiters"`
	Place   place           `json:"place"`
	Numbers numbersJSON     `json:"numbers"`
}

// numbersJSON is how far the sequence numbers of a lock's nodes are used up.
type numbersJSON struct {
	Path string `json:"path"`
	Left int    `json:"left"`
	Low  bool   `json:"low"`
}

// contenderJSON is one who holds the lock or waits for it.
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
	MayHold bool            `json:"may_hold,omitempty"`
	Group   int             `json:"group,omitempty"` // from 1, if there are several
}

// ownerJSON is what a contender tells of itself. One of another program tells only text.
type ownerJSON struct {
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Program string   `json:"program,omitempty"`
	Label   string   `json:"label,omitempty"`
	Set     []string `json:"set,omitempty"`
	Text    string   `json:"text,omitempty"`
}

// standing is a contender as it is shown.
type standing struct {
	lock.Contender
	permits int      // how many of a semaphore's it has
	waitsAt []string // at which paths of its set it waits although it is first here
}

func (c *cli) who() *cobra.Command {
	var n connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "who [flags] PATH...",
		Short: "Show who holds a lock and who waits for it",
		Long: `Shows who holds the lock at PATH and who waits for it, in the order in which they will be served, whichever
program they use: Turnstile, Curator, kazoo or go-zookeeper. Those who share a lock hold it together. Of an
election it shows who leads and who stands for it, of permits who has how many. Who wants several PATHs at
once is shown at each of them.

Programs that look for different names do not exclude each other (docs/interop.md). They are shown in groups,
and "may hold" is said of those that wait for who is ahead only if their program was told to.

Without --connect it asks this user's own server, as "turnstile lock" does.

Exit codes: 0; 1 something else than a lock is at PATH; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile who /jobs/report
  turnstile who --connect zk1:2181,zk2:2181/app --json /deploy`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, errors.New("PATH is missing"))
			}
			for _, path := range args {
				if err := checkPath(path); err != nil {
					return usage(cmd, err)
				}
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return failed(c.showWho(ctx, &n, args, asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a PATH (docs/cli-json.md)")
	n.flags(cmd.Flags())
	return cmd
}

func (c *cli) showWho(ctx context.Context, n *connection, paths []string, asJSON bool) error {
	client, sess, err := c.open(ctx, n)
	if err != nil {
		return err
	}
	defer client.Close() // nothing of ours is at the server
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n.connectTimeout), errNoAnswer)
	defer cancel()
	lines := make([]lineAt, len(paths))
	for i, path := range paths {
		if lines[i], err = look(ctx, client, sess, path); err != nil {
			return n.gaveUp(err, client.LastError())
		}
	}
	var wrong error
	for _, l := range lines {
		other := ""
		if len(l.list) == 0 {
			other = l.found.instead(l.path)
		}
		switch {
		case asJSON:
			err = c.json(whoIs(l))
		case other == "":
			c.warnOf(l)
			err = c.printLine(l, len(paths) > 1, n.where())
		}
		if other != "" {
			wrong = &exitError{code: ExitNotAcquired}
			fmt.Fprintln(c.stderr, "turnstile:", other)
		}
		if err != nil {
			return err
		}
	}
	return wrong
}

// lineAt is who is at a path, and what else.
type lineAt struct {
	path    string
	list    []standing
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

func mayHold(list []standing) bool {
	return slices.ContainsFunc(list, func(s standing) bool { return s.MayHold })
}

// warnOf says that a line is not what it seems to be, and what to do before the sequence numbers are used up, from
// the middle on.
func (c *cli) warnOf(l lineAt) {
	if l.groups() > 1 || mayHold(l.list) {
		fmt.Fprintf(c.stderr, "turnstile: warning: not all at %s exclude each other: their programs look for different "+
			"names, and several groups may hold at the same time (docs/interop.md)\n", l.path)
	}
	if n := l.numbers; n.Low {
		fmt.Fprintf(c.stderr, "turnstile: warning: %d sequence numbers are left at %s, and then new contenders are refused; "+
			"delete %s at a time when it is empty (zkCli.sh delete), so that its numbers begin at 0 again\n", n.Left, n.Path, n.Path)
	}
}

// look returns who stands in line at path.
func look(ctx context.Context, client *zk.Client, sess *zk.Session, path string) (lineAt, error) {
	l := lineAt{path: path}
	if err := sess.Sync(ctx, path); err != nil { // the server that we happen to be connected to may be behind
		return l, err
	}
	line, err := lock.Inspect(ctx, client, path)
	if err == nil {
		l.numbers, err = lock.InspectNumbers(ctx, client, path)
	}
	if err == nil {
		l.found, err = lookAt(ctx, sess, path, line)
	}
	if err == nil {
		err = recall(ctx, client, path, line)
	}
	list := together(line)
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

// recall says of the nodes over which Curator's word for a revocation was written what was there before, if that is
// recorded.
func recall(ctx context.Context, client *zk.Client, path string, line []lock.Contender) error {
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

// waitsAt reports whether a set's contender waits at another of its paths. Its nodes have a session and a transaction in common.
func waitsAt(ctx context.Context, client *zk.Client, path string, of lock.Contender) (bool, error) {
	line, err := lock.Inspect(ctx, client, path)
	return slices.ContainsFunc(line, func(c lock.Contender) bool {
		return c.Session == of.Session && c.Token == of.Token && !c.Holder
	}), err
}

// gaveUp says that the server went away when that is what err comes to.
func (n *connection) gaveUp(err, why error) error {
	if errors.Is(err, errNoAnswer) {
		return n.noServer(why)
	}
	return err
}

func whoIs(l lineAt) whoJSON {
	w := whoJSON{
		Path: l.path, Holders: []contenderJSON{}, Waiters: []contenderJSON{},
		Place: l.found.place, Numbers: numbersJSON(l.numbers),
	}
	for _, c := range l.list {
		entry := contenderJSON{
			Node: c.Path, Kind: c.Kind.String(), Since: timestamp(c.Since), Session: sessionID(c.Session),
			WaitsAt: c.waitsAt, Permits: c.permits, Revoked: revocation(c.Revoked), MayHold: c.MayHold,
		}
		if l.groups() > 1 {
			entry.Group = c.Group + 1
		}
		if c.Known {
			entry.Owner = known(c.Owner)
		} else {
			entry.Owner.Text = string(c.Data)
		}
		if c.Holder {
			entry.Token = int64(c.Token)
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

func known(o lock.Owner) ownerJSON {
	return ownerJSON{Host: o.Host, PID: o.PID, Program: o.Program, Label: o.Label, Set: o.Set}
}

// printLine prints the line for people, each group by itself. Titled says of which path it is.
func (c *cli) printLine(l lineAt, titled bool, server string) error {
	if len(l.list) == 0 {
		absent := ""
		if l.found.place == placeAbsent {
			absent = "; there is no such path now"
		}
		_, err := fmt.Fprintf(c.stdout, "nobody holds %s or waits for it (asked %s%s)\n", l.path, server, absent)
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for group := range l.groups() {
		title := ""
		if titled {
			title = l.path
		}
		if group > 0 {
			title = "and besides"
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\tOWNER\tSINCE\tSESSION\tTOKEN\n", title)
		printGroup(w, slices.DeleteFunc(slices.Clone(l.list), func(s standing) bool { return s.Group != group }))
	}
	return w.Flush()
}

// printGroup prints those of a group.
func printGroup(w io.Writer, line []standing) {
	waiting := 0
	for _, contender := range line {
		token := strconv.FormatInt(int64(contender.Token), 10)
		if !contender.Holder {
			token = "-"
		}
		if !contender.Holder && !contender.MayHold {
			waiting++
		}
		who := owner(contender.Contender)
		if contender.Revoked != nil {
			who += ", asked to give it up"
		}
		if len(contender.waitsAt) > 0 {
			who += ", waits at " + strings.Join(contender.waitsAt, " ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", role(contender, waiting), who, since(contender.Since), sessionID(contender.Session), token)
	}
}

// role says what a contender does in the line: the n-th that waits, if it waits.
func role(c standing, n int) string {
	holder, waiter := "holder", "waiter"
	switch c.Kind {
	case lock.Candidate:
		holder, waiter = "leader", "candidate"
	case lock.Reader, lock.Writer:
		holder, waiter = holder+", "+c.Kind.String(), c.Kind.String()
	case lock.Permit:
		if c.permits > 1 {
			holder = fmt.Sprintf("%s of %d", holder, c.permits)
		}
	case lock.Exclusive:
	}
	switch {
	case c.Holder:
		return holder
	case c.MayHold && c.Kind == lock.Exclusive:
		return "may hold"
	case c.MayHold:
		return "may hold, " + c.Kind.String()
	}
	return waiter + " " + strconv.Itoa(n)
}

// owner says in words who a contender is.
func owner(c lock.Contender) string {
	switch {
	case !c.Known && len(c.Data) == 0:
		return "?"
	case !c.Known:
		return plain(string(c.Data[:min(len(c.Data), 60)]))
	}
	var more []string
	if c.Owner.Label != "" {
		more = append(more, printable(c.Owner.Label))
	}
	if len(c.Owner.Set) > 0 {
		more = append(more, "set of "+printable(strings.Join(c.Owner.Set, " ")))
	}
	text := fmt.Sprintf("%s pid %d", plain(c.Owner.Host), c.Owner.PID)
	if len(more) > 0 {
		text += " (" + strings.Join(more, "; ") + ")"
	}
	return text
}

func since(t time.Time) string {
	return fmt.Sprintf("%s (%v)", t.Local().Format(time.DateTime), max(0, time.Since(t)).Round(time.Second))
}
