package cli

// turnstile exporter.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/exposition"
	"github.com/seed-a3166700/turnstile/internal/fold"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// exportingJSON is what "turnstile exporter --json" prints when it is ready.
type exportingJSON struct {
	URL string `json:"url"`
}

// exporter is a call of turnstile exporter.
type exporter struct {
	command.Access

	listen  string
	readFor command.Period
}

func newExporter(app *command.App) *cobra.Command {
	e := &exporter{Access: command.Access{App: app, Path: "/"}, readFor: command.Period(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "exporter [flags] [PATH]",
		Short: "Serve metrics of all locks and queues to Prometheus",
		Long: `Serves what "turnstile locks" shows, as numbers for Prometheus: how many locks, elections and semaphores
there are at PATH and below it, how many wait, and for how long the first of them has waited. It also counts the
items of Turnstile's queues there, and all deadlocks that "turnstile deadlocks" lists. Run one for an ensemble, or
sums count everything twice.

UUIDs, long hexadecimal numbers and other numbers in paths become *. Of more than 200 such names those with the
longest waits are shown, and the others are one, "other". However often it is asked, locks cost the servers as
much as one "turnstile locks --watch". Queues and deadlocks are read when it is asked, at most once a second and
for at most a quarter of the time.

It serves /metrics, /livez and /readyz (503 while no server is connected), until a signal comes.

It goes on while no server answers, and says so after --connect-timeout.

Exit codes: 0 a signal ended it; 64 usage; 69 it cannot listen, or start this user's own server; 70 the server
cannot be used; 77 access denied.`,
		Example: `  turnstile exporter --connect zk1:2181,zk2:2181,zk3:2181 --listen 127.0.0.1:9181`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef(cmd, "only one PATH can be given; everything below it counts")
			case len(args) == 1:
				if err := e.ParsePath(cmd, args, "/jobs"); err != nil {
					return err
				}
			}
			if _, _, err := net.SplitHostPort(e.listen); err != nil {
				return command.Usagef(cmd, "--listen must be host:port: %q", e.listen)
			}
			return command.ServeUntilSignal(cmd.Context(), func(ctx context.Context) error {
				return e.Serve(ctx, e.serve)
			})
		},
	}
	flags := cmd.Flags()
	e.Flags(cmd, "one JSON object when it is ready")
	flags.StringVar(&e.listen, "listen", "127.0.0.1:9181", "`address` to serve HTTP on")
	flags.Var(&e.readFor, "read-for", "stop a reading of everything after this time, and show what was found")
	command.VariablesOf("exporter", flags, "listen")
	return cmd
}

// Limits of the HTTP server.
const (
	exporterHeader = 8 << 10
	exporterConns  = 128
	exporterTime   = 10 * time.Second
	firstReading   = 5 * time.Second       // so long a request waits for it
	noReading      = 10 * time.Millisecond // and so long if no server answers, which is enough for one that there is
)

