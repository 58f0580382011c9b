package cli

// turnstile verify.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/internal/verify"
	"github.com/seed-a3166700/turnstile/internal/words"
	"github.com/seed-a3166700/turnstile/zk"
)

// verifyJSON is what "turnstile verify --json" prints.
type verifyJSON struct {
	Path     string              `json:"path"`
	Verdict  string              `json:"verdict"`
	Seconds  float64             `json:"seconds"`
	Clients  int                 `json:"clients"`
	Rate     float64             `json:"rate"`
	Rounds   int                 `json:"rounds"`
	Calls    int                 `json:"calls"`
	Holds    int                 `json:"holds"`
	Failures int                 `json:"failures"`
	Latency  []verifyLatencyJSON `json:"latency"`
	Versions []verifyVersionJSON `json:"versions"`
}

// verifyLatencyJSON is how long calls of one kind took.
type verifyLatencyJSON struct {
	Call  string  `json:"call"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// verifyVersionJSON is the version of a server, or of turnstile.
type verifyVersionJSON struct {
	Of      string `json:"of"`
	Version string `json:"version"`
}

// verification is a call of turnstile verify.
type verification struct {
	command.Access

	during  command.Duration
	clients int
	rate    float64
	report  string
}

func newVerify(app *command.App) *cobra.Command {
	v := &verification{
		Access: command.Access{App: app}, during: command.Duration(5 * time.Minute), clients: 4, rate: 50,
	}
	cmd := &cobra.Command{
		Use:   "verify --path PATH [flags]",
		Short: "Check on your own servers that calls are linearizable and that a lock excludes",
		Long: `Several clients, each with its own session, change and read counters and hold a lock, at a bounded rate.
What they saw is judged: whether every call took effect at one instant between its beginning and its end, and
whether holds of the lock never overlap and their tokens grow. The time is divided into rounds of 10 seconds or
500 calls; each has a counter of its own, and all have the same lock. Restart servers or cut them off
meanwhile: calls may fail then, and those that fail promise nothing.

PATH must not exist; its parent must. It is created, and deleted at the end with all below it, also after a
signal. If turnstile is killed, delete it with "turnstile rm -r PATH".

--report writes a page with the verdict, the calls that contradict each other, the history, how long calls
took, and versions. It is one file without scripts.

Exit codes: 0 no history is refused; 1 one is; 64 usage, or PATH exists; 69 no server; 70 a history could not
be judged in time, or no call has succeeded; 77 access to PATH denied; 128+N signal N ended it.`,
		Example: `  turnstile verify --path /turnstile-verify --for 10s --report report.html
  turnstile verify --connect zk1:2181,zk2:2181,zk3:2181 --path /turnstile-verify --clients 8 --rate 200`,
		Args: command.ExactArgs(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.check(cmd); err != nil {
				return err
			}
			return v.With(cmd.Context(), v.run)
		},
	}
	flags := cmd.Flags()
	v.Flags(cmd, "one JSON object")
	flags.StringVar(&v.Path, "path", "", "`path` of a node that does not exist, below which everything happens")
	flags.Var(&v.during, "for", "how long the clients make calls")
	flags.IntVar(&v.clients, "clients", v.clients, "how many clients")
	flags.Float64Var(&v.rate, "rate", v.rate, "how many operations all clients together begin in a second, at most")
	flags.StringVar(&v.report, "report", "", "write a page to this `file`")
	v.Connection.ACLFlag(flags)
	command.VariablesOf("verify", flags, "path")
	return cmd
}

// check looks at the flags.
func (v *verification) check(cmd *cobra.Command) error {
	switch {
	case v.Path == "":
		return command.Usagef(cmd, "--path is missing: name a node that does not exist, such as /turnstile-verify")
	case v.during <= 0:
		return command.Usagef(cmd, "--for must not be 0")
	case v.report == "-":
		return command.Usagef(cmd, "--report must be a file: a page does not go with what is printed")
	case v.clients < 1 || v.clients > 100:
		return command.Usagef(cmd, "--clients must be from 1 to 100")
	case !(v.rate >= 0.1 && v.rate <= 10_000):
		return command.Usagef(cmd, "--rate must be from 0.1 to 10000")
	case v.Path == "/zookeeper" || strings.HasPrefix(v.Path, "/zookeeper/"):
		return command.Usagef(cmd, "what is below /zookeeper belongs to the servers")
	}
	if err := command.CheckPath(v.Path); err != nil {
		return command.Usagef(cmd, "--path: %v", err)
	}
	return nil
}

// run makes the run, and reports.
func (v *verification) run(ctx context.Context, first *zk.Client) error {
	file, err := v.openReport()
	if err != nil { // now, not after five minutes
		return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("--report: %w", err)}
	}
	if file != nil {
		defer file.Close() // also if nothing is written
		if file.Name() != v.report {
			defer os.Remove(file.Name()) // it has another name by then if all is well
		}
	}
	clients := []*zk.Client{first}
	for len(clients) < v.clients {
		client, _, err := v.Connection.Open(ctx, v.App)
		if err != nil {
			return err
		}
		defer client.Close() // closed already, unless another cannot be opened
		clients = append(clients, client)
	}
	v.App.Say("%s, %g operations a second for %v below %s", command.Plural(v.clients, "client"), v.rate,
		time.Duration(v.during), v.Path)
	versions := v.versions(ctx, first)
	r, err := verify.Run(ctx, clients, verify.Config{
		Path: v.Path, For: time.Duration(v.during), Rate: v.rate, ACL: v.Connection.ACL(),
	})
	switch {
	case errors.Is(err, verify.ErrExists):
		hint := "name a PATH that does not exist; if an earlier verify was killed, turnstile rm -r deletes what it left"
		return &command.Error{Code: command.ExitUsage, Err: err, Hint: hint}
	case errors.Is(err, zk.NoNode):
		return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("the parent of %s does not exist", v.Path)}
	case err != nil:
		return err
	}
	r.Versions = versions
	if r.Left != nil {
		v.App.Complain("%s may be left: %v; turnstile rm -r deletes it", v.Path, r.Left)
	}
	if file != nil {
		if err := v.writeReport(file, r); err != nil {
			return &command.Error{Code: command.ExitOutput, Err: fmt.Errorf("--report: %w", err)}
		}
	}
	if err := v.print(r); err != nil {
		return err
	}
	switch {
	case r.Verdict() == lincheck.Refused:
		return &command.Error{Code: exitFound}
	case r.Stopped != nil:
		return r.Stopped
	case r.Verdict() == lincheck.Undecided:
		return &command.Error{Code: command.ExitSoftware, Err: errors.New("a history could not be judged in time")}
	case r.Calls+r.Holds == 0:
		return &command.Error{Code: command.ExitSoftware, Err: errors.New("no call has succeeded")}
	}
	return nil
}

// openReport opens the file of --report: one that is to replace it, or itself if it is a pipe or a device. It returns
// nil without a report.
func (v *verification) openReport() (*os.File, error) {
	if v.report == "" {
		return nil, nil
	}
	info, err := os.Stat(v.report)
	switch {
	case err != nil || info.Mode().IsRegular():
		return os.CreateTemp(filepath.Dir(v.report), ".turnstile-verify-")
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", v.report)
	}
	return os.OpenFile(v.report, os.O_WRONLY, 0)
}

// writeReport writes the page to what openReport has returned.
func (v *verification) writeReport(file *os.File, r *verify.Report) error {
	err := verify.WritePage(file, r)
	if file.Name() == v.report {
		return err
	}
	return errors.Join(err, file.Chmod(0o644), os.Rename(file.Name(), v.report))
}

// versions asks the servers for their versions.
func (v *verification) versions(ctx context.Context, client *zk.Client) []verify.Version {
	list := []verify.Version{{Of: "turnstile", Version: thisVersion().text()}}
	for _, server := range client.Servers() {
		version := "unknown"
		answer, err := v.Connection.Word(ctx, server, "srvr", 1<<20)
		if err != nil {
			version += ": " + err.Error()
		}
		if text, ok := words.Stats(answer)["Zookeeper version"]; ok {
			version = text
		}
		version = strings.ToValidUTF8(version[:min(len(version), 200)], "?")
		list = append(list, verify.Version{Of: server, Version: version})
	}
	return list
}

// print prints the verdict.
func (v *verification) print(r *verify.Report) error {
	verdict := r.Verdict().String()
	if v.AsJSON {
		j := verifyJSON{
			Path: v.Path, Verdict: verdict, Seconds: r.Ran.Seconds(), Clients: r.Clients, Rate: r.Rate,
			Rounds: len(r.Rounds), Calls: r.Calls, Holds: r.Holds,
			Latency: []verifyLatencyJSON{}, Versions: []verifyVersionJSON{},
		}
		for _, f := range r.Failures {
			j.Failures += f.Count
		}
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		for _, k := range r.Kinds {
			j.Latency = append(j.Latency, verifyLatencyJSON{
				k.Name, k.Count, ms(k.Quantile(0.5)), ms(k.Quantile(0.99)), ms(k.Most),
			})
		}
		for _, version := range r.Versions {
			j.Versions = append(j.Versions, verifyVersionJSON(version))
		}
		return v.App.JSON(j)
	}
	if err := v.App.Printf("%s: %s of counters and %s of a lock in %s\n", verdict, command.Plural(r.Calls, "call"),
		command.Plural(r.Holds, "hold"), command.Plural(len(r.Rounds), "round")); err != nil {
		return err
	}
	for _, line := range verify.Contradictions(r) {
		if err := v.App.Printf("  %s\n", line); err != nil {
			return err
		}
	}
	for _, k := range r.Kinds {
		if err := v.App.Printf("  %-8s %6d  p50 %v  p99 %v  max %v\n", k.Name, k.Count,
			k.Quantile(0.5).Round(time.Microsecond), k.Quantile(0.99).Round(time.Microsecond),
			k.Most.Round(time.Microsecond)); err != nil {
			return err
		}
	}
	for _, f := range r.Failures {
		if err := v.App.Printf("  failed: %s %s, at first: %s\n", f.What, command.Plural(f.Count, "time"),
			f.First); err != nil {
			return err
		}
	}
	return nil
}
