package dashboard

// What was changed, by whom it was, and what became of it.

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
)

const (
	maxForm    = 16 << 10
	maxReason  = 1000 // bytes, as for a pause of a queue
	ticketTime = 10 * time.Minute
	maxTickets = 1000
	maxActions = 100
	maxRunning = 50
	revokeTime = 2 * time.Minute
)

// A ticket allows one change: to this queue, or of this holder, as the user has seen it. It is for one request.
type ticket struct {
	what       string // "revoke", or the name of a queueChange
	path, node string
	token      lock.Token // of a holder
}

// changes are the changes that this dashboard has been asked for.
type changes struct {
	mu      sync.Mutex // guards the fields below
	tickets map[string]issued
	actions []*actionOf // the latest first
	count   int         // of all actions
}

// issued is a ticket that was given to a user.
type issued struct {
	ticket

	count int // of dead letters, as the user has seen it
	until time.Time
}

// An actionOf is a change, and what became of it.
type actionOf struct {
	page, path string // of what is changed
	text       string // what is done
	from       string // the user and the address that asked for it
	reason     string
	at         time.Time
	result     string // while it is under way, how far it is
	over       bool
	failed     bool
	long       bool // it can be ended early, and is the only such change to what has its path
	id         string
	stop       context.CancelFunc
}

// An action is a change as a page shows it.
type action struct {
	At           when
	Of           link
	Text, From   string
	Reason       string
	Result, Look string
	Stop         string // the address to post to that ends it; empty if it is over, or cannot be ended
}

// issue returns the secret of a new ticket.
func (c *changes) issue(t ticket, count int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	oldest := ""
	for secret, other := range c.tickets {
		switch {
		case now.After(other.until):
			delete(c.tickets, secret)
		case oldest == "" || other.until.Before(c.tickets[oldest].until):
			oldest = secret
		}
	}
	if len(c.tickets) >= maxTickets {
		delete(c.tickets, oldest)
	}
	secret := rand.Text()
	c.tickets[secret] = issued{t, count, now.Add(ticketTime)}
	return secret
}

// redeem takes a ticket, which cannot be used again. It reports whether it is for this change, and the count with which
// it was issued.
func (c *changes) redeem(secret string, want ticket) (count int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tickets[secret]
	delete(c.tickets, secret)
	return t.count, ok && time.Now().Before(t.until) && t.ticket == want
}

// begin notes a change. It reports false if that must not begin now.
func (c *changes) begin(a *actionOf) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	running := 0
	for _, other := range c.actions {
		if !other.over {
			running++
		}
		if !other.over && a.long && other.long && other.path == a.path {
			return false
		}
	}
	if running >= maxRunning {
		return false
	}
	c.count++
	a.id = strconv.Itoa(c.count)
	c.actions = slices.Insert(c.actions, 0, a)
	for i := len(c.actions) - 1; len(c.actions) > maxActions && i > 0; i-- { // what is under way stays, to be stopped
		if c.actions[i].over {
			c.actions = slices.Delete(c.actions, i, i+1)
		}
	}
	return true
}

// note notes how far a change is.
func (c *changes) note(a *actionOf, result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.result = result
}

// end notes what became of a change.
func (c *changes) end(a *actionOf, result string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.result, a.failed, a.over = result, failed, true
}

// stop ends a change that is under way. It reports whether there is one.
func (c *changes) stop(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.actions {
		if a.id == id && !a.over && a.long {
			a.stop()
			return true
		}
	}
	return false
}

// of returns the latest changes to what has a path, or all if path is empty, and those that are under way besides.
func (c *changes) of(p *page, path string, most int) (list []action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.actions {
		if path != "" && a.path != path || a.over && len(list) >= most {
			continue
		}
		shown := action{
			At: p.ago(a.at), Of: linkTo(a.page, a.path), Text: clean(a.text), From: clean(a.from),
			Reason: clean(a.reason), Result: clean(a.result), Look: "good",
		}
		switch {
		case !a.over && a.long:
			shown.Stop = "stop?" + url.Values{"id": {a.id}}.Encode()
			fallthrough
		case !a.over:
			shown.Look = "warn"
		case a.failed:
			shown.Look = "bad"
		}
		list = append(list, shown)
	}
	return list
}

type changesBody struct {
	Actions []action
	Most    int // that are remembered
}

func (d *Dashboard) changesPage(r *http.Request) *page {
	p := d.newPage(r, "changes", "Changes")
	p.Body = changesBody{Actions: d.changes.of(p, "", maxActions), Most: maxActions}
	return p
}

// start begins a change. do does it, and returns what became of it. It reports false if the change must not begin now.
func (d *Dashboard) start(r *http.Request, a *actionOf, limit time.Duration,
	do func(ctx context.Context) (string, error),
) bool {
	ctx, cancel := context.WithTimeout(d.collector.ctx, limit) // not the request's: it goes on when the viewer leaves
	a.from, a.at, a.stop = d.viewer(r), time.Now(), cancel
	if !d.changes.begin(a) {
		cancel()
		return false
	}
	what := a.text
	if a.reason != "" {
		what += ": " + a.reason
	}
	d.cfg.Audit("%s asks for %s: %s", a.from, a.path, what)
	begun := d.collector.begin(func() {
		defer cancel()
		result, err := do(ctx)
		if err != nil {
			result = strings.TrimPrefix(result+"; not done: "+command.OneLine(err), "; ")
		}
		d.changes.end(a, result, err != nil)
		d.cfg.Audit("%s: %s", a.path, result)
	})
	if !begun {
		cancel()
		d.changes.end(a, "not done: the dashboard is ending", true)
	}
	return true
}

// What a form says that was not accepted.
const (
	usedForm  = "Nothing was done: this form was used before, or is too old. Here is a new one."
	notNow    = "Nothing was done: another such change is under way, or too many are."
	noReason  = "Nothing was done: it needs a reason."
	longText  = "Nothing was done: the reason is too long."
	otherPath = "Nothing was done: that is not the last part of the path."
)

// stopChange ends a change early.
func (d *Dashboard) stopChange(w http.ResponseWriter, r *http.Request) {
	if !d.changes.stop(r.URL.Query().Get("id")) {
		plain(w, http.StatusNotFound, "this change has ended")
		return
	}
	see(w, "changes", "")
}

// see leads to another page, about a path.
func see(w http.ResponseWriter, page, path string) {
	// Not http.Redirect, which makes the address absolute: a proxy may have taken off what it begins with.
	to := page
	if path != "" {
		to += "?" + url.Values{"path": {path}}.Encode()
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// form makes the page a form: again, if there was a problem with the last one, with the reason that was typed.
func (p *page) form(r *http.Request, problem string) (reason string) {
	if problem != "" {
		p.status = http.StatusUnprocessableEntity
	}
	return command.Printable(head(r.PostFormValue("reason"), maxReason))
}

// parseForm reads a form, or answers that it cannot be read.
func parseForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form is too large, or not a form", http.StatusBadRequest)
		return false
	}
	return true
}
