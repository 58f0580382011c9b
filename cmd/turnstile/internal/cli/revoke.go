package cli

// turnstile revoke.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// revoker is "turnstile revoke".
type revoker struct {
	app        *command.App
	connection command.Connection
	reason     string
	within     command.Duration
	force      bool
	records    bool
	node       string
	session    string
	sessionID  int64 // that is session
	json       bool
	path       string
	absent     bool // there is no node at path
}

// revokeJSON is what "turnstile revoke --json" prints.
type revokeJSON struct {
	Path    string        `json:"path"`
	Revoked []revokedJSON `json:"revoked"`
}

// revokedJSON is a holder that was asked to release the lock.
type revokedJSON struct {
	Node    string    `json:"node"`
	Owner   ownerJSON `json:"owner"`
	Since   string    `json:"since"`
	Session string    `json:"session"`
	Token   int64     `json:"token"`
	Ending  string    `json:"ending"`
}

// revocationJSON says who asked, and why.
type revocationJSON struct {
	By     ownerJSON `json:"by"`
	Reason string    `json:"reason,omitempty"`
	At     string    `json:"at,omitempty"`
}

// recordJSON is what "turnstile revoke --records --json" prints of each.
type recordJSON struct {
	Path    string        `json:"path"`
	ID      string        `json:"id"`
	Force   bool          `json:"force"`
	Over    bool          `json:"over"`
	Revoked []revokedJSON `json:"revoked"`
	revocationJSON
}

func newRevoke(app *command.App) *cobra.Command {
	r := &revoker{app: app}
	cmd := &cobra.Command{
		Use:   "revoke [flags] PATH",
		Short: "Ask the holders of a lock to release it",
		Long: `Asks the holders of the lock at PATH to release it, and waits until they have. "turnstile lock" then
ends its command as if the lock were lost, and exits with 75. Go programs are notified by their hold, and
programs with Curator's revocable locks by a callback. All other holders do not notice, and holders may
refuse: with --force turnstile deletes their nodes after --within. Another client then has the lock,
although they may still be working.

--node and --session choose among several holders: "turnstile who" shows sessions, and with --json nodes.
They can also choose a contender that "may hold" the lock, which is not asked otherwise.

For an election it asks the leader, which leads until it resigns. "turnstile elect" then ends its command and
stands for election again, behind the others. Leaders of other programs do not notice, nor does one in the
layout of LeaderElectionSupport, to whose node nothing may be written.

--reason may be left out with --force.

A record of each revocation is kept beside PATH: who asked, whom, why, and with what result. --records shows
the last 32.

Exit codes: 0 the holders that were asked no longer hold it, or there were none; 1 a contender still holds
it or may hold it, or something other than a lock is at PATH; 64 usage; 69 no server; 77 access denied.`,
		Example: `  turnstile revoke --reason 'stuck since noon, ticket 4711' /jobs/report
  turnstile revoke --force --within 30s --reason 'node is gone' /deploy
  turnstile revoke --session 0x1a1fc98997c0000 --reason 'this reader alone' /data
  turnstile revoke --records /jobs/report`,
		Args: command.ExactArgs(1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.parse(cmd, args[0]); err != nil {
				return err
			}
			return command.UntilSignal(cmd.Context(), r.run)
		},
	}
	r.within = command.Duration(10 * time.Second)
	flags := cmd.Flags()
	flags.StringVar(&r.reason, "reason", "", "`text` that says why, for the holder and the record")
	command.MayBeEmpty(flags, "reason") // parse says more
	flags.Var(&r.within, "within", "how long holders have to release the lock")
	flags.BoolVar(&r.force, "force", false, "after that, delete the nodes of holders that have not")
	flags.StringVar(&r.node, "node", "", "ask only the holder with this `node`")
	flags.StringVar(&r.session, "session", "", "ask only holders with this `session`, such as 0x1a1fc98997c0000")
	flags.BoolVar(&r.records, "records", false, "show past revocations, and revoke nothing")
	flags.BoolVar(&r.json, "json", false, "print one JSON object, with --records one for each (docs/cli-json.md)")
	r.connection.Flags(flags)
	r.connection.ACLFlag(flags)
	return cmd
}

