package dashboard

// The pages overview, locks, leaders.

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// A lockRow is a lock in a list.
type lockRow struct {
	Lock    link
	Kind    string
	Holder  string
	More    int      // that hold it, too
	Marks   []string // what is odd about it
	Held    when
	Waiting int
	Longest when
	Bar     int // of 100: its longest wait, in parts of the longest
	Term    lock.Token
	Changes int
}

// row returns an entry as a list shows it. The caller holds the collector's mutex.
func (p *page) row(e survey.Entry) lockRow {
	r := lockRow{
		Lock: p.lockLink(e.Path), Kind: ensemble.KindWord(e), Waiting: e.Waiting,
		Held: p.ago(p.collector.past.Since(e)),
	}
	if past := p.collector.past[e.Path]; past != nil {
		r.Changes = past.Changes
	}
	if e.First != nil {
		r.Longest = p.waited(e.First.Since)
	}
	if len(e.Holders) > 0 {
		r.Holder, r.More, r.Term = p.who(e.Holders[0]), e.Holding-1, e.Holders[0].Token
		r.Marks = p.marks(e)
	}
	return r
}

// marks says what is odd about an entry.
func (p *page) marks(e survey.Entry) (marks []string) {
	if e.MayBeApart() {
		marks = append(marks, "not exclusive")
	}
	if slices.ContainsFunc(e.Holders, func(c lock.Contender) bool { return c.Revoked != nil }) {
		marks = append(marks, "asked to release")
	}
	if len(p.snapshot.WaitsAt(e)) > 0 {
		marks = append(marks, "waits elsewhere")
	}
	if e.Numbers.Low {
		marks = append(marks, "few numbers left")
	}
	return marks
}

// contended returns the locks that are held or waited for.
func (p *page) contended(fits func(survey.Entry) bool) []survey.Entry {
	var list []survey.Entry
	for _, e := range p.snapshot.Entries {
		if e.Holding+e.Waiting > 0 && e.Kind.Contended() && fits(e) {
			list = append(list, e)
		}
	}
	return list
}

// waitedFor reports whether a lock has waiters.
func waitedFor(e *survey.Entry) bool { return e.Waiting > 0 && e.Kind.Contended() }

// first returns the first n of those in a list that fit, in an order, without putting the others in order: each viewer
// of the overview asks for a few of all locks.
func first[E any](list []E, n int, fits func(*E) bool, order func(a, b E) int) []E {
	var top []E
	for i := range list {
		if !fits(&list[i]) || len(top) == n && order(list[i], top[n-1]) >= 0 {
			continue
		}
		at := slices.IndexFunc(top, func(e E) bool { return order(list[i], e) < 0 }) // behind its equals
		if at < 0 {
			at = len(top)
		}
		top = slices.Insert(top, at, list[i])
		top = top[:min(len(top), n)]
	}
	return top
}

// matches reports whether an entry has the filter's text in its path or its holder.
func (p *page) matches(q query, e survey.Entry) bool {
	if q.Filter == "" || strings.Contains(command.Printable(e.Path), q.Filter) {
		return true
	}
	return slices.ContainsFunc(e.Holders, func(c lock.Contender) bool {
		return strings.Contains(command.Printable(p.source.Owner(c)), q.Filter)
	})
}

// wait orders entries by the longest wait.
func (p *page) wait(a, b survey.Entry) int {
	return cmp.Or(
		cmp.Compare(ensemble.Longest(b, p.now), ensemble.Longest(a, p.now)), cmp.Compare(b.Waiting, a.Waiting),
	)
}

// since orders entries by since when they are held, those that are not last.
func (p *page) since(a, b survey.Entry) int {
	one, two := p.collector.past.Since(a), p.collector.past.Since(b)
	if one.IsZero() || two.IsZero() {
		return two.Compare(one)
	}
	return one.Compare(two)
}

