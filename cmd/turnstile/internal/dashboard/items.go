package dashboard

// The pages of the items of a queue, and of one item.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
)

const (
	maxItems = 100 // of a state, those that come first

	listEvery = 5 * time.Second  // so often a list is read, at most
	findEvery = 10 * time.Second // so often an item is looked for, at most,
	findRest  = 20               // and not before so many times as long as the last time took: it may be read from afar
	maxTurns  = 4                // so many readings wait for their turn
)

// An itemList is the items of a queue that are in a state.
type itemList struct{ path, state string }

// An itemID is an item of a queue. It may be in that state.
type itemID struct{ path, state, id string }

type itemsRead struct {
	list []ensemble.Item
	err  error
}

type itemRead struct {
	item ensemble.Item
	err  error
	at   time.Time     // when it was looked for; zero if never
	took time.Duration // how long that took
}

// errTurns is why something is not read.
var errTurns = errors.New("too many others are reading items")

// turns lets one reading happen at a time. Viewers may ask for any number of items, and each may take long to find.
type turns struct {
	taken   chan struct{}
	waiting atomic.Int32
}

func newTurns() *turns { return &turns{taken: make(chan struct{}, 1)} }

// take waits for a turn, which the caller gives back. If too many wait, there is none.
func (t *turns) take(ctx context.Context) (giveBack func(), err error) {
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxTurns {
		return nil, errTurns
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// readItems reads a list of items.
func (c *collector) readItems(ctx context.Context, of itemList, last itemsRead) (r itemsRead) {
	giveBack, err := c.listTurns.take(ctx)
	switch {
	case err != nil && last.list != nil:
		return last
	case err != nil:
		return itemsRead{err: err}
	}
	defer giveBack()
	r.list, r.err = c.source.Items(ctx, of.path, of.state, maxItems+1)
	return r
}

// findItem looks for an item. A page that is left open must not have a long queue read again and again.
func (c *collector) findItem(ctx context.Context, of itemID, last itemRead) (r itemRead) {
	if time.Since(last.at) < findRest*last.took {
		return last
	}
	giveBack, err := c.findTurns.take(ctx)
	switch {
	case err != nil && !last.at.IsZero():
		return last
	case err != nil:
		return itemRead{err: err}
	}
	defer giveBack()
	begun := time.Now()
	r.item, r.err = c.source.Item(ctx, of.path, cmp.Or(last.item.State, of.state), of.id, c.data)
	r.at, r.took = time.Now(), time.Since(begun)
	return r
}

// itemStates are the states of items: ready ones are shown unless another is asked for.
func itemStates() []string { return []string{"ready", "claimed", "waiting", "delayed", "dead"} }

// A queueItems is the queue whose items a page shows.
type queueItems struct {
	Queue link
	Sent  string // its path, for a form
	There bool
	path  string
}

func (p *page) newQueueItems(r *http.Request) queueItems {
	path := r.URL.Query().Get("path")
	e, ok := p.snapshot.Entry(path)
	return queueItems{
		Queue: linkTo("queue", path), Sent: sent(path), There: ok && e.Kind == survey.Queue, path: path,
	}
}

// itemLink returns a link to the page of an item.
func itemLink(path string, x ensemble.Item) link {
	l := link{Text: clean(x.ID)}
	if len(path)+len(x.ID) <= maxLink && strings.Trim(x.ID, "0") != "" { // what is not an item has no id of its own
		l.Href = "item?" + url.Values{"path": {path}, "state": {x.State}, "id": {x.ID}}.Encode()
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

type itemsBody struct {
	queueItems

	States []choice
	State  string
	Read   bool
	Error  string
	Items  []itemRow
	More   bool
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

func (d *Dashboard) itemsPage(r *http.Request) *page {
	p := d.newPage(r, "items", "Items")
	b := itemsBody{queueItems: p.newQueueItems(r), State: newQuery(r.URL, nil, itemStates()).Kind}
	p.Title = b.Queue.Text + ": " + b.State
	for _, state := range itemStates() {
		b.States = append(b.States, choice{itemsLink(b.path, state), state == b.State})
	}
	if b.There {
		read, at := d.collector.items.get(p.ctx, d.collector, itemList{b.path, b.State})
		if b.Read = !at.IsZero(); read.err != nil {
			b.Error = clean(command.OneLine(read.err))
		}
		b.More = len(read.list) > maxItems
		for _, x := range read.list[:min(len(read.list), maxItems)] {
			b.Items = append(b.Items, p.itemRow(b.path, x))
		}
	}
	p.Body = b
	return p
}

func (p *page) itemRow(path string, x ensemble.Item) itemRow {
	row := itemRow{
		Item: itemLink(path, x), Attempts: x.Attempts, Bytes: x.Bytes, At: p.ago(x.Put), Due: stamp(x.Due),
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

	Sought  bool   // an id was given
	Problem string // why it is not shown
	Item    *itemFacts
}

// itemFacts is what a page shows of an item.
type itemFacts struct {
	State                              string
	Attempts, Priority, Bytes          int
	Put, Died                          when
	Due                                string
	Consumer, Group, TimeLimit, Reason string
	Failures                           []failureRow
	Headers                            []ensemble.Header
	HeadersMore                        int
	Hidden                             bool // its body and headers are not shown
	Data                               command.Text
	DataMore                           int // bytes that are not shown
}

type failureRow struct {
	At     when
	Reason string
}

func (d *Dashboard) itemPage(r *http.Request) *page {
	p := d.newPage(r, "item", "Item")
	b := itemBody{queueItems: p.newQueueItems(r)}
	v := r.URL.Query()
	id := strings.ToLower(strings.TrimSpace(head(v.Get("id"), maxFilter)))
	if b.Sought = id != ""; b.Sought {
		p.Title = clean(id)
	}
	if b.There && b.Sought {
		of := itemID{path: b.path, id: id}
		if slices.Contains(itemStates(), v.Get("state")) {
			of.state = v.Get("state")
		}
		read, at := d.collector.item.get(p.ctx, d.collector, of)
		switch {
		case at.IsZero():
		case errors.Is(read.err, ensemble.ErrNotFound):
			b.Problem = "There is no such item: it was done or removed, or never put, or has moved on just now."
		case errors.Is(read.err, ensemble.ErrTooMany):
			b.Problem = "It takes too long to look through this queue: turnstile queue show looks at all of it."
		case read.err != nil:
			b.Problem = "It could not be looked for: " + clean(command.OneLine(read.err))
		default:
			b.Item = p.itemFacts(read.item)
		}
	}
	p.Body = b
	return p
}

func (p *page) itemFacts(x ensemble.Item) *itemFacts {
	f := &itemFacts{
		State: x.State, Attempts: x.Attempts, Priority: x.Priority, Bytes: x.Bytes,
		Hidden: !p.cfg.Data && x.Bytes+x.Headed > 0,
		Put:    p.ago(x.Put), Died: p.ago(x.Died), Due: stamp(x.Due),
		Consumer: clean(x.Consumer), Group: clean(x.Group), Reason: clean(x.Reason),
	}
	if x.Timeout > 0 {
		f.TimeLimit = x.Timeout.String()
	}
	for _, failure := range slices.Backward(x.Failures) {
		f.Failures = append(f.Failures, failureRow{p.ago(failure.At), clean(failure.Reason)})
	}
	if p.cfg.Data {
		for _, h := range x.Headers {
			f.Headers = append(f.Headers, ensemble.Header{Name: clean(h.Name), Value: clean(h.Value)})
		}
		f.HeadersMore = x.Headed - len(x.Headers)
		f.Data, f.DataMore = command.PrintableLines(string(x.Body)), x.Bytes-len(x.Body)
	}
	return f
}