// serve serves until ctx ends.
func (e *exporter) serve(ctx context.Context, client *zk.Client) error {
	s, err := survey.Follow(ctx, client, survey.FollowConfig{
		Config: survey.Config{Root: e.Path, Time: time.Duration(e.readFor)},
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", e.listen)
	if err != nil {
		return &command.Error{Code: command.ExitNoServer, Err: err}
	}
	web := &http.Server{
		Handler: e.handler(s, newTallies(ctx, client), client.LastError), MaxHeaderBytes: exporterHeader,
		ReadTimeout: exporterTime, WriteTimeout: exporterTime, IdleTimeout: exporterTime,
	}
	url := "http://" + l.Addr().String() + "/metrics"
	if err := e.App.ReportLine(e.AsJSON, exportingJSON{URL: url}, "serving %s", url); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel(nil)
	following.Go(func() {
		answering, stop := e.Connection.Answering(ctx)
		defer stop()
		if _, err := client.Session(answering); errors.Is(err, command.ErrNoAnswer) { // it goes on, and up is 0
			e.App.Complain("%v", e.Connection.NoServer(client.LastError()))
		}
	})
	following.Go(func() { // until there will be no other snapshot: or the last one would be shown for ever
		var last *survey.Snapshot
		var err error
		for err == nil {
			last, err = s.Next(ctx, last, nil)
		}
		cancel(err)
	})
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	if err := web.Serve(command.Limited(l, exporterConns)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// handler serves what the survey shows. lastError says why there is no connection.
func (e *exporter) handler(s *survey.Survey, t *tallies, lastError func() error) http.Handler {
	mux := http.NewServeMux()
	plain := func(w http.ResponseWriter, status int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text + "\n")) // fails if the client has gone
	}
	latest := func(r *http.Request) (*survey.Snapshot, error) {
		limit := firstReading
		if err := lastError(); err != nil && !errors.Is(err, zk.ErrNotConnected) { // which is: not yet
			limit = noReading
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		return s.Next(ctx, nil, nil)
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		switch last, err := latest(r); {
		case err != nil:
			plain(w, http.StatusServiceUnavailable, "nothing has been read yet")
		case last.Mode == survey.Cut:
			plain(w, http.StatusServiceUnavailable, "no server is connected")
		default:
			plain(w, http.StatusOK, "ok")
		}
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		last, err := latest(r)
		if err != nil {
			last = &survey.Snapshot{Mode: survey.Cut}
		}
		w.Header().Set("Content-Type", exposition.ContentType)
		_, _ = w.Write(ensembleMetrics(last, t.of(r.Context(), last), time.Now())) // fails if the client has gone
	})
	return mux
}

const (
	maxShownNames = 200
	otherNames    = "other"
)

// lockMetrics are the numbers of the locks whose paths have one name.
type lockMetrics struct {
	waiting int
	longest time.Duration
	left    int // sequence numbers; -1 if nothing counts
}

// add counts other locks in.
func (m *lockMetrics) add(other *lockMetrics) {
	m.waiting += other.waiting
	m.longest = max(m.longest, other.longest)
	if other.left >= 0 && (m.left < 0 || other.left < m.left) {
		m.left = other.left
	}
}

// compare orders those with the longest waits first.
func (m *lockMetrics) compare(other *lockMetrics) int {
	return cmp.Or(cmp.Compare(other.longest, m.longest), cmp.Compare(other.waiting, m.waiting))
}

// ensembleMetrics returns the text for Prometheus. Of a survey that shows what was, the numbers are left out: they
// would look like those of now.
func ensembleMetrics(s *survey.Snapshot, t tally, now time.Time) []byte {
	var x exposition.Text
	if s.Mode == survey.Cut {
		x.Gauge("turnstile_ensemble_up", 0)
		return x.Bytes()
	}
	x.Gauge("turnstile_ensemble_up", 1)
	age := 0.0 // what the servers tell of is there at once
	if s.Mode == survey.Sampled {
		age = now.Sub(s.Asked).Seconds()
	}
	x.Gauge("turnstile_ensemble_age_seconds", age)
	x.Gauge("turnstile_ensemble_nodes_listed", s.Listed)
	x.Gauge("turnstile_ensemble_paths_denied", s.Denied.Count)
	partial := 0
	if s.Partial != "" {
		partial = 1
	}
	x.Gauge("turnstile_ensemble_partial", partial)

	counts := map[string]int{"lock": 0, "election": 0, "permits": 0}
	byName := make(map[string]*lockMetrics)
	for _, e := range s.Entries {
		if e.Holding+e.Waiting == 0 {
			continue
		}
		for kind := range counts {
			if slices.Contains(kinds[kind], e.Kind) {
				counts[kind]++
			}
		}
		one := lockMetrics{waiting: e.Waiting, longest: longest(e, now), left: -1}
		if e.Numbers.Path != "" {
			one.left = e.Numbers.Left
		}
		count(byName, e.Path, &one)
	}
	exposition.Set(&x, "turnstile_ensemble_locks", exposition.Gauge, "kind", counts)
	waiting, waits, left := make(map[string]int), make(map[string]float64), make(map[string]int)
	for name, m := range few(byName) {
		waiting[name], waits[name] = m.waiting, m.longest.Seconds()
		if m.left >= 0 {
			left[name] = m.left
		}
	}
	exposition.Set(&x, "turnstile_ensemble_lock_waiters", exposition.Gauge, "lock", waiting)
	exposition.Set(&x, "turnstile_ensemble_lock_longest_wait_seconds", exposition.Gauge, "lock", waits)
	exposition.Set(&x, "turnstile_ensemble_sequence_numbers_left", exposition.Gauge, "lock", left)
	t.write(&x, now)
	return x.Bytes()
}

// numbers are what is shown of paths with one name.
type numbers[M any] interface {
	add(other M)
	compare(other M) int // negative if it is rather to be shown than other
}

// count adds the numbers of a path to those of its name.
func count[M numbers[M]](byName map[string]M, path string, one M) {
	name := strings.ToValidUTF8(fold.Path(path), "\ufffd")
	if known, ok := byName[name]; ok {
		known.add(one)
	} else {
		byName[name] = one
	}
}

// few returns the numbers of the names that are shown: of many, the first ones, and those of the others as one.
func few[M numbers[M]](byName map[string]M) map[string]M {
	if len(byName) <= maxShownNames {
		return byName
	}
	shown := make(map[string]M, maxShownNames)
	for i, name := range slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(byName[a].compare(byName[b]), strings.Compare(a, b))
	}) {
		switch {
		case i < maxShownNames-1:
			shown[name] = byName[name]
		case i == maxShownNames-1:
			shown[otherNames] = byName[name]
		default:
			shown[otherNames].add(byName[name])
		}
	}
	return shown
}