// parse checks the command line.
func (r *revoker) parse(cmd *cobra.Command, path string) error {
	r.path = path
	if err := command.CheckPath(path); err != nil {
		return command.Usage(cmd, err)
	}
	if !r.records && r.force && !command.Given(cmd.Flags().Lookup("reason")) {
		r.reason = "forced, and no reason given"
	}
	var isSession bool
	r.sessionID, isSession = parseSession(r.session)
	switch {
	case !r.records && strings.TrimSpace(r.reason) == "":
		return command.Usagef(cmd, "--reason is missing: say why, for the holder and the record")
	case r.records && (cmd.Flags().Changed("force") || cmd.Flags().Changed("within") || cmd.Flags().Changed("reason")):
		return command.Usagef(cmd, "--records revokes nothing: leave --force, --within and --reason out")
	case r.records && (r.node != "" || r.session != ""):
		return command.Usagef(cmd, "--records shows all holders: leave --node and --session out")
	case r.session != "" && !isSession:
		return command.Usagef(cmd, "--session %q is no session: turnstile who shows them, such as 0x1a1fc98997c0000",
			r.session)
	case r.within == 0:
		return command.Usagef(cmd, "--within must not be 0: holders need a moment to release the lock")
	}
	return nil
}

func (r *revoker) run(ctx context.Context) error {
	client, sess, err := r.connection.Open(ctx, r.app)
	if err != nil {
		return err
	}
	defer client.Close() // nothing of ours is at the server that ends with the session
	find, stop := r.connection.Answering(ctx)
	defer stop()
	if r.records {
		list, err := lock.Revocations(find, client, r.path)
		if err != nil {
			return r.connection.Unanswered(err, client)
		}
		return r.printRecords(list)
	}
	line, err := lock.Inspect(find, client, r.path)
	if err != nil {
		return r.connection.Unanswered(err, client)
	}
	opts := lock.RevokeOptions{
		Reason: r.reason, Grace: time.Duration(r.within), Force: r.force, Record: true, ACL: r.connection.ACL(),
	}
	if r.node != "" || r.session != "" {
		opts.Holder = r.chosen
		if !slices.ContainsFunc(line, r.chosen) {
			err := fmt.Errorf("%s: no holder has that node and that session", r.path)
			return &command.Error{Code: command.ExitNotAcquired, Err: err, Hint: "turnstile who shows the holders"}
		}
	} else if len(line) == 0 {
		if err := r.nothingThere(find, client, sess); err != nil {
			return err
		}
	}
	var list []lock.Revoked
	err = r.connection.During(ctx, client, sess, func(ctx context.Context) (err error) {
		if list, err = lock.Revoke(ctx, client, r.path, opts); err != nil && !errors.Is(err, lock.ErrKept) {
			return err
		}
		return cmp.Or(r.restoreData(ctx, client, list), err)
	})
	if err != nil && !errors.Is(err, lock.ErrKept) {
		return err
	}
	if perr := r.print(list); perr != nil {
		return perr
	}
	others := slices.ContainsFunc(line, func(c lock.Contender) bool { return c.MayHold })
	if err == nil && others && opts.Holder == nil {
		return &command.Error{
			Code: command.ExitNotAcquired,
			Err:  fmt.Errorf("%s: another contender may hold it too: its program looks for other names", r.path),
			Hint: "turnstile who shows it, and --node or --session asks it",
		}
	}
	if err != nil {
		return &command.Error{
			Code: command.ExitNotAcquired,
			Err:  fmt.Errorf("%s: a holder has not released it within %v", r.path, time.Duration(r.within)),
			Hint: "--force deletes the nodes of such holders",
		}
	}
	return nil
}

// restoreData restores what is recorded of data that an earlier revocation has overwritten.
func (r *revoker) restoreData(ctx context.Context, client *zk.Client, list []lock.Revoked) error {
	line := make([]lock.Contender, len(list))
	for i := range list {
		line[i] = list[i].Holder
	}
	err := restoreData(ctx, client, r.path, line)
	for i := range list {
		list[i].Holder = line[i]
	}
	return err
}

// chosen reports whether --node and --session mean a contender.
func (r *revoker) chosen(c lock.Contender) bool {
	node := r.node == "" || c.Path == r.node || c.Second == r.node || path.Base(c.Path) == r.node
	session := r.session == "" || c.Session == r.sessionID
	return node && session && (c.Holder || c.MayHold)
}

