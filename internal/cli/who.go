package cli

import (
	"context"
	"errors"
	"fmt"
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
election it shows who leads and who stands for it, of permits who has how many. Who wants several PATHs at once is shown at each of them.`,
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
	lines, numbers := make([][]standing, len(paths)), make([]lock.Numbers, len(paths))
	for i, path := range paths {
		if lines[i], err = look(ctx, client, sess, path); err == nil {
			numbers[i], err = lock.InspectNumbers(ctx, client, path)
		}
		if err != nil {
			return n.gaveUp(err, client.LastError())
		}
	}
	for i, path := range paths {
		if asJSON {
			err = c.json(whoIs(path, lines[i], numbers[i]))
		} else {
			c.warnOf(numbers[i])
			err = c.printLine(path, lines[i], len(paths) > 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warnOf says what to do before the sequence numbers are used up, from the middle on.
func (c *cli) warnOf(n lock.Numbers) {
	if n.Low {
		fmt.Fprintf(c.stderr, "turnstile: warning: %d sequence numbers are left at %s, and then new contenders are refused; "+
			"delete %s at a time when it is empty (zkCli.sh delete), so that its numbers begin at 0 again\n", n.Left, n.Path, n.Path)
	}
}

// look returns who stands in line at path.
func look(ctx context.Context, client *zk.Client, sess *zk.Session, path string) ([]standing, error) {
	if err := sess.Sync(ctx, path); err != nil { // the server that we happen to be connected to may be behind
		return nil, err
	}
	line, err := lock.Inspect(ctx, client, path)
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
	return list, err
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

func whoIs(path string, line []standing, numbers lock.Numbers) whoJSON {
	w := whoJSON{Path: path, Holders: []contenderJSON{}, Waiters: []contenderJSON{}, Numbers: numbersJSON(numbers)}
	for _, c := range line {
		entry := contenderJSON{
			Node: c.Path, Kind: c.Kind.String(), Since: timestamp(c.Since), Session: sessionID(c.Session),
			WaitsAt: c.waitsAt, Permits: c.permits, Revoked: revocation(c.Revoked),
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

// printLine prints the line for people. Titled says of which path it is.
func (c *cli) printLine(path string, line []standing, titled bool) error {
	if len(line) == 0 {
		_, err := fmt.Fprintf(c.stdout, "nobody holds %s or waits for it\n", path)
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	title := ""
	if titled {
		title = path
	}
	fmt.Fprintf(w, "%s\tOWNER\tSINCE\tSESSION\tTOKEN\n", title)
	waiting := 0
	for _, contender := range line {
		token := strconv.FormatInt(int64(contender.Token), 10)
		if !contender.Holder {
			waiting++
			token = "-"
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
	return w.Flush()
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
	if c.Holder {
		return holder
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
