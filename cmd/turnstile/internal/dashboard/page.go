package dashboard

// What all pages have: the ensemble, the links to the other pages, and how old what they show is.

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// A page is what its template shows.
type page struct {
	*Dashboard

	Name     string // of its template
	Title    string
	Part     bool // without what is around what changes, and without ages: a script asks
	Nav      []navItem
	State    state
	Cut      bool // what is shown is old
	Notices  []notice
	Started  when
	Now      int64
	Ensemble string
	Below    string // the path below which it looks; empty for all
	User     string // who has signed in
	SignedIn bool   // at an issuer
	Body     any

	ctx      context.Context //nolint:containedctx // of the request
	now      time.Time
	snapshot *survey.Snapshot
	facts    facts
	url      *url.URL
	status   int
}

type navItem struct {
	Name, Href, Icon string
	Here             bool
	Count            int
	Level            string
}

// A state says how what is shown is kept up to date.
type state struct{ Look, Text string }

// A notice is something that the reader of any page should know.
type notice struct {
	Look, Text string
	Since      when // of what is shown; of most there is none
	More       []string
}

// newPage returns a page without its body.
func (d *Dashboard) newPage(r *http.Request, name, title string) *page {
	d.collector.mu.Lock()
	s, f, cutAt := d.collector.snapshot, d.collector.facts, d.collector.cutAt
	d.collector.mu.Unlock()
	p := &page{
		Dashboard: d, Name: name, Title: title, Part: r.Header.Get(partHeader) != "", Ensemble: clean(d.cfg.Ensemble),
		ctx: r.Context(), now: time.Now(), snapshot: s, facts: f, url: r.URL, status: http.StatusOK,
	}
	if d.cfg.Root != "/" {
		p.Below = clean(d.cfg.Root)
	}
	if !p.Part {
		p.Now = p.now.UnixMilli()
	}
	user, _ := d.user(r)
	p.User = clean(user)
	v, _ := r.Context().Value(viewerKey{}).(viewerOf)
	p.SignedIn = v.atIssuer
	p.Started = p.ago(d.collector.started)
	if s == nil {
		p.snapshot = &survey.Snapshot{Mode: survey.Cut}
		p.State = state{Look: "warn", Text: "Reading"}
	} else {
		p.setState(cutAt)
	}
	p.Nav = p.nav()
	return p
}

// Form reports whether the page is a form with a secret, which the script does not ask for again.
func (p *page) Form() bool { return p.Name == "revoke" || p.Name == queueChanged }

func (p *page) setState(cutAt time.Time) {
	s := p.snapshot
	switch s.Mode {
	case survey.Live:
		p.State = state{Look: "good", Text: "Live"}
	case survey.Sampled:
		p.State = state{Look: "warn", Text: "Sampled"}
		p.Notices = append(p.Notices, notice{
			Look: "note",
			Text: "There are more changes than can be followed, or the servers cannot tell of them: what you look at " +
				"is read each second, and everything each ten seconds.",
		})
	case survey.Cut:
		p.State, p.Cut = state{Look: "bad", Text: "Not connected"}, true
		p.Notices = append(p.Notices, notice{
			Look: "bad", Text: "No server of the ensemble answers. This page shows what was there before that; age:",
			Since: p.ago(cutAt),
		})
	}
	if s.Partial != "" {
		p.Notices = append(p.Notices, notice{
			Look: "warn", Text: "Not everything was read: " + clean(s.Partial) +
				". Start the dashboard with a PATH, or a longer --read-for.",
		})
	}
	for _, missed := range []struct {
		survey.Missed

		why string
	}{
		{s.Denied, " may not be read with the dashboard's credentials."},
		{s.TooLarge, " have more children than fit into a reply; raise --reply-limit."},
	} {
		if missed.Count == 0 {
			continue
		}
		n := notice{Look: "note", Text: command.Plural(missed.Count, "path") + missed.why}
		for _, path := range missed.Paths {
			n.More = append(n.More, clean(path))
		}
		if more := missed.Count - len(missed.Paths); more > 0 {
			n.More = append(n.More, "and "+strconv.Itoa(more)+" more")
		}
		p.Notices = append(p.Notices, n)
	}
	if s.Listed == 0 && s.Mode != survey.Cut {
		p.Notices = append(p.Notices, notice{Look: "warn", Text: "There is no path " + clean(p.cfg.Root) + " now."})
	}
}