type locksBody struct {
	query
	rows

	Columns []column
	Kinds   []kindChoice
	Locks   []lockRow
}

type kindChoice struct {
	Word, Name string
	Here       bool
}

func (d *Dashboard) locksPage(r *http.Request) *page {
	p := d.newPage(r, "locks", "Locks")
	words := []string{"", "lock", "election", "permits", "shared"}
	q := newQuery(r.URL, []string{"wait", "waiters", "since", "path"}, words)
	b := locksBody{query: q}
	for i, name := range []string{"All kinds", "Locks", "Elections", "Permits", "Shared locks"} {
		b.Kinds = append(b.Kinds, kindChoice{words[i], name, words[i] == q.Kind})
	}
	list := p.contended(func(e survey.Entry) bool {
		return (q.Kind == "" || ensemble.KindWord(e) == q.Kind) && p.matches(q, e)
	})
	d.collector.mu.Lock()
	defer d.collector.mu.Unlock()
	slices.SortStableFunc(list, func(a, b survey.Entry) int { // they come by path
		switch q.Sort {
		case "wait":
			return p.wait(a, b)
		case "waiters":
			return cmp.Compare(b.Waiting, a.Waiting)
		case "since":
			return p.since(a, b)
		}
		return 0
	})
	b.Locks, b.rows = p.listed(q, "locks", list)
	b.Columns = []column{
		q.orderedBy("locks", "Lock", "path", ""),
		{Name: "Holder", Class: "wide"},
		q.orderedBy("locks", "Held for", "since", "n wide"), q.orderedBy("locks", "Waiting", "waiters", "n"),
		q.orderedBy("locks", "Longest wait", "wait", "n"),
	}
	p.Body = b
	return p
}

// listed returns the rows of those of the list that the page shows, and says which these are. The caller holds the
// collector's mutex.
func (p *page) listed(q query, name string, list []survey.Entry) (shown []lockRow, more rows) {
	n, more := q.shownOf(name, len(list))
	for _, e := range list[:n] {
		shown = append(shown, p.row(e))
	}
	p.Looked(list[:n])
	return shown, more
}

// Looked says which entries are shown. The caller holds the collector's mutex.
func (p *page) Looked(list []survey.Entry) {
	for _, e := range list {
		if _, ok := p.collector.looked[e.Path]; ok || len(p.collector.looked) < maxLooked {
			p.collector.looked[e.Path] = p.now
		}
	}
}

type leadersBody struct {
	query
	rows

	Columns []column
	Leaders []lockRow
}

func (d *Dashboard) leadersPage(r *http.Request) *page {
	p := d.newPage(r, "leaders", "Leaders")
	q := newQuery(r.URL, []string{"path", "since", "changes"}, nil)
	b := leadersBody{query: q}
	list := p.contended(func(e survey.Entry) bool { return ensemble.IsElection(e) && p.matches(q, e) })
	d.collector.mu.Lock()
	defer d.collector.mu.Unlock()
	changes := func(e survey.Entry) int {
		if past := d.collector.past[e.Path]; past != nil {
			return past.Changes
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		switch q.Sort {
		case "since":
			return p.since(b, a)
		case "changes":
			return cmp.Compare(changes(b), changes(a))
		}
		return 0
	})
	b.Leaders, b.rows = p.listed(q, "leaders", list)
	b.Columns = []column{
		q.orderedBy("leaders", "Election", "path", ""),
		{Name: "Leader", Class: "wide"},
		q.orderedBy("leaders", "Leads for", "since", "n"),
		{Name: "Term", Class: "n wide"},
		{Name: "Candidates", Class: "n"},
		q.orderedBy("leaders", "Changes", "changes", "n wide"),
	}
	p.Body = b
	return p
}

