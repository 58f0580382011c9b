package top

// What each view shows.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Waits of this length are drawn as worth a look, and as most likely stuck.
const (
	longWait  = time.Minute
	stuckWait = 10 * time.Minute
)

func waitLook(d time.Duration) look {
	switch {
	case d >= stuckWait:
		return bad
	case d >= longWait:
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
	}
	return page{}
}

func (m *model) snapshotEntry(path string) (survey.Entry, bool) {
	if m.snapshot == nil || path == "" {
		return survey.Entry{}, false
	}
	return m.snapshot.Entry(path)
}

// election reports whether candidates stand at an entry.
func election(e survey.Entry) bool {
	return e.Kind == survey.Election || e.Kind == survey.Support ||
		len(e.Holders) > 0 && e.Holders[0].Kind == lock.Candidate
}

// held returns for how long an entry has been held: since the node of its holder was made, or since this screen has
// seen another holder.
func (m *model) held(e survey.Entry) time.Duration {
	if len(e.Holders) == 0 {
		return 0
	}
	d := m.now.Sub(e.Holders[0].Since)
	if past := m.past[e.Path]; past != nil {
		d = min(d, m.now.Sub(past.last[len(past.last)-1].at))
	}
	return max(0, d)
}

// locks are all that is held or waited for.
func (m *model) locks() page {
	order := orders[viewLocks][m.lists[viewLocks].order]
	p := page{
		columns: []column{
			{name: "PATH", grow: 5, middle: true}, {name: "KIND", width: 8, from: 64}, {name: "HOLDER", grow: 4},
			{name: "HELD", width: 6, right: true, from: 50}, {name: "WAITING", width: 7, right: true},
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
			return cmp.Compare(longest(b, m.now), longest(a, m.now))
		case "WAITING":
			return cmp.Compare(b.Waiting, a.Waiting)
		case "HELD":
			return cmp.Compare(m.held(b), m.held(a))
		}
		return 0
	})
	for _, e := range list {
		wait := longest(e, m.now)
		waiting, longestText, held := cell{"·", faint}, cell{"·", faint}, cell{"·", faint}
		if e.Waiting > 0 {
			waiting, longestText = cell{strconv.Itoa(e.Waiting), plain}, cell{ago(wait), waitLook(wait)}
		}
		if len(e.Holders) > 0 {
			held = cell{ago(m.held(e)), plain}
		}
		p.rows = append(p.rows, row{
			key: e.Path, path: e.Path, search: e.Path,
			cells: []cell{{clean(e.Path), plain}, {kindWord(e), faint}, m.holder(e), held, waiting, longestText},
		})
	}
	return p
}

// kindWord is what an entry is, in at most eight letters.
func kindWord(e survey.Entry) string {
	switch {
	case e.Kind == survey.Permits, e.Kind == survey.KazooPermits:
		return "permits"
	case election(e):
		return "election"
	case len(e.Holders) > 0 && e.Holders[0].Kind == lock.Reader:
		return "shared"
	}
	return "lock"
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
	if e.Groups > 1 {
		c.text, c.look = "not alone: "+c.text, bad
	}
	return c
}

