package dashboard

// The pages waits, queues, sessions, servers.

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

type waitsBody struct {
	rows

	Known   bool
	Error   string
	Read    when
	Circles []circle
	Roots   []*waitRow
	Left    int // locks for which somebody waits and that are not looked at
}

// A waitRow is a session in the tree of waits.
type waitRow struct {
	Who      string
	Lock     link
	For      when
	Blocked  int
	Circle   bool // it begins nowhere
	Children []*waitRow
	More     int // children that are not shown
}

const (
	maxBelow = 30 // children of one
	maxDepth = 12
)

func (d *Dashboard) waitsPage(r *http.Request) *page {
	p := d.newPage(r, "waits", "Waits")
	lines, at := d.collector.waiting.get(p.ctx, d.collector)
	read, _ := d.collector.deadlocks.get(p.ctx, d.collector)
	b := waitsBody{Known: !at.IsZero()}
	if read.err != nil {
		b.Error = clean(command.OneLine(read.err))
	}
	for _, confirmed := range []bool{true, false} {
		for _, found := range read.list {
			if found.Confirmed == confirmed && len(b.Circles) < 20 {
				b.Circles = append(b.Circles, p.newCircle(found))
			}
		}
	}
	for _, e := range p.snapshot.Entries {
		if _, ok := lines[e.Path]; !ok && b.Known && e.Kind.Contended() && e.Waiting > 0 {
			b.Left++
		}
	}
	roots, circles := ensemble.Waits(p.snapshot, lines, p.source.Owner)
	all := slices.Concat(circles, roots)
	left := maxRows
	for i, w := range all {
		if i == firstRows || left <= 0 {
			b.More = len(all) - i
			break
		}
		row := p.waitRow(w, 0, &left)
		row.Circle = i < len(circles)
		b.Roots = append(b.Roots, row)
	}
	b.All = len(all)
	p.Body = b
	return p
}

func (p *page) waitRow(w *ensemble.Wait, depth int, left *int) *waitRow {
	*left--
	r := &waitRow{Who: clean(w.Who), Lock: p.lockLink(w.Path), For: p.waited(w.Since), Blocked: w.Blocked}
	if depth == 0 {
		r.For = p.ago(w.Since)
	}
	for i, child := range w.Children {
		if i == maxBelow || depth == maxDepth || *left <= 0 {
			r.More = len(w.Children) - i
			break
		}
		r.Children = append(r.Children, p.waitRow(child, depth+1, left))
	}
	return r
}

// A queueRow is a queue in a list.
type queueRow struct {
	Queue                         link
	Known, Classic                bool
	Ready, Delayed, Claimed, Dead int
	Waiting                       int // behind others of their group
	Oldest                        when
	In, Out                       string // a second; empty if not known
	Paused                        bool
}

// rates sets how many items come and go a second.
func (r *queueRow) rates(of ensemble.Rates) {
	if of.Known {
		r.In, r.Out = ensemble.Rate(of.In), ensemble.Rate(of.Out)
	}
}

type queuesBody struct {
	query
	rows

	Columns   []column
	Queues    []queueRow
	Uncounted int
}

// queues returns the first queues in an order, and how many there are besides.
func (p *page) queues(q query) (list []queueRow, more int) {
	if p.facts.queues == 0 {
		return nil, 0
	}
	counts, at := p.collector.queues.get(p.ctx, p.collector)
	var found []survey.Entry
	for _, e := range p.snapshot.Entries {
		if ensemble.IsQueue(e) && p.matches(q, e) {
			found = append(found, e)
		}
	}
	ensemble.SortQueues(found, counts, q.Sort)
	for _, e := range found[:min(len(found), q.Limit)] {
		row := queueRow{Queue: linkTo("queue", e.Path), Classic: e.Kind == survey.ClassicQueue}
		if n, ok := counts[e.Path]; ok {
			row.Known, row.Ready, row.Delayed, row.Claimed, row.Dead = true, n.Ready, n.Delayed, n.Claimed, n.Dead
			row.Waiting, row.Paused = n.Waiting, n.Paused != ""
			row.rates(n.Rates)
			if n.Oldest > 0 {
				row.Oldest = p.ago(at.Add(-n.Oldest).Round(time.Second))
			}
		}
		list = append(list, row)
	}
	return list, len(found) - len(list)
}