func (p *page) nav() []navItem {
	f := p.facts
	list := []navItem{
		{Name: "Overview", Href: "./"},
		{Name: "Locks", Href: "locks", Count: f.locks + f.permits + f.elections},
		{Name: "Waits", Href: "waits", Count: f.waiting},
		{Name: "Leaders", Href: "leaders", Count: f.elections},
		{Name: "Queues", Href: "queues", Count: f.queues},
		{Name: "Sessions", Href: "sessions"},
		{Name: "Servers", Href: "servers"},
		{Name: "Tree", Href: "tree"},
	}
	if p.cfg.Changes {
		list = append(list, navItem{Name: "Changes", Href: "changes"})
	}
	under := map[string]string{
		"overview": "./", "lock": "locks", "queue": "queues", "items": "queues", "item": "queues", "revoke": "locks",
		queueChanged: "queues",
	}
	here, ok := under[p.Name]
	if !ok {
		here = p.Name
	}
	for i := range list {
		n := &list[i]
		n.Here = n.Href == here
		n.Icon = "i-" + n.Name
		if n.Name == "Waits" && !f.first.IsZero() {
			n.Level = waitLevel(p.now.Sub(f.first))
		}
	}
	return list
}

// A query is what the address of a page asks for.
type query struct {
	Filter, Sort, Kind string
	Limit              int
	Path               string // of the page of a node
	Hint               string // what the filter is a part of
}

const (
	firstRows = 100
	maxRows   = 1000
	maxFilter = 200
)

// newQuery reads what the address asks for. What makes no sense is as if it were not there.
func newQuery(u *url.URL, sorts, kinds []string) query {
	v := u.Query()
	q := query{
		Filter: command.Printable(head(v.Get("q"), maxFilter)), Limit: firstRows, Hint: "Part of a path or of a holder",
	}
	choose := func(word string, words []string) string {
		for _, w := range words {
			if w == word {
				return w
			}
		}
		if len(words) == 0 {
			return ""
		}
		return words[0]
	}
	q.Sort, q.Kind = choose(v.Get("sort"), sorts), choose(v.Get("kind"), kinds)
	if n, err := strconv.Atoi(v.Get("n")); err == nil && n > 0 {
		q.Limit = min(n, maxRows)
	}
	return q
}

// href returns the address with one thing changed.
func (q query) href(to, key, value string) string {
	v := url.Values{}
	for k, now := range map[string]string{"q": q.Filter, "sort": q.Sort, "kind": q.Kind, "path": q.Path} {
		if k == key {
			now = value
		}
		if now != "" {
			v.Set(k, now)
		}
	}
	if key == "n" {
		v.Set("n", value)
	}
	if len(v) == 0 {
		return to
	}
	return to + "?" + v.Encode()
}

// A rows is how much of a list is shown.
type rows struct {
	All, More int
	MoreHref  string
}

// shownOf returns how many rows of a list are shown.
func (q query) shownOf(to string, n int) (shown int, r rows) {
	shown = min(n, q.Limit)
	r = rows{All: n, More: n - shown}
	if r.More > 0 && q.Limit < maxRows {
		r.MoreHref = q.href(to, "n", strconv.Itoa(min(q.Limit*5, maxRows)))
	}
	return shown, r
}

// A column is the head of a column, which may order the list.
type column struct {
	Name, Href, Class string
	Sorted            string // aria-sort
}

// orderedBy returns the head of a column that orders a list, downwards unless it is a name.
func (q query) orderedBy(to, name, sort, class string) column {
	c := column{Name: name, Href: q.href(to, "sort", sort), Class: class}
	if q.Sort == sort {
		if c.Sorted = "descending"; sort == "path" {
			c.Sorted = "ascending"
		}
	}
	return c
}

// history returns what has happened to a lock since the dashboard was started.
func (p *page) history(path string) *ensemble.Past {
	p.collector.mu.Lock()
	defer p.collector.mu.Unlock()
	past := p.collector.past[path]
	if past == nil {
		return nil
	}
	return &ensemble.Past{Changes: past.Changes, Last: append([]ensemble.Change{}, past.Last...)}
}