type overviewBody struct {
	Held, Waiting                      int
	Longest                            when
	Confirmed, Maybe                   int
	DeadlocksKnown                     bool
	HeldOver, WaitingOver, LongestOver spark
	Day                                bool
	Rows                               []lockRow
	More                               int
	Kinds                              []kindCount
	Servers                            []serverRow
	ServersKnown                       bool
	Queues                             []queueRow
	QueuesMore                         int
	Changes                            []changeRow
	Circles                            []circle
	Findings                           []ensemble.Finding
	FindingsMore                       int
	FindingsError                      string
	Examined                           when
}

// maxFindings is how many of them the overview shows.
const maxFindings = 6

type kindCount struct {
	Name, Href string
	N          int
}

// A changeRow is that a lock has another holder.
type changeRow struct {
	Lock     link
	At       when
	From, To string
}

func (p *page) change(c ensemble.Change) changeRow {
	r := changeRow{Lock: p.lockLink(c.Path), At: p.ago(c.At)}
	if c.From != "" {
		r.From = clean(c.From)
	}
	if c.To != "" {
		r.To = clean(c.To)
	}
	return r
}

func (d *Dashboard) overviewPage(r *http.Request) *page {
	p := d.newPage(r, "overview", "Overview")
	f := p.facts
	b := overviewBody{
		Held: f.held, Waiting: f.waiting, Longest: p.waited(f.first), Day: r.URL.Query().Get("span") == "day",
	}
	deadlocks, at := d.collector.deadlocks.get(p.ctx, d.collector)
	b.DeadlocksKnown = !at.IsZero() && deadlocks.err == nil
	for _, found := range deadlocks.list {
		if found.Confirmed {
			b.Confirmed++
			if len(b.Circles) < 2 {
				b.Circles = append(b.Circles, p.newCircle(found))
			}
		} else {
			b.Maybe++
		}
	}
	findings, at := d.collector.findings.get(p.ctx, d.collector)
	b.Examined = p.ago(at)
	if findings.err != nil {
		b.FindingsError = clean(command.OneLine(findings.err))
	}
	for _, f := range findings.list[:min(len(findings.list), maxFindings)] {
		b.Findings = append(b.Findings, ensemble.Finding{Error: f.Error, Text: clean(f.Text), Remedy: clean(f.Remedy)})
	}
	b.FindingsMore = len(findings.list) - len(b.Findings)
	b.Servers, b.ServersKnown = p.servers()
	b.Queues, b.QueuesMore = p.queues(query{Sort: "ready", Limit: 5})
	const most = 8
	shown := first(p.snapshot.Entries, most, waitedFor, p.wait)
	b.More = -len(shown)
	for i := range p.snapshot.Entries {
		if waitedFor(&p.snapshot.Entries[i]) {
			b.More++
		}
	}
	d.collector.mu.Lock()
	defer d.collector.mu.Unlock()
	for _, e := range shown {
		row := p.row(e)
		if all := ensemble.Longest(shown[0], p.now); all > 0 && e.First != nil {
			// Of times that only move on together: the part of the longest is nearly the same all the time.
			row.Bar = max(1, int(100*ensemble.Longest(e, p.now)/all))
		}
		b.Rows = append(b.Rows, row)
	}
	p.Looked(shown)
	for _, c := range d.collector.recent[:min(len(d.collector.recent), most)] {
		b.Changes = append(b.Changes, p.change(c))
	}
	h := d.collector.series
	over := func(label string, ring *ring, text func(uint32) string) spark {
		return newSpark(label, ring.last(h.second, sparkSteps, b.Day), text)
	}
	b.HeldOver = over("Locks held", h.held, plain32)
	b.WaitingOver = over("Waiting", h.waiting, plain32)
	b.LongestOver = over("Longest wait", h.longest, seconds32)
	b.Kinds = []kindCount{
		{"Locks", "locks?kind=lock", f.locks},
		{"Elections", "leaders", f.elections},
		{"Semaphores", "locks?kind=permits", f.permits},
		{"Queues", "queues", f.queues},
	}
	p.Body = b
	return p
}