func (d *Dashboard) queuesPage(r *http.Request) *page {
	p := d.newPage(r, "queues", "Queues")
	q := newQuery(r.URL, []string{"oldest", "ready", "dead", "path"}, nil)
	b := queuesBody{query: q}
	var more int
	b.Queues, more = p.queues(q)
	_, b.rows = q.shownOf("queues", len(b.Queues)+more)
	b.Uncounted = max(0, p.facts.queues-ensemble.MaxQueues)
	b.Columns = []column{
		q.orderedBy("queues", "Queue", "path", ""), q.orderedBy("queues", "Ready", "ready", "n"),
		{Name: "Waiting", Class: "n wide"},
		{Name: "Delayed", Class: "n wide"},
		{Name: "Claimed", Class: "n wide"},
		q.orderedBy("queues", "Dead", "dead", "n"),
		{Name: "In/s", Class: "n wide"},
		{Name: "Out/s", Class: "n wide"},
		q.orderedBy("queues", "Oldest", "oldest", "n roomy"),
	}
	p.Body = b
	return p
}

const (
	maxDead    = 50 // letters that are shown
	maxWorking = 50 // consumers that are shown
)

type queueBody struct {
	queueRow

	Sent   string // the path, for a form
	There  bool
	Read   bool // also if it has failed: then there is an Error, and nothing is Known
	Error  string
	Paused string
	Parts  []queuePart

	Working     []workingRow
	WorkingMore int
	Dead        []deadRow
	More        int

	Actions              []action
	Buttons, DeadButtons []button // of changes
}

// A queuePart is a state of items, drawn as a part of a bar.
type queuePart struct {
	Name     link // to its items
	Look     string
	N        int
	X, Width int // of stripWidth
}

type workingRow struct {
	ID, Who, Session string
	Since            when
	Claimed          int
}

type deadRow struct {
	Item     link
	Reason   string
	At       when
	Attempts int
}

func (d *Dashboard) queuePage(r *http.Request) *page {
	p := d.newPage(r, "queue", "Queue")
	path := r.URL.Query().Get("path")
	b := queueBody{queueRow: queueRow{Queue: linkTo("queue", path)}, Sent: sent(path)}
	p.Title = b.Queue.Text
	b.Actions = d.changes.of(p, path, 10)
	e, ok := p.snapshot.Entry(path)
	b.There = ok && ensemble.IsQueue(e)
	b.Classic = e.Kind == survey.ClassicQueue
	if b.There && !b.Classic {
		read, at := d.collector.queue.get(p.ctx, d.collector, path)
		n := read.counts
		b.Read, b.Known = !at.IsZero(), !at.IsZero() && read.err == nil
		if read.err != nil {
			b.Error = clean(command.OneLine(read.err))
		}
		if n.Paused != "" {
			b.Paused = clean(n.Paused)
		}
		if n.Oldest > 0 {
			b.Oldest = p.ago(at.Add(-n.Oldest).Round(time.Second))
		}
		b.Parts = []queuePart{
			{Name: itemsLink(path, "Ready"), Look: "one", N: n.Ready},
			{Name: itemsLink(path, "Waiting"), Look: "three", N: n.Waiting},
			{Name: itemsLink(path, "Delayed"), Look: "two", N: n.Delayed},
			{Name: itemsLink(path, "Claimed"), Look: "good", N: n.Claimed},
			{Name: itemsLink(path, "Dead"), Look: "bad", N: n.Dead},
		}
		b.rates(n.Rates)
		all, x := max(1, n.Ready+n.Waiting+n.Delayed+n.Claimed+n.Dead), 0
		for i := range b.Parts {
			part := &b.Parts[i]
			part.X, part.Width = x, part.N*stripWidth/all
			if part.N > 0 {
				part.Width = max(part.Width, 3)
			}
			x += part.Width
		}
		for _, c := range n.Busiest {
			b.Working = append(b.Working, workingRow{clean(c.ID), clean(c.Who), c.Session, p.ago(c.Since), c.Claimed})
		}
		b.WorkingMore = max(0, n.Consumers-len(b.Working))
		if n.Dead > 0 {
			letters, _ := d.collector.items.get(p.ctx, d.collector, itemList{path, "dead"})
			if letters.err != nil && !errors.Is(letters.err, ensemble.ErrTooMany) { // there are more, as it says anyway
				b.Error = clean(command.OneLine(letters.err))
			}
			for _, dead := range letters.list[:min(len(letters.list), maxDead)] {
				b.Dead = append(b.Dead, deadRow{
					itemLink(path, dead), clean(dead.Reason), p.ago(dead.Died), dead.Attempts,
				})
			}
		}
		b.More = max(0, n.Dead-len(b.Dead))
		if b.Known {
			b.Buttons, b.DeadButtons = d.queueButtons(path, n)
		}
	}
	p.Body = b
	return p
}

type sessionsBody struct {
	query
	rows

	Known    bool
	Lacks    []string
	Sessions []sessionRow
}

type sessionRow struct {
	ID, Address, Server, Owner string
	Timeout                    string
	Heard, HeardLevel          string // before the servers were asked
	Nodes                      int
	Holds, Waits               []link
	HoldsMore, WaitsMore       int
}