// nothingThere returns an error if something other than a lock is at the path.
func (r *revoker) nothingThere(ctx context.Context, client *zk.Client, sess *zk.Session) error {
	state, err := readPath(ctx, sess, r.path, nil)
	if err != nil {
		return r.connection.Unanswered(err, client)
	}
	r.absent = state.kind == survey.Absent
	if other := state.instead(r.path); other != "" {
		return &command.Error{Code: command.ExitNotAcquired, Err: errors.New(other)}
	}
	return nil
}

func (r *revoker) print(list []lock.Revoked) error {
	if r.json {
		r.app.Did.Store(true)
		return r.app.JSON(revokeJSON{Path: r.path, Revoked: revokedHolders(list)})
	}
	if len(list) == 0 {
		absent := ""
		if r.absent {
			absent = "; there is no such path now"
		}
		return r.app.Printf("nobody holds %s (asked %s%s)\n", r.path, r.connection.Where(), absent)
	}
	for _, who := range list {
		r.app.Did.Store(true)
		if err := r.app.Printf("%s: %s: %s\n", r.path, owner(who.Holder), became(who.Ending)); err != nil {
			return err
		}
	}
	return nil
}

// became says what became of a holder.
func became(e lock.Ending) string {
	switch e {
	case lock.EndingReleased:
		return "has released it"
	case lock.EndingForced:
		return "has lost it by force"
	case lock.EndingKept:
		return "has it still"
	}
	return string(e)
}

func revokedHolders(list []lock.Revoked) []revokedJSON {
	holders := []revokedJSON{}
	for _, who := range list {
		h := revokedJSON{
			Node: who.Holder.Path, Since: command.Timestamp(who.Holder.Since),
			Session: command.SessionID(who.Holder.Session), Token: int64(who.Holder.Token), Ending: string(who.Ending),
		}
		if h.Owner.Text = string(who.Holder.Data); who.Holder.Known {
			h.Owner = known(who.Holder.Owner)
		}
		holders = append(holders, h)
	}
	return holders
}

func revocation(r *lock.Revocation) *revocationJSON {
	if r == nil {
		return nil
	}
	j := &revocationJSON{By: known(r.By), Reason: r.Reason}
	if !r.At.IsZero() { // Curator's tells nothing
		j.At = command.Timestamp(r.At)
	}
	return j
}

func (r *revoker) printRecords(list []lock.Record) error {
	if len(list) == 0 && !r.json {
		return r.app.Printf("nothing is recorded for %s\n", r.path)
	}
	for _, record := range list {
		if err := r.app.Report(r.json, r.record(record), "%s", recordText(record)); err != nil {
			return err
		}
	}
	return nil
}

func (r *revoker) record(record lock.Record) recordJSON {
	return recordJSON{
		Path: r.path, ID: record.ID, Force: record.Force, Over: record.Over, Revoked: revokedHolders(recorded(record)),
		revocationJSON: *revocation(&record.Request),
	}
}

// recorded returns the holders of a record as Revoke returned them.
func recorded(record lock.Record) []lock.Revoked {
	var list []lock.Revoked
	for _, h := range record.Holders {
		c := lock.Contender{Path: h.Node, Since: h.Since, Session: h.Session, Token: h.Token, Data: []byte(h.Data)}
		if h.Owner != nil {
			c.Known, c.Owner = true, *h.Owner
		}
		list = append(list, lock.Revoked{Holder: c, Ending: h.Ending})
	}
	return list
}

// recordText is a record for people.
func recordText(record lock.Record) command.Text {
	text := command.Sprintf("%s  by %s: %s\n", record.Request.At.Local().Format(time.DateTime),
		owner(lock.Contender{Known: true, Owner: record.Request.By}), command.Excerpt(record.Request.Reason))
	for _, h := range recorded(record) {
		who := owner(h.Holder)
		if !h.Holder.Known && len(h.Holder.Data) == 0 {
			who = command.Plain(h.Holder.Path) // nothing else is known of it
		}
		what := became(h.Ending)
		if !record.Over && h.Ending == lock.EndingKept {
			what = "was asked; the result is not recorded yet"
		}
		text += command.Sprintf("    %s: %s\n", who, what)
	}
	return text
}
