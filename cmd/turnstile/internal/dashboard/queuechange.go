package dashboard

// Changes to a queue: pausing it, and all of its dead letters at once.

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// A queueChange is something that can be done to a queue.
type queueChange struct {
	Name, Title, Lead string
	Button            string // of the page of the queue
	Reason            bool   // it needs one
	Danger            bool   // it needs the last part of the path
	Dead              bool   // it is about all dead letters
}

// queueChanges are what can be done to a queue, in the order of their buttons.
var queueChanges = []queueChange{ //nolint:gochecknoglobals // a table
	{
		Name: pauses, Title: "Pause", Button: "Pause", Reason: true,
		Lead: "All consumers of this queue, in all processes, then take no more items until it is resumed. Items in " +
			"hand can be finished, and new items can be put.",
	},
	{Name: "resume", Title: "Resume", Button: "Resume", Lead: "Consumers of this queue then take items again."},
	{
		Name: "requeue", Title: "Requeue dead letters", Button: "Requeue all", Dead: true,
		Lead: "All dead letters go back into the queue, behind what has arrived by now, with all attempts before them.",
	},
	{
		Name: removes, Title: "Remove dead letters", Button: "Remove all", Dead: true, Danger: true,
		Lead: "All dead letters are removed for good.",
	},
}

const (
	pauseTime    = 30 * time.Second
	letterTime   = 24 * time.Hour
	queueChanged = "changequeue" // the name of the page

	pauses, removes = "pause", "purge" // names of changes
)

// href is the address of the form for a queue.
func (c *queueChange) href(path string) string {
	return queueChanged + "?" + url.Values{"path": {path}, "do": {c.Name}}.Encode()
}

// fits reports whether there is something to do for the change.
func (c *queueChange) fits(n ensemble.Queue) bool {
	switch {
	case c.Dead:
		return n.Dead > 0
	case c.Name == pauses:
		return n.Paused == ""
	}
	return n.Paused != ""
}

// button is a link to the form of a change.
type button struct {
	Text, Href string
	Risky      bool
}

// queueButtons returns links to the forms of what can be done to a queue now: to it, and to its dead letters.
func (d *Dashboard) queueButtons(path string, n ensemble.Queue) (all, dead []button) {
	if !d.cfg.Changes || len(path) > maxLink {
		return nil, nil
	}
	for i := range queueChanges {
		c := &queueChanges[i]
		b := button{c.Button, c.href(path), c.Danger}
		switch {
		case !c.fits(n):
		case c.Dead:
			dead = append(dead, b)
		default:
			all = append(all, b)
		}
	}
	return all, dead
}

type queueChangeBody struct {
	*queueChange

	Queue        link
	Action, Last string
	Ticket       string
	Error        string
	Typed        string // the reason
	Count        int    // of dead letters
	There        bool   // there is something to do
	Why          string // there is not
}

// wantedChange returns what the address of a change is about.
func wantedChange(u *url.URL) (*queueChange, ticket) {
	v := u.Query()
	for i := range queueChanges {
		if c := &queueChanges[i]; c.Name == v.Get("do") && len(v.Get("path")) <= maxLink {
			return c, ticket{what: c.Name, path: v.Get("path")}
		}
	}
	return nil, ticket{}
}

// queueChangePage asks for what a change needs.
func (d *Dashboard) queueChangePage(r *http.Request, problem string) *page {
	c, want := wantedChange(r.URL)
	if c == nil {
		return d.missingPage(r)
	}
	p := d.newPage(r, queueChanged, c.Title)
	b := queueChangeBody{
		queueChange: c, Queue: linkTo("queue", want.path), Error: problem, Last: clean(lastPart(want.path)),
		Action: c.href(want.path),
	}
	n, why := d.countsOf(r.Context(), want.path)
	switch {
	case why != "":
		b.Why = why
	case c.fits(n):
		b.There, b.Count = true, n.Dead
		b.Ticket = d.changes.issue(want, n.Dead)
	default:
		b.Why = "There is nothing to do for this queue now."
	}
	b.Typed = p.form(r, problem)
	p.Body = b
	return p
}

// countsOf returns how many items a queue has, or why that is not known.
func (d *Dashboard) countsOf(ctx context.Context, path string) (n ensemble.Queue, why string) {
	if s := d.collector.latest(); s != nil {
		if e, ok := s.Entry(path); !ok || e.Kind != survey.Queue {
			return n, "There is no queue at this path now."
		}
	}
	read, at := d.collector.queue.get(ctx, d.collector, path)
	switch {
	case read.err != nil:
		return n, "Its items cannot be read: " + clean(command.OneLine(read.err))
	case at.IsZero():
		return n, "Its items are being counted: load this page again."
	}
	return read.counts, ""
}

// changeQueue does what the form asks for.
func (d *Dashboard) changeQueue(w http.ResponseWriter, r *http.Request) {
	if !parseForm(w, r) {
		return
	}
	c, want := wantedChange(r.URL)
	if c == nil {
		d.render(w, r, d.missingPage(r))
		return
	}
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	n, why := d.countsOf(r.Context(), want.path)
	problem := ""
	switch {
	case why != "" || !c.fits(n):
		problem = "Nothing was done."
	case c.Reason && reason == "":
		problem = noReason
	case len(reason) > maxReason:
		problem = longText
	case c.Danger && !confirms(r, want.path):
		problem = otherPath
	}
	if problem == "" {
		problem = d.beginChange(r, c, want, reason) //nolint:contextcheck // it goes on when the viewer leaves
	}
	if problem != "" {
		d.render(w, r, d.queueChangePage(r, problem))
		return
	}
	see(w, "queue", want.path)
}

// beginChange begins a change, or returns why not.
func (d *Dashboard) beginChange(r *http.Request, c *queueChange, want ticket, reason string) (problem string) {
	count, ok := d.changes.redeem(r.PostFormValue("ticket"), want)
	if !ok {
		return usedForm
	}
	a := &actionOf{
		page: "queue", path: want.path, text: c.Title, reason: reason, result: "under way", long: c.Dead,
	}
	limit, do := pauseTime, func(ctx context.Context) (string, error) {
		return "done", d.source.Pause(ctx, want.path, c.Name == pauses, reason)
	}
	if c.Dead {
		limit, do = letterTime, func(ctx context.Context) (string, error) {
			done := 0
			err := d.source.Letters(ctx, want.path, c.Name == removes, count, func(more int) {
				done += more
				d.changes.note(a, fmt.Sprintf("%d of %d so far", done, count))
			})
			result := command.Plural(done, "dead letter")
			if ctx.Err() != nil {
				return "stopped after " + result, nil //nolint:nilerr // it was asked to
			}
			return result, err
		}
	}
	if !d.start(r, a, limit, do) {
		return notNow
	}
	return ""
}

// missingPage says that there is no such page.
func (d *Dashboard) missingPage(r *http.Request) *page {
	p := d.newPage(r, "missing", "No such page")
	p.status = http.StatusNotFound
	return p
}