func (d *Dashboard) sessionsPage(r *http.Request) *page {
	p := d.newPage(r, "sessions", "Sessions")
	q := newQuery(r.URL, nil, nil)
	b := sessionsBody{query: q}
	read, at := d.collector.sessions.get(p.ctx, d.collector)
	lines, _ := d.collector.crowd.get(p.ctx, d.collector)
	b.Known = !at.IsZero()
	for _, lack := range read.lacks[:min(len(read.lacks), 10)] {
		b.Lacks = append(b.Lacks, clean(lack))
	}
	type about struct {
		ensemble.Session

		owner        string
		holds, waits []string
	}
	known := make(map[int64]*about)
	for _, s := range read.list {
		known[s.ID] = &about{Session: s}
	}
	for _, path := range sortedKeys(lines) {
		for _, c := range lines[path].List {
			s := known[c.Session]
			if s == nil {
				s = &about{Session: ensemble.Session{ID: c.Session, Ephemerals: -1}}
				known[c.Session] = s
			}
			if s.owner == "" || c.Known {
				s.owner = p.source.Owner(c)
			}
			if c.Holder {
				s.holds = append(s.holds, path)
			} else {
				s.waits = append(s.waits, path)
			}
		}
	}
	var list []*about
	for _, s := range known {
		texts := slices.Concat([]string{command.SessionID(s.ID), s.Address, s.owner}, s.holds, s.waits)
		if q.Filter == "" || strings.Contains(command.Printable(strings.Join(texts, "\n")), q.Filter) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *about) int { // those that do something first
		busy := func(s *about) int { return min(len(s.waits), 1)*2 + min(len(s.holds), 1) }
		return cmp.Or(cmp.Compare(busy(b), busy(a)), cmp.Compare(uint64(a.ID), uint64(b.ID)))
	})
	var n int
	n, b.rows = q.shownOf("sessions", len(list))
	for _, s := range list[:n] {
		row := sessionRow{
			ID: command.SessionID(s.ID), Address: clean(s.Address), Server: clean(s.Server), Owner: clean(s.owner),
			Nodes: s.Ephemerals,
		}
		if !s.Answered.IsZero() {
			row.Heard = ensemble.Ago(at.Sub(s.Answered))
		}
		if s.Timeout > 0 {
			row.Timeout = s.Timeout.String()
			if !s.Answered.IsZero() && at.Sub(s.Answered) > s.Timeout*2/3 {
				row.HeardLevel = "warn"
			}
		}
		row.Holds, row.HoldsMore = p.lockLinks(s.holds)
		row.Waits, row.WaitsMore = p.lockLinks(s.waits)
		b.Sessions = append(b.Sessions, row)
	}
	p.Body = b
	return p
}

// lockLinks returns links to the first of some locks, and how many more there are.
func (p *page) lockLinks(paths []string) (list []link, more int) {
	paths = slices.Compact(paths)
	for _, path := range paths[:min(len(paths), 3)] {
		list = append(list, p.lockLink(path))
	}
	return list, len(paths) - len(list)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

type serversBody struct {
	Known   bool
	Servers []serverRow
}

type serverRow struct {
	Address, Mode, Latency, Version string
	Outstanding, Connections, Nodes int64
	Watches                         int64
	Lag, Error                      string
	LagLevel                        string
	Asked                           bool // the survey's last answer is from it
}

// servers returns the servers, and whether they have been asked.
func (p *page) servers() (list []serverRow, known bool) {
	servers, at := p.collector.servers.get(p.ctx, p.collector)
	var newest int64
	for _, s := range servers {
		newest = max(newest, s.Zxid)
	}
	for _, s := range servers[:min(len(servers), firstRows)] {
		row := serverRow{
			Address: clean(s.Address), Mode: clean(s.Mode), Latency: clean(s.Latency), Version: clean(s.Version),
			Outstanding: s.Outstanding, Connections: s.Connections, Nodes: s.Nodes, Watches: s.Watches,
			Asked: s.Address == p.snapshot.Server,
		}
		if s.Err != nil {
			row.Error = clean(command.OneLine(s.Err))
		} else if row.Lag = strconv.FormatInt(newest-s.Zxid, 10); newest>>32 != s.Zxid>>32 {
			row.Lag, row.LagLevel = "an epoch", "warn"
		}
		list = append(list, row)
	}
	return list, !at.IsZero()
}

func (d *Dashboard) serversPage(r *http.Request) *page {
	p := d.newPage(r, "servers", "Servers")
	var b serversBody
	b.Servers, b.Known = p.servers()
	p.Body = b
	return p
}
