package dashboard

// The pages of the items of a queue, and of one item.

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

// maxItems is how many items of a state are shown, those that come first.
const maxItems = 100

// itemStates are the states of items: ready ones are shown unless another is asked for.
func itemStates() []string { return []string{"ready", "claimed", "waiting", "delayed", "dead"} }

type itemsBody struct {
	queueItems

	States []choice
	State  string
	Read   bool
	Error  string
	Items  []itemRow
	More   bool
}

// A queueItems is the queue whose items a page shows.
type queueItems struct {
	Queue  link
	Path   string
	Sent   string // the path, for a form
	There  bool
	Sought string // the id that is looked for
}

// A choice is one of the ways in which a page may be shown.
type choice struct {
	link

	Here bool
}

type itemRow struct {
	Item            link
	Note            string // what its state is about
	Attempts, Bytes int
	At              when   // when it was put, or died
	Due             string // when it is due, if it is delayed
}

// itemLink returns a link to the page of an item.
func itemLink(path, id string) link {
	l := link{Text: clean(id)}
	if len(path)+len(id) <= maxLink {
		l.Href = "item?" + url.Values{"path": {path}, "id": {id}}.Encode()
	}
	return l
}

// itemsLink returns a link to the page of the items of a queue that are in a state.
func itemsLink(path, state string) link {
	l := link{Text: state}
	if len(path) <= maxLink {
		l.Href = query{Path: path, Kind: strings.ToLower(state)}.href("items", "", "")
	}
	return l
}

// stamp returns a time to the second.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime) + " UTC"
}

// items returns what the pages about items of a queue show besides them.
func (p *page) items(r *http.Request) queueItems {
	path := r.URL.Query().Get("path")
	e, ok := p.snapshot.Entry(path)
	return queueItems{
		Queue: linkTo("queue", path), Path: path, Sent: sent(path), There: ok && e.Kind == survey.Queue,
		Sought: strings.TrimSpace(head(r.URL.Query().Get("id"), maxFilter)),
	}
}

func (d *Dashboard) itemsPage(r *http.Request) *page {
	p := d.newPage(r, "items", "Items")
	b := itemsBody{queueItems: p.items(r), State: newQuery(r.URL, nil, itemStates()).Kind}
	for _, state := range itemStates() {
		b.States = append(b.States, choice{itemsLink(b.Path, state), state == b.State})
	}
	if b.There {
		read, at := d.collector.items.get(p.ctx, d.collector, listed{b.Path, b.State})
		if b.Read = !at.IsZero(); read.err != nil {
			b.Error = clean(command.OneLine(read.err))
		}
		b.More = len(read.list) > maxItems
		for _, x := range read.list[:min(len(read.list), maxItems)] {
			b.Items = append(b.Items, p.itemRow(b.Path, x))
		}
	}
	p.Body = b
	return p
}

func (p *page) itemRow(path string, x ensemble.Item) itemRow {
	row := itemRow{
		Item: itemLink(path, x.ID), Attempts: x.Attempts, Bytes: x.Bytes, At: p.ago(x.Put), Due: stamp(x.Due),
		Note: clean(cmp.Or(x.Reason, x.Consumer)),
	}
	if x.Group != "" && row.Note == "" {
		row.Note = "group " + clean(x.Group)
	}
	if !x.Died.IsZero() {
		row.At = p.ago(x.Died)
	}
	return row
}

type itemBody struct {
	queueItems

	Read     bool
	Problem  string        // why it is not shown
	Item     ensemble.Item // of which others have written the text
	ID       string
	Put      when
	Died     when
	Due      string
	Consumer string
	Group    string
	Timeout  string
	Reason   string
	Failures []failureRow
	ShowData bool
	Headers  []headerRow
	Data     command.Text
	DataMore int // bytes that are not shown
}

type failureRow struct {
	At     when
	Reason string
}

type headerRow struct{ Name, Value string }

func (d *Dashboard) itemPage(r *http.Request) *page {
	p := d.newPage(r, "item", "Item")
	b := itemBody{queueItems: p.items(r), ShowData: d.cfg.Data}
	if b.There && b.Sought != "" {
		read, at := d.collector.item.get(p.ctx, d.collector, listed{b.Path, b.Sought})
		switch {
		case at.IsZero():
		case errors.Is(read.err, ensemble.ErrNotFound):
			b.Problem = "There is no such item now: it is done, or it never was."
		case errors.Is(read.err, ensemble.ErrTooMany):
			b.Problem = "It is not among the first items, and there are too many for this page: turnstile queue show " +
				"looks at all."
		case read.err != nil:
			b.Problem = "It could not be looked for: " + clean(command.OneLine(read.err))
		default:
			b.Read = true
			p.fillItem(&b, read.item)
		}
	}
	p.Body = b
	return p
}

func (p *page) fillItem(b *itemBody, x ensemble.Item) {
	b.Item, b.ID, b.Put, b.Died, b.Due = x, clean(x.ID), p.ago(x.Put), p.ago(x.Died), stamp(x.Due)
	b.Consumer, b.Group, b.Reason = clean(x.Consumer), clean(x.Group), clean(x.Reason)
	if x.Timeout > 0 {
		b.Timeout = x.Timeout.String()
	}
	for _, f := range slices.Backward(x.Failures) {
		b.Failures = append(b.Failures, failureRow{p.ago(f.At), clean(f.Reason)})
	}
	if !b.ShowData {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		b.Headers = append(b.Headers, headerRow{clean(name), clean(x.Headers[name])})
	}
	b.Data, b.DataMore = command.PrintableLines(string(x.Body)), x.Bytes-len(x.Body)
}
