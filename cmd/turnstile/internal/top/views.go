package top

// What each view shows.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

// A page is what a view shows now.
type page struct {
	columns []column
	rows    []row
	empty   string   // what to say if there are no rows
	top     []string // lines above the rows, clean
	sorted  string   // the column that orders it
}

// orders are the columns by which the views are ordered; the first one at the beginning.
var orders = map[view][]string{ //nolint:gochecknoglobals // a table
	viewLocks:   {"LONGEST", "WAITING", "HELD", "PATH"},
	viewLeaders: {"PATH", "LEADS", "CHANGES"},
	viewQueues:  {"OLDEST", "READY", "DEAD", "PATH"},
}

// wideScreen is how wide a screen is that shows everything.
const wideScreen = 100

func waitLook(d time.Duration) look {
	switch {
	case d >= ensemble.StuckWait:
		return bad
	case d >= ensemble.LongWait:
		return warn
	}
	return plain
}

// page returns what the view shows.
func (m *model) page() page {
	p := m.rowsOf()
	if names := orders[m.view]; len(names) > 0 {
		p.sorted = names[m.lists[m.view].order]
	}
	return p
}

func (m *model) rowsOf() page {
	switch m.view {
	case viewLocks:
		return m.locks()
	case viewWaits:
		return m.waits()
	case viewLeaders:
		return m.leaders()
	case viewQueues:
		return m.queuesPage()
	case viewSessions:
		return m.sessionsPage()
	case viewServers:
		return m.serversPage()
	case viewLock:
		return m.line()
	case viewHelp, views:
	}
	return page{}
}

func (m *model) snapshotEntry(path string) (survey.Entry, bool) {
	if m.snapshot == nil || path == "" {
		return survey.Entry{}, false
	}
	return m.snapshot.Entry(path)
}

// locks are all that is held or waited for.
func (m *model) locks() page {
	order := orders[viewLocks][m.lists[viewLocks].order]
	p := page{
		columns: []column{
			{name: "PATH", grow: 5, middle: true},
			{name: "KIND", width: 8, from: 64},
			{name: "HOLDER", grow: 4},
			{name: "HELD", width: 6, right: true, from: 50},
			{name: "WAITING", width: 7, right: true},
			{name: "LONGEST", width: 7, right: true},
		},
		empty: "Nothing is held, and nobody waits.",
	}
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if e.Holding+e.Waiting > 0 && e.Kind.Contended() {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		switch order {
		case "LONGEST":
			return cmp.Compare(ensemble.Longest(b, m.now), ensemble.Longest(a, m.now))
		case "WAITING":
			return cmp.Compare(b.Waiting, a.Waiting)
		case "HELD":
			return cmp.Compare(m.past.Held(b, m.now), m.past.Held(a, m.now))
		}
		return 0
	})
	for _, e := range list {
		wait := ensemble.Longest(e, m.now)
		waiting, longestText, held := cell{"·", faint}, cell{"·", faint}, cell{"·", faint}
		if e.Waiting > 0 {
			waiting, longestText = cell{strconv.Itoa(e.Waiting), plain}, cell{ensemble.Ago(wait), waitLook(wait)}
		}
		if len(e.Holders) > 0 {
			held = cell{ensemble.Ago(m.past.Held(e, m.now)), plain}
		}
		p.rows = append(p.rows, row{
			key: e.Path, path: e.Path, search: e.Path,
			cells: []cell{
				{clean(e.Path), plain}, {ensemble.KindWord(e), faint}, m.holder(e), held, waiting, longestText,
			},
		})
	}
	return p
}

// holder says who holds an entry.
func (m *model) holder(e survey.Entry) cell {
	if len(e.Holders) == 0 {
		return cell{"·", faint}
	}
	c := cell{clean(m.source.Owner(e.Holders[0])), plain}
	if e.Holding > 1 {
		c.text = fmt.Sprintf("+%d %s", e.Holding-1, c.text)
	}
	if slices.ContainsFunc(e.Holders, func(c lock.Contender) bool { return c.Revoked != nil }) {
		c.text, c.look = "asked: "+c.text, warn
	}
	if waits := m.snapshot.WaitsAt(e); len(waits) > 0 {
		c.text, c.look = "waits elsewhere: "+c.text, faint
	}
	if e.MayBeApart() {
		c.text, c.look = "not alone: "+c.text, bad
	}
	return c
}

// leaders are the elections.
func (m *model) leaders() page {
	order := orders[viewLeaders][m.lists[viewLeaders].order]
	p := page{
		columns: []column{
			{name: "PATH", grow: 5, middle: true},
			{name: "LEADER", grow: 5},
			{name: "LEADS", width: 6, right: true},
			{name: "TERM", width: 12, right: true, from: 64},
			{name: "STAND", width: 5, right: true},
			{name: "CHANGES", width: 7, right: true},
		},
		empty: "There is no election.",
	}
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if e.Holding+e.Waiting > 0 && ensemble.IsElection(e) {
			list = append(list, e)
		}
	}
	changes := func(e survey.Entry) int {
		if past := m.past[e.Path]; past != nil {
			return past.Changes
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		switch order {
		case "LEADS":
			return cmp.Compare(m.past.Held(a, m.now), m.past.Held(b, m.now))
		case "CHANGES":
			return cmp.Compare(changes(b), changes(a))
		}
		return 0
	})
	for _, e := range list {
		leads, term, changed := cell{"·", faint}, cell{"·", faint}, cell{"·", faint}
		if len(e.Holders) > 0 {
			leads = cell{ensemble.Ago(m.past.Held(e, m.now)), plain}
			term = cell{strconv.FormatInt(int64(e.Holders[0].Token), 10), faint}
		}
		if n := changes(e); n > 0 {
			changed = cell{strconv.Itoa(n), warn}
		}
		p.rows = append(p.rows, row{key: e.Path, path: e.Path, search: e.Path, cells: []cell{
			{clean(e.Path), plain}, m.holder(e), leads, term, {strconv.Itoa(e.Waiting), plain}, changed,
		}})
	}
	return p
}