// leaders are the elections.
func (m *model) leaders() page {
	order := orders[viewLeaders][m.lists[viewLeaders].order]
	p := page{
		columns: []column{
			{name: "PATH", grow: 5, middle: true}, {name: "LEADER", grow: 5}, {name: "LEADS", width: 6, right: true},
			{name: "TERM", width: 12, right: true, from: 64}, {name: "STAND", width: 5, right: true},
			{name: "CHANGES", width: 7, right: true},
		},
		empty: "There is no election.",
	}
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if e.Holding+e.Waiting > 0 && election(e) {
			list = append(list, e)
		}
	}
	changes := func(e survey.Entry) int {
		if past := m.past[e.Path]; past != nil {
			return past.n
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		switch order {
		case "LEADS":
			return cmp.Compare(m.held(a), m.held(b))
		case "CHANGES":
			return cmp.Compare(changes(b), changes(a))
		}
		return 0
	})
	for _, e := range list {
		leads, term, changed := cell{"·", faint}, cell{"·", faint}, cell{"·", faint}
		if len(e.Holders) > 0 {
			leads = cell{ago(m.held(e)), plain}
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

// queuesPage are the queues.
func (m *model) queuesPage() page {
	order := orders[viewQueues][m.lists[viewQueues].order]
	count := func(name string) column { return column{name: name, width: 8, right: true} }
	p := page{
		columns: []column{
			{name: "PATH", grow: 1, middle: true}, count("READY"), count("DELAYED"), count("CLAIMED"), count("DEAD"), count("OLDEST"),
		},
		empty: "There is no queue.",
	}
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if e.Kind == survey.Queue || e.Kind == survey.ClassicQueue {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b survey.Entry) int {
		one, two := m.queues[a.Path], m.queues[b.Path]
		switch order {
		case "OLDEST":
			return cmp.Compare(two.Oldest, one.Oldest)
		case "READY":
			return cmp.Compare(two.Ready, one.Ready)
		case "DEAD":
			return cmp.Compare(two.Dead, one.Dead)
		}
		return 0
	})
	for _, e := range list {
		r := row{key: e.Path, path: e.Path, search: e.Path, cells: []cell{{clean(e.Path), plain}}}
		q, ok := m.queues[e.Path]
		number := func(n int, look look) {
			c := cell{strconv.Itoa(n), look}
			if n == 0 {
				c.look = faint
			}
			if !ok {
				c = cell{"?", faint}
			}
			r.cells = append(r.cells, c)
		}
		number(q.Ready, plain)
		number(q.Delayed, plain)
		number(q.Claimed, good)
		number(q.Dead, bad)
		oldest := cell{"·", faint}
		if q.Oldest > 0 {
			oldest = cell{ago(q.Oldest), plain}
		}
		r.cells = append(r.cells, oldest)
		p.rows = append(p.rows, r)
	}
	if len(list) > maxQueues {
		p.top = append(p.top, fmt.Sprintf("Only the first %d queues are counted.", maxQueues))
	}
	return p
}

// sessionsPage are the sessions.
func (m *model) sessionsPage() page {
	p := page{
		columns: []column{
			{name: "SESSION", width: 17}, {name: "ADDRESS", grow: 4}, {name: "HEARD", width: 5, right: true},
			{name: "NODES", width: 5, right: true, from: wideScreen}, {name: "HOLDS, → WAITS", grow: 5, middle: true},
			{name: "OWNER", grow: 4},
		},
		empty: "No session is known yet.",
	}
	for _, lack := range m.lacks {
		p.top = append(p.top, clean(lack))
	}
	known := make(map[int64]Session)
	for _, s := range m.sessions {
		known[s.ID] = s
	}
	holds, waits, owners := make(map[int64][]string), make(map[int64][]string), make(map[int64]string)
	for path, l := range m.lines {
		for _, c := range l.list {
			if _, ok := known[c.Session]; !ok {
				known[c.Session] = Session{ID: c.Session, Ephemerals: -1}
			}
			owners[c.Session] = m.source.Owner(c)
			where := waits
			if c.Holder {
				where = holds
			}
			if !slices.Contains(where[c.Session], path) {
				where[c.Session] = append(where[c.Session], path)
			}
		}
	}
	paths := func(holds, waits []string) cell {
		slices.Sort(holds)
		slices.Sort(waits)
		for i := range waits {
			waits[i] = "→ " + waits[i]
		}
		list := slices.Concat(waits, holds)
		switch {
		case len(list) == 0:
			return cell{"·", faint}
		case len(list) > 1:
			return cell{fmt.Sprintf("+%d %s", len(list)-1, clean(list[0])), plain}
		}
		return cell{clean(list[0]), plain}
	}
	for id, s := range known {
		heard, nodes, address, owner := cell{"·", faint}, cell{"·", faint}, cell{"·", faint}, cell{"·", faint}
		if !s.Answered.IsZero() {
			d := m.now.Sub(s.Answered)
			heard = cell{ago(d), plain}
			if s.Timeout > 0 && d > s.Timeout*2/3 {
				heard.look = warn
			}
		}
		if s.Ephemerals >= 0 {
			nodes = cell{strconv.Itoa(s.Ephemerals), plain}
		}
		if s.Address != "" {
			address = cell{clean(s.Address), plain}
		}
		if owners[id] != "" {
			owner = cell{clean(owners[id]), plain}
		}
		name := fmt.Sprintf("0x%x", uint64(id))
		p.rows = append(p.rows, row{
			key: name, search: strings.Join(slices.Concat(holds[id], waits[id]), " "),
			cells: []cell{{name, plain}, address, heard, nodes, paths(holds[id], waits[id]), owner},
		})
	}
	slices.SortFunc(p.rows, func(a, b row) int { return cmp.Or(len(a.key)-len(b.key), strings.Compare(a.key, b.key)) })
	return p
}

// serversPage are the servers.
func (m *model) serversPage() page {
	number := func(name string, width int) column { return column{name: name, width: width, right: true} }
	p := page{
		columns: []column{
			{name: "SERVER", grow: 1}, {name: "MODE", width: 10}, {name: "VERSION", width: 8, from: wideScreen},
			number("LATENCY", 8), number("QUEUED", 6), number("CONNS", 5), number("WATCHES", 7),
			{name: "NODES", width: 8, right: true, from: wideScreen}, number("LAG", 5),
		},
		empty: "The servers have not been asked yet.",
	}
	var newest int64
	for _, s := range m.servers {
		newest = max(newest, s.Zxid)
	}
	for _, s := range m.servers {
		r := row{key: s.Address, cells: []cell{{clean(s.Address), plain}}}
		if s.Err != nil {
			r.cells = append(r.cells, cell{"no answer", bad})
			p.top = append(p.top, clean(s.Address+": "+s.Err.Error()))
		} else {
			n := func(n int64) cell {
				if n < 0 {
					return cell{"·", faint}
				}
				return cell{strconv.FormatInt(n, 10), plain}
			}
			lag := n(newest - s.Zxid)
			if newest>>32 != s.Zxid>>32 {
				lag = cell{"epoch", warn}
			}
			r.cells = append(r.cells, cell{clean(s.Mode), plain}, cell{clean(s.Version), faint}, cell{clean(s.Latency), plain},
				n(s.Outstanding), n(s.Connections), n(s.Watches), n(s.Nodes), lag)
		}
		p.rows = append(p.rows, r)
	}
	return p
}

// line is the line of one lock.
func (m *model) line() page {
	p := page{
		columns: []column{
			{name: "PLACE", width: 11}, {name: "OWNER", grow: 1}, {name: "FOR", width: 6, right: true},
			{name: "SESSION", width: 18, from: 64}, {name: "TOKEN", width: 12, right: true, from: 50},
		},
		empty: "Nobody holds it, and nobody waits.",
	}
	e, there := m.snapshotEntry(m.path)
	p.top = append(p.top, clean(m.path))
	l := m.lines[m.path]
	switch {
	case !there:
		p.empty = "There is no such path now."
		l.list = nil
	case e.Holding+e.Waiting == 0:
		l.list = nil
		fallthrough
	default:
		layout := ""
		if e.Layout != "" {
			layout = ", layout " + e.Layout
		}
		p.top = append(p.top, fmt.Sprintf("%s%s, %d held, %d waiting", kindWord(e), layout, e.Holding, e.Waiting))
		if e.Groups > 1 {
			p.top = append(p.top, "Not all contenders here exclude each other.")
		}
		if e.Numbers.Low {
			p.top = append(p.top, fmt.Sprintf("Only %d sequence numbers are left.", e.Numbers.Left))
		}
	}
	if l.err != nil {
		p.empty = clean(l.err.Error())
	}
	n := 0
	for _, c := range l.list {
		r := row{key: c.Path + " " + strconv.FormatInt(int64(c.Token), 10), node: c.Path}
		place, token := cell{"", plain}, cell{"·", faint}
		switch {
		case c.Holder:
			place, token = cell{"holder", good}, cell{strconv.FormatInt(int64(c.Token), 10), plain}
			if c.Kind == lock.Candidate {
				place.text = "leader"
			}
		case c.MayHold:
			place = cell{"may hold", warn}
		default:
			n++
			place = cell{"waiter " + strconv.Itoa(n), plain}
		}
		if c.Kind == lock.Reader || c.Kind == lock.Writer {
			place.text += ", " + map[lock.Kind]string{lock.Reader: "r", lock.Writer: "w"}[c.Kind]
		}
		d := m.now.Sub(c.Since)
		owner := cell{clean(m.source.Owner(c)), plain}
		if c.Revoked != nil {
			owner = cell{"asked: " + owner.text, warn}
		}
		look := plain
		if !c.Holder {
			look = waitLook(d)
		}
		r.cells = []cell{place, owner, {ago(d), look}, {fmt.Sprintf("0x%x", uint64(c.Session)), faint}, token}
		p.rows = append(p.rows, r)
	}
	return p
}
