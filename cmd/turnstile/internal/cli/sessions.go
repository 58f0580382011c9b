package cli

// turnstile sessions.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/words"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// sessionJSON is what "turnstile sessions --json" prints for a session.
type sessionJSON struct {
	Session    string     `json:"session"`
	Server     string     `json:"server,omitempty"`
	Address    string     `json:"address,omitempty"`
	Timeout    int64      `json:"session_timeout_ms,omitempty"`
	Connected  string     `json:"connected_since,omitempty"`
	Answered   string     `json:"last_answer,omitempty"`
	Ephemerals *int       `json:"ephemerals,omitempty"` // if a server has said so
	Holds      []string   `json:"holds"`
	Waits      []string   `json:"waits"`
	Owner      *ownerJSON `json:"owner,omitempty"`
}

// sessionFacts are what is known of a session.
type sessionFacts struct {
	id         int64
	server     string // that it is connected to
	address    string // of its client
	timeout    time.Duration
	connected  time.Time
	answered   time.Time // by the server's clock; zero if it does not say
	ephemerals int       // -1 if no server has said so
	holds      []string  // paths
	waits      []string
	who        *lock.Contender // that tells whose it is
}

// sessions is a call of turnstile sessions.
type sessions struct {
	command.Access

	of      string
	readFor command.Period
}

func newSessions(app *command.App) *cobra.Command {
	s := &sessions{Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "sessions [flags]",
		Short: "List the clients' sessions, with what they hold and wait for",
		Long: `Lists the sessions of the servers' clients: where each comes from, its timeout, how many ephemeral
nodes it has, which locks, elections and permits it holds, which it waits for, and which program it is.

Addresses, timeouts and ephemeral nodes are what the servers say, if they answer the four-letter words cons and
dump (4lw.commands.whitelist, or turnstile serve --words cons,dump). Otherwise only sessions that hold a lock or
wait for one are known, and a warning says why.

To get a lock from a session ask its holder, with turnstile revoke --session ID PATH. The sessions of turnstile
serve can be ended: see turnstile sessions close.

Exit codes: 0, also if there is none; 64 usage; 69 no server.`,
		Example: `  turnstile sessions
  turnstile sessions --connect zk1:2181,zk2:2181,zk3:2181 --of /jobs/report
  turnstile sessions close 0x1a1fc98997c0000 --reason 'its machine is gone'`,
		Args: command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.of != "" {
				if err := command.CheckPath(s.of); err != nil {
					return command.Usage(cmd, fmt.Errorf("--of: %w", err))
				}
			}
			return s.With(cmd.Context(), s.list)
		},
	}
	cmd.AddCommand(newSessionsClose(app))
	flags := cmd.Flags()
	s.Flags(cmd, "one JSON object per session")
	flags.StringVar(&s.of, "of", "", "list only sessions that hold this `path` or wait for it")
	flags.Var(&s.readFor, "read-for", "stop reading after this time, and show what was found")
	return cmd
}

// list finds the sessions, and prints them.
func (s *sessions) list(ctx context.Context, client *zk.Client) error {
	found, lacks := s.known(ctx, client)
	snapshot, err := s.owners(ctx, client, found)
	if err != nil {
		return err
	}
	found.forgetOurs(ctx, client)
	list := make([]*sessionFacts, 0, len(found))
	for _, f := range found {
		slices.Sort(f.holds)
		slices.Sort(f.waits)
		f.holds, f.waits = slices.Compact(f.holds), slices.Compact(f.waits)
		if s.of == "" || slices.Contains(f.holds, s.of) || slices.Contains(f.waits, s.of) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *sessionFacts) int { return cmp.Compare(uint64(a.id), uint64(b.id)) })
	if err := s.print(list); err != nil {
		return err
	}
	for _, lack := range lacks {
		s.App.Complain("%s", lack)
	}
	if snapshot.Partial != "" {
		s.App.Complain("what they hold is not whole: %s; raise --read-for", snapshot.Partial)
	}
	return nil
}

// sessionsByID are what is known of sessions.
type sessionsByID map[int64]*sessionFacts

// of returns what is known of a session.
func (found sessionsByID) of(id int64) *sessionFacts {
	if found[id] == nil {
		found[id] = &sessionFacts{id: id, ephemerals: -1}
	}
	return found[id]
}

// forgetOurs leaves this client's own session out.
func (found sessionsByID) forgetOurs(ctx context.Context, client *zk.Client) {
	if sess, err := client.Session(ctx); err == nil {
		delete(found, sess.ID())
	}
}

// known returns what the servers say of the sessions, and what they do not say.
func (s *sessions) known(ctx context.Context, client *zk.Client) (found sessionsByID, lacks []command.Text) {
	found = make(sessionsByID)
	var nodes map[int64]int // nil as long as no server tells
	for _, server := range client.Servers() {
		text, err := s.Connection.Word(ctx, server, "cons", command.MaxWord)
		if err != nil {
			lacks = append(lacks, command.Sprintf("addresses of %s's clients are missing: %v", server, err))
		}
		for _, c := range parseCons(text) {
			f := found.of(c.id)
			f.server, f.address, f.timeout = server, c.address, c.timeout
			f.connected, f.answered = c.connected, c.answered
		}
		if nodes != nil { // each server has all of them
			continue
		}
		if text, err = s.Connection.Word(ctx, server, "dump", command.MaxWord); err != nil {
			lacks = append(lacks, command.Sprintf("ephemeral nodes are missing: %s: %v", server, err))
			continue
		}
		nodes = parseDump(text)
	}
	for id := range nodes {
		found.of(id)
	}
	if nodes != nil {
		for id, f := range found {
			f.ephemerals = nodes[id]
		}
	}
	return found, lacks
}

