package top

// Queues, sessions and servers.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// queuesPage are the queues.
func (m *model) queuesPage() page {
	order := orders[viewQueues][m.lists[viewQueues].order]
	count := func(name string, width int) column { return column{name: name, width: width, right: true} }
	p := page{
		columns: []column{
			{name: "PATH", grow: 1, middle: true},
			count("READY", 7), count("DELAYED", 7), count("CLAIMED", 7), count("DEAD", 6), count("OLDEST", 6),
			count("IN/S", 6), count("OUT/S", 6),
			{name: "WAITING", width: 7, right: true, from: wideScreen},
			{name: "CONSUMERS", width: 9, right: true, from: wideScreen},
		},
		empty: "There is no queue.",
	}
	var list []survey.Entry
	for _, e := range m.snapshot.Entries {
		if ensemble.IsQueue(e) {
			list = append(list, e)
		}
	}
	ensemble.SortQueues(list, m.queues, strings.ToLower(order))
	for _, e := range list {
		r := row{key: e.Path, path: e.Path, search: e.Path, cells: []cell{{clean(e.Path), plain}}}
		q, ok := m.queues[e.Path]
		number := func(n int, look look) {
			c := cell{ensemble.Count(n), look}
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
			oldest = cell{ensemble.Ago(q.Oldest), plain}
		}
		r.cells = append(r.cells, oldest)
		for _, n := range []float64{q.Rates.In, q.Rates.Out} {
			rate := cell{ensemble.Rate(n), plain}
			if !q.Rates.Known {
				rate = cell{"·", faint}
			} else if n == 0 {
				rate.look = faint
			}
			r.cells = append(r.cells, rate)
		}
		number(q.Waiting, plain)
		number(q.Consumers, plain)
		p.rows = append(p.rows, r)
	}
	if len(list) > ensemble.MaxQueues {
		p.top = append(p.top, fmt.Sprintf("Only the first %d queues are counted.", ensemble.MaxQueues))
	}
	return p
}

// sessionsPage are the sessions.
func (m *model) sessionsPage() page {
	p := page{
		columns: []column{
			{name: "SESSION", width: 17},
			{name: "ADDRESS", grow: 4},
			{name: "HEARD", width: 5, right: true},
			{name: "NODES", width: 5, right: true, from: wideScreen},
			{name: "HOLDS, → WAITS", grow: 5, middle: true},
			{name: "OWNER", grow: 4},
		},
		empty: "No session is known yet.",
	}
	for _, lack := range m.lacks {
		p.top = append(p.top, clean(lack))
	}
	known := make(map[int64]ensemble.Session)
	for _, s := range m.sessions {
		known[s.ID] = s
	}
	holds, waits, owners := make(map[int64][]string), make(map[int64][]string), make(map[int64]string)
	for _, path := range slices.Sorted(maps.Keys(m.lines)) {
		for _, c := range m.lines[path].List {
			if _, ok := known[c.Session]; !ok {
				known[c.Session] = ensemble.Session{ID: c.Session, Ephemerals: -1}
			}
			if owners[c.Session] == "" || c.Known {
				owners[c.Session] = m.source.Owner(c)
			}
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
			d := m.asked.Sub(s.Answered)
			heard = cell{ensemble.Ago(d), plain}
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
		name := command.SessionID(id)
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
			{name: "SERVER", grow: 1},
			{name: "MODE", width: 10},
			{name: "VERSION", width: 8, from: wideScreen},
			number("LATENCY", 8), number("QUEUED", 6), number("CONNS", 5), number("WATCHES", 7),
			{name: "NODES", width: 8, right: true, from: wideScreen},
			number("LAG", 5),
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
			r.cells = append(r.cells, cell{clean(s.Mode), plain}, cell{clean(s.Version), faint},
				cell{clean(s.Latency), plain}, n(s.Outstanding), n(s.Connections), n(s.Watches), n(s.Nodes), lag)
		}
		p.rows = append(p.rows, r)
	}
	return p
}
