package dashboard

// The page of one lock.

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/lock"
)

type lockBody struct {
	lockRow

	There       bool
	Layout      string
	Holding     int
	Groups      int
	Apart       bool   // contenders of several groups may hold
	Behind      string // the node of no session that all wait for
	NumbersLeft int
	NumbersLow  bool
	WaitsAt     []link
	TooLong     bool // the line is not read
	Error       string
	Holders     []contenderRow
	Waiters     []contenderRow
	More        int // waiters that are not shown
	MoreHref    string
	MayHold     bool // one of them
	WaitingOver spark
	Kept        bool // there is a history
	Strip       strip
	Past        []changeRow // the latest first
	Records     []recordRow
	Actions     []action
}

// A contenderRow is a holder or a waiter.
type contenderRow struct {
	Place   string
	Who     string
	Program string
	Kind    string
	Since   when
	Session string
	Token   lock.Token // 0 for waiters
	MayHold bool
	Group   int
	Revoked string
	Revoke  string // where it can be revoked; empty if it cannot
}

// A recordRow is a revocation that is recorded.
type recordRow struct {
	At          when
	By, Reason  string
	Whom        []string
	Over, Force bool
}

const maxPlaces = 200 // of a line that are shown first

func (d *Dashboard) lockPage(r *http.Request) *page {
	p := d.newPage(r, "lock", "Lock")
	path := r.URL.Query().Get("path")
	q := newQuery(r.URL, nil, nil)
	e, ok := p.snapshot.Entry(path)
	p.Title = clean(path)
	b := lockBody{
		There: ok, Layout: clean(e.Layout), Holding: e.Holding, Groups: e.Groups, Apart: e.MayBeApart(),
		Behind: clean(e.Behind()),
	}
	if !ok {
		e.Path = path
	}
	if e.Numbers.Path != "" {
		b.NumbersLeft, b.NumbersLow = e.Numbers.Left, e.Numbers.Low
	}
	for _, at := range p.snapshot.WaitsAt(e) {
		b.WaitsAt = append(b.WaitsAt, p.lockLink(at))
	}
	var read lockRead
	if ok {
		d.collector.look(path)
		read, _ = d.collector.locks.get(p.ctx, d.collector, path)
		b.TooLong = ensemble.TooLong(e)
	}
	if read.line.Err != nil {
		b.Error = clean(command.OneLine(read.line.Err))
	}
	most := max(q.Limit, maxPlaces)
	p.places(&b, path, read.line.List, most)
	if b.TooLong || read.line.List == nil { // what the survey tells is better than nothing
		for _, c := range e.Holders {
			b.Holders = append(b.Holders, p.contender(path, c, 0))
		}
		if e.First != nil {
			b.Waiters = append(b.Waiters, p.contender(path, *e.First, 1))
		}
		b.More = max(0, e.Waiting-len(b.Waiters))
	} else if b.More > 0 && most < maxRows {
		b.MoreHref = p.lockLink(path).Href + "&n=" + strconv.Itoa(maxRows)
	}
	for i := len(read.records) - 1; i >= 0 && len(b.Records) < 20; i-- {
		b.Records = append(b.Records, p.record(read.records[i]))
	}
	past := p.history(path)
	holder := ""
	if len(e.Holders) > 0 {
		holder = p.source.Owner(e.Holders[0])
	}
	b.Strip = newStrip(past, holder, d.collector.started, p.now)
	if past != nil {
		for i := len(past.Last) - 1; i >= 0 && len(b.Past) < 12; i-- {
			b.Past = append(b.Past, p.change(past.Last[i]))
		}
	}
	b.Actions = d.changes.of(p, path, 10)
	d.collector.mu.Lock()
	defer d.collector.mu.Unlock()
	b.lockRow = p.row(e)
	if len(b.Holders) > 0 && b.Holders[0].Token == b.Term {
		b.Holders[0].Since = b.Held // its node was made when it began to wait
	}
	h := d.collector.series
	ring := h.locks[path]
	b.Kept = ring != nil || !h.full
	if ring != nil {
		b.WaitingOver = newSpark("Waiting", ring.last(h.second, sparkSteps, false), plain32)
	}
	p.Body = b
	return p
}

// places adds the contenders of a line.
func (p *page) places(b *lockBody, path string, line []lock.Contender, most int) {
	n := 0
	for _, c := range line {
		if c.Holder {
			if len(b.Holders) < most {
				b.Holders = append(b.Holders, p.contender(path, c, 0))
			}
			continue
		}
		if !c.MayHold {
			n++
		}
		b.MayHold = b.MayHold || c.MayHold
		if len(b.Waiters) == most {
			b.More++
			continue
		}
		b.Waiters = append(b.Waiters, p.contender(path, c, n))
	}
}

// contender returns a row of the line; a waiter is the n-th one.
func (p *page) contender(path string, c lock.Contender, n int) contenderRow {
	r := contenderRow{
		Who: p.who(c), Since: p.ago(c.Since), Session: command.SessionID(c.Session), MayHold: c.MayHold,
		Group: c.Group + 1,
	}
	if c.Known {
		r.Program = clean(c.Owner.Program)
	}
	switch c.Kind {
	case lock.Reader, lock.Writer:
		r.Kind = c.Kind.String()
	case lock.Exclusive, lock.Candidate, lock.Permit:
	}
	switch {
	case c.Holder && c.Kind == lock.Candidate:
		r.Place = "Leader"
	case c.Holder && c.Kind == lock.Permit:
		r.Place = "Permit"
	case c.Holder:
		r.Place = "Holder"
	case c.MayHold:
		r.Place = "May hold"
	default:
		r.Place = strconv.Itoa(n)
	}
	if c.Holder {
		r.Token = c.Token
	} else {
		r.Since = p.waited(c.Since)
	}
	if c.Revoked != nil {
		if r.Revoked = clean(c.Revoked.Reason); r.Revoked == "" {
			r.Revoked = "no reason given"
		}
	}
	if p.cfg.Changes && c.Holder && p.snapshot.Mode != "cut" && len(path)+len(c.Path) <= maxLink {
		r.Revoke = "revoke?" + url.Values{
			"path": {path}, "node": {c.Path}, "token": {strconv.FormatInt(int64(c.Token), 10)},
		}.Encode()
	}
	return r
}

func (p *page) record(record lock.Record) recordRow {
	r := recordRow{
		At: p.ago(record.Request.At), Reason: clean(record.Request.Reason), Over: record.Over, Force: record.Force,
		By: p.who(lock.Contender{Known: true, Owner: record.Request.By}),
	}
	for _, h := range record.Holders[:min(len(record.Holders), 5)] {
		c := lock.Contender{Data: []byte(h.Data)}
		if h.Owner != nil {
			c.Known, c.Owner = true, *h.Owner
		}
		what := map[lock.Ending]string{
			lock.EndingReleased: "released it", lock.EndingForced: "lost it by force", lock.EndingKept: "kept it",
		}[h.Ending]
		r.Whom = append(r.Whom, p.who(c)+" "+what)
	}
	return r
}