// parseCons returns the sessions in an answer to cons.
func parseCons(text string) (list []sessionFacts) {
	for address, told := range words.Connections(text) {
		c := sessionFacts{address: address}
		for field := range strings.SplitSeq(told, ",") {
			key, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseUint(value, 0, 64) // numbers in hexadecimal have a prefix
			if err != nil {
				continue
			}
			switch key {
			case "sid":
				c.id = int64(n)
			case "to":
				c.timeout = time.Duration(min(n, 1<<31)) * time.Millisecond
			case "est":
				c.connected = time.UnixMilli(int64(min(n, 1<<52)))
			case "lresp":
				c.answered = time.UnixMilli(int64(min(n, 1<<52)))
			}
		}
		if c.answered.Before(c.connected) {
			c.answered = time.Time{} // Apache's lresp is not a time of the day: it counts from when the machine started
		}
		if c.id != 0 { // a connection without one: this question's
			list = append(list, c)
		}
	}
	return list
}

// parseDump returns how many ephemeral nodes each session has in an answer to dump.
func parseDump(text string) map[int64]int {
	counts := make(map[int64]int)
	nodes, _ := words.Ephemerals(text)
	for session := range nodes {
		counts[session]++
	}
	return counts
}

// owners adds which sessions hold or wait for what.
func (s *sessions) owners(
	ctx context.Context, client *zk.Client, found sessionsByID,
) (*survey.Snapshot, error) {
	cfg := survey.Config{Root: s.Path, Time: time.Duration(s.readFor)}
	if s.of != "" {
		cfg.Root = s.of
	}
	snapshot, err := survey.Read(ctx, client, cfg)
	if err != nil {
		return nil, err
	}
	lines := make([][]lock.Contender, len(snapshot.Entries))
	var group errgroup.Group
	group.SetLimit(64)
	for i, e := range snapshot.Entries {
		if e.Holding+e.Waiting > 0 {
			group.Go(func() (err error) {
				lines[i], err = lock.Inspect(ctx, client, e.Path)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, line := range lines {
		for j, c := range line {
			f := found.of(c.Session)
			if c.Holder {
				f.holds = append(f.holds, snapshot.Entries[i].Path)
			} else {
				f.waits = append(f.waits, snapshot.Entries[i].Path)
			}
			if f.who == nil || c.Known && !f.who.Known {
				f.who = &line[j]
			}
		}
	}
	return snapshot, nil
}

// print prints the sessions.
func (s *sessions) print(list []*sessionFacts) error {
	if s.AsJSON {
		for _, f := range list {
			if err := s.App.JSON(newSessionJSON(f)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		return s.App.Printf("no session to show (asked %s)\n", s.Connection.Where())
	}
	w := s.App.Table()
	_ = command.Fprintf(w, "SESSION\tADDRESS\tTIMEOUT\tANSWERED\tEPHEMERALS\tHOLDS\tWAITS FOR\tOWNER\n") // see Flush
	for _, f := range list {
		address, timeout, answered, ephemerals, who := "-", "-", "-", "-", "-"
		if f.address != "" {
			address, timeout = f.address, f.timeout.String()
		}
		if !f.answered.IsZero() {
			answered = fmt.Sprintf("%v ago", max(0, time.Since(f.answered)).Round(time.Second))
		}
		if f.ephemerals >= 0 {
			ephemerals = strconv.Itoa(f.ephemerals)
		}
		if f.who != nil {
			who = owner(*f.who)
		}
		_ = command.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", command.SessionID(f.id), address, timeout, answered,
			ephemerals, paths(f.holds), paths(f.waits), who)
	}
	return command.OutputError(w.Flush())
}

// paths writes the first of some paths.
func paths(list []string) string {
	const most = 3
	switch n := len(list); {
	case n == 0:
		return "-"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], " "), n-most)
	}
	return strings.Join(list, " ")
}

func newSessionJSON(f *sessionFacts) sessionJSON {
	j := sessionJSON{
		Session: command.SessionID(f.id), Server: f.server, Address: f.address, Timeout: f.timeout.Milliseconds(),
		Holds: append([]string{}, f.holds...), Waits: append([]string{}, f.waits...),
	}
	if !f.connected.IsZero() {
		j.Connected = command.Timestamp(f.connected)
	}
	if !f.answered.IsZero() {
		j.Answered = command.Timestamp(f.answered)
	}
	if f.ephemerals >= 0 {
		j.Ephemerals = &f.ephemerals
	}
	if f.who != nil {
		o := newContenderJSON(contender{Contender: *f.who}).Owner
		j.Owner = &o
	}
	return j
}
