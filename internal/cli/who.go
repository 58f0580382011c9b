package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/lock"
)

// whoJSON is what "turnstile who --json" prints.
type whoJSON struct {
	Path    string          `json:"path"`
	Holder  *contenderJSON  `json:"holder"`            // null when nobody holds the lock
	Readers []contenderJSON `json:"readers,omitempty"` // who hold it together with the holder
	Waiters []contenderJSON `json:"waiters"`
}

// contenderJSON is one who holds the lock or waits for it.
type contenderJSON struct {
	Node    string    `json:"node"`
	Owner   ownerJSON `json:"owner"`
	Since   string    `json:"since"`
	Session string    `json:"session"`
	Token   int64     `json:"token,omitempty"` // of the holder only
}

// ownerJSON is what a contender tells of itself. One of another program tells only text.
type ownerJSON struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Label   string `json:"label,omitempty"`
	Text    string `json:"text,omitempty"`
}

func (c *cli) who() *cobra.Command {
	var n connection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "who [flags] PATH",
		Short: "Show who holds a lock and who waits for it",
		Long: `Shows who holds the lock at PATH and who waits for it, in the order in which they will be served, whichever
program they use: Turnstile, Curator or kazoo.`,
		Example: `  turnstile who /jobs/report
  turnstile who --connect zk1:2181,zk2:2181/app --json /deploy`,
		Args: exactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPath(args[0]); err != nil {
				return usage(cmd, err)
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			line, err := c.look(ctx, &n, args[0])
			switch {
			case err != nil:
				return failed(err)
			case asJSON:
				return c.json(whoIs(args[0], line))
			}
			return failed(c.printLine(args[0], line))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (docs/cli-json.md)")
	n.flags(cmd.Flags())
	return cmd
}

func (c *cli) look(ctx context.Context, n *connection, path string) ([]lock.Contender, error) {
	client, sess, err := c.open(ctx, n)
	if err != nil {
		return nil, err
	}
	defer client.Close() // nothing of ours is at the server
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(n.connectTimeout), errNoAnswer)
	defer cancel()
	if err := sess.Sync(ctx, path); err != nil { // the server that we happen to be connected to may be behind
		return nil, n.gaveUp(err, client.LastError())
	}
	line, err := lock.Inspect(ctx, client, path)
	return line, n.gaveUp(err, client.LastError())
}

// gaveUp says that the server went away when that is what err comes to.
func (n *connection) gaveUp(err, why error) error {
	if errors.Is(err, errNoAnswer) {
		return n.noServer(why)
	}
	return err
}

func whoIs(path string, line []lock.Contender) whoJSON {
	w := whoJSON{Path: path, Waiters: []contenderJSON{}}
	for _, c := range line {
		entry := contenderJSON{Node: c.Path, Since: c.Since.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Session: sessionID(c.Session)}
		if c.Known {
			entry.Owner = ownerJSON{Host: c.Owner.Host, PID: c.Owner.PID, Program: c.Owner.Program, Label: c.Owner.Label}
		} else {
			entry.Owner.Text = string(c.Data)
		}
		switch {
		case !c.Holder:
			w.Waiters = append(w.Waiters, entry)
		case w.Holder == nil:
			entry.Token = int64(c.Token)
			w.Holder = &entry
		default:
			entry.Token = int64(c.Token)
			w.Readers = append(w.Readers, entry)
		}
	}
	return w
}

// printLine prints the line for people.
func (c *cli) printLine(path string, line []lock.Contender) error {
	if len(line) == 0 {
		_, err := fmt.Fprintf(c.stdout, "nobody holds %s or waits for it\n", path)
		return err
	}
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tOWNER\tSINCE\tSESSION\tTOKEN")
	waiting := 0
	for _, contender := range line {
		role, token := "holder", strconv.FormatInt(int64(contender.Token), 10)
		if !contender.Holder {
			waiting++
			role, token = "waiter "+strconv.Itoa(waiting), "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", role, owner(contender), since(contender.Since), sessionID(contender.Session), token)
	}
	return w.Flush()
}

// owner says in words who a contender is.
func owner(c lock.Contender) string {
	switch {
	case c.Known && c.Owner.Label != "":
		return fmt.Sprintf("%s pid %d (%s)", c.Owner.Host, c.Owner.PID, c.Owner.Label)
	case c.Known:
		return fmt.Sprintf("%s pid %d", c.Owner.Host, c.Owner.PID)
	case len(c.Data) == 0:
		return "?"
	}
	return strconv.QuoteToGraphic(string(c.Data[:min(len(c.Data), 60)]))
}

func since(t time.Time) string {
	return fmt.Sprintf("%s (%v)", t.Local().Format(time.DateTime), max(0, time.Since(t)).Round(time.Second))
}
