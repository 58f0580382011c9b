package dashboard

// An ensemble for tests: what the source of a dashboard tells is made here.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// world is what a source tells. Its fields are set before the first request.
type world struct {
	lines     map[string][]lock.Contender
	queues    map[string]ensemble.Queue
	items     map[string]ensemble.Item // by id
	deadlocks []lock.FoundDeadlock
	sessions  []ensemble.Session
	lacks     []string
	servers   []ensemble.Server
	records   []lock.Record
	findings  []ensemble.Finding
	nodes     map[string]ensemble.Node
	start     time.Time

	letters chan int // how many dead letters are moved at a time; nil for all at once

	mu      sync.Mutex // guards the fields below
	asked   map[string]int
	revoked []string
	changed []string // of queues
}

func (w *world) ask(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == nil {
		w.asked = make(map[string]int)
	}
	w.asked[what]++
}

// asks returns how often the source was asked.
func (w *world) asks() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.asked {
		n += k
	}
	return n
}

var errNotThere = errors.New("not there")

func (w *world) source() ensemble.Source {
	return ensemble.Source{
		Next: func(ctx context.Context, _ *survey.Snapshot, _ []string) (*survey.Snapshot, error) {
			<-ctx.Done() // snapshots are set by tests
			return nil, context.Cause(ctx)
		},
		Owner: func(c lock.Contender) string {
			if c.Known {
				return fmt.Sprintf("%s pid %d", c.Owner.Host, c.Owner.PID)
			}
			return string(c.Data)
		},
		Line: func(_ context.Context, path string) ([]lock.Contender, error) {
			w.ask("line")
			return w.lines[path], nil
		},
		Records: func(context.Context, string) ([]lock.Record, error) { return w.records, nil },
		Deadlocks: func(context.Context) ([]lock.FoundDeadlock, error) {
			w.ask("deadlocks")
			return w.deadlocks, nil
		},
		Queue: func(_ context.Context, path string, consumers int, before ensemble.Rates) (ensemble.Queue, error) {
			w.ask("queue")
			q, ok := w.queues[path]
			q.Rates.In += before.Out // so that a page tells what was known before
			if q.Oldest > 0 {
				q.Oldest += time.Since(w.start)
			}
			if !ok {
				return q, errNotThere
			}
			q.Busiest = q.Busiest[:min(len(q.Busiest), consumers)]
			return q, nil
		},
		Items: func(_ context.Context, path, state string, most int) (list []ensemble.Item, err error) {
			n := map[string]int{"ready": w.queues[path].Ready, "dead": w.queues[path].Dead}[state]
			for i := range min(most, n) {
				item := ensemble.Item{ID: fmt.Sprint("item", i), State: state, Reason: path + " failed", Died: w.start}
				list = append(list, item)
			}
			for _, x := range w.items {
				if x.State == state && len(list) < most {
					list = append(list, x)
				}
			}
			return list, nil
		},
		Item: func(_ context.Context, path, state, id string, data bool) (ensemble.Item, error) {
			w.ask("item")
			i, ok := w.items[id]
			if !ok {
				return i, ensemble.ErrNotFound
			}
			if !data {
				i.Headers, i.Body = nil, nil
			}
			return i, nil
		},
		Node: func(_ context.Context, path string, data bool) (ensemble.Node, error) {
			w.ask("node")
			n, ok := w.nodes[path]
			if !ok {
				return n, zk.NoNode
			}
			if !data {
				n.Data = nil
			}
			return n, nil
		},
		Sessions: func(context.Context) ([]ensemble.Session, []string) {
			w.ask("sessions")
			return w.sessions, w.lacks
		},
		Servers: func(context.Context) []ensemble.Server {
			w.ask("servers")
			return w.servers
		},
		Findings: func(context.Context) ([]ensemble.Finding, error) {
			w.ask("findings")
			return w.findings, nil
		},
		Revoke: func(
			_ context.Context, path string, holders map[string]lock.Token, reason string, force bool,
		) (string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.revoked = append(w.revoked, fmt.Sprint(path, holders, reason, force))
			return "it has released it", nil
		},
		Pause: func(_ context.Context, path string, pause bool, reason string) error {
			return w.change(fmt.Sprint(path, pause, reason))
		},
		Letters: func(ctx context.Context, path string, remove bool, most int, tell func(n int)) error {
			for done := 0; w.letters != nil && done < most; {
				select {
				case n := <-w.letters:
					tell(n)
					done += n
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return w.change(fmt.Sprint(path, remove, most))
		},
	}
}

func (w *world) change(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed = append(w.changed, what); strings.Contains(what, "fails") {
		return errNotThere
	}
	return nil
}

// add adds a lock: the first of these holds it, the others wait.
func (w *world) add(s *survey.Snapshot, path string, kind survey.Kind, who ...string) {
	if w.lines == nil {
		w.lines = make(map[string][]lock.Contender)
	}
	e := survey.Entry{Path: path, Kind: kind, Layout: "curator"}
	e.Groups = 1
	for i, name := range who {
		c := lock.Contender{
			Path: fmt.Sprintf("%s/%d", path, i), Holder: i == 0, Data: []byte(name), Token: lock.Token(i + 1),
			Session: int64(0x100 + len(w.lines)*10 + i), Since: time.Now().Add(-time.Duration(90-i) * time.Second),
		}
		if kind == survey.Election {
			c.Kind = lock.Candidate
		}
		w.lines[path] = append(w.lines[path], c)
	}
	if len(who) > 0 {
		e.Holders, e.Holding, e.Waiting = w.lines[path][:1], 1, len(who)-1
	}
	if len(who) > 1 {
		e.First = &w.lines[path][1]
	}
	s.Entries = append(s.Entries, e)
	slices.SortFunc(s.Entries, func(a, b survey.Entry) int { return strings.Compare(a.Path, b.Path) })
}

// ordinary is an ensemble in which there is one of everything, and its snapshot.
func ordinary() (*world, *survey.Snapshot) {
	w := &world{
		start: time.Now(),
		queues: map[string]ensemble.Queue{
			"/queues/mail": {
				Ready: 7, Waiting: 3, Delayed: 2, Claimed: 1, Dead: 60, Oldest: time.Minute, Paused: "ops pid 4: quiet",
				Rates:     ensemble.Rates{Known: true, In: 12, Out: 0.42},
				Consumers: 3, Busiest: []ensemble.Consumer{
					{ID: "ab", Who: "worker0 pid 1", Session: "0x9", Since: time.Now(), Claimed: 1},
				},
			},
		},
		items: map[string]ensemble.Item{"item7": {
			ID: "item7", State: "dead", Attempts: 20, Priority: 5, Bytes: 2000, Put: time.Now(), Died: time.Now(),
			Reason: "20 attempts failed", Group: "customer-7", Timeout: 30 * time.Second,
			Failures: []ensemble.Failure{{At: time.Now(), Reason: "the first"}, {At: time.Now(), Reason: "the last"}},
			Headed:   3, Headers: []ensemble.Header{{Name: "traceparent", Value: "00-1"}},
			Body: []byte("to: <ann>\nhidden\x1b"),
		}},
		sessions: []ensemble.Session{{ID: 0x77, Address: "10.0.0.7:1234", Timeout: 10 * time.Second, Ephemerals: 3}},
		lacks:    []string{"cons is not told"},
		servers: []ensemble.Server{
			{Address: "zk1:2181", Mode: "leader", Version: "3.9.5", Latency: "0.20 ms", Zxid: 1<<32 + 9, Watches: 4},
			{Address: "zk2:2181", Mode: "follower", Zxid: 1<<32 + 2, Watches: -1},
			{Address: "zk3:2181", Err: errors.New("connection refused")},
		},
		findings: []ensemble.Finding{{Text: "too short a tick", Remedy: "set another one", Error: true}},
		records:  []lock.Record{{Request: lock.Revocation{Reason: "stuck since noon"}, Over: true}},
		nodes: map[string]ensemble.Node{"/app": {
			Stat: zk.Stat{NumChildren: 3, DataLength: 6, Version: 4, Ctime: 1, Mtime: 2}, Data: []byte("secret"),
			ACL:      zk.OpenACL(),
			Children: []ensemble.Child{{Name: "<b>"}, {Name: "one", Stat: zk.Stat{DataLength: 7, EphemeralOwner: 9}}},
		}},
	}
	step := func(path, host string) lock.DeadlockStep {
		return lock.DeadlockStep{Path: path, Owner: lock.Owner{Host: host, PID: 5}, Since: time.Now()}
	}
	w.deadlocks = []lock.FoundDeadlock{
		{Steps: []lock.DeadlockStep{step("/a/one", "red"), step("/a/two", "blue")}, Confirmed: true},
		{Steps: []lock.DeadlockStep{step("/b/one", "green"), step("/b/two", "grey"), step("/b/three", "black")}},
	}
	s := &survey.Snapshot{Mode: survey.Live, Listed: 20, Server: "zk1:2181"}
	w.add(s, "/jobs/report", survey.Lock, "ann", "bob", "cid")
	w.add(s, "/jobs/alone", survey.Lock, "dan")
	w.add(s, "/leaders/main", survey.Election, "eve", "fay")
	s.Entries = append(s.Entries, survey.Entry{Path: "/queues/mail", Kind: survey.Queue})
	s.Entries = append(s.Entries, survey.Entry{Path: "/queues/old", Kind: survey.ClassicQueue})
	return w, s
}

// board returns a dashboard that shows a snapshot.
func board(tb testing.TB, w *world, s *survey.Snapshot, cfg Config) *Dashboard {
	tb.Helper()
	cfg.Ensemble, cfg.Audit = "zk1:2181,zk2:2181", tb.Logf
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	d := New(context.WithoutCancel(tb.Context()), w.source(), cfg)
	d.collector.findings.late = false
	tb.Cleanup(func() {
		d.stop()
		d.collector.close()
	})
	if s != nil {
		d.collector.take(s, time.Now())
	}
	return d
}

// ask asks a dashboard for a page. Headers are names and values.
func ask(d *Dashboard, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = "localhost"
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

func get(d *Dashboard, path string, headers ...string) *httptest.ResponseRecorder {
	return ask(d, http.MethodGet, path, "", headers...)
}

// allPages are the addresses of all pages of what is in an ordinary world.
var allPages = []string{
	"/", "/?span=day", "/locks", "/lock?path=/jobs/report", "/waits", "/leaders", "/queues", "/queue?path=/queues/mail",
	"/items?path=/queues/mail", "/items?path=/queues/mail&kind=dead", "/item?path=/queues/mail&state=dead&id=item7",
	"/sessions", "/servers", "/tree", "/lock?path=/gone", "/queue?path=/gone", "/nothing",
	"/changequeue?path=/queues/mail&do=purge", "/revoke?path=/jobs/report&node=/jobs/report/0&token=1",
}
