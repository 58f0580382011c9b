package dashboard

// Revoking: what may be changed, by whom it was, and what became of it.

import (
	"cmp"
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
	maxReason  = 300 // characters
	ticketTime = 10 * time.Minute
	maxTickets = 1000
	maxActions = 100
	revokeTime = 2 * time.Minute
)

// A ticket allows one revocation: of this holder, as the user has seen it. It is for one request.
type ticket struct {
	path, node string
	token      lock.Token
	until      time.Time
}

// changes are the revocations that this dashboard has been asked for.
type changes struct {
	mu      sync.Mutex // guards the fields below
	tickets map[string]ticket
	actions []*actionOf // the latest first
}

// An actionOf is a revocation, and what became of it.
type actionOf struct {
	path, who, from, reason string
	force                   bool
	at                      time.Time
	result                  string // empty while it is under way
	failed                  bool
}

// An action is a revocation as a page shows it.
type action struct {
	At           when
	Lock         link
	Text, From   string
	Reason       string
	Result, Look string
}

// issue returns the secret of a new ticket.
func (c *changes) issue(t ticket) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	t.until = now.Add(ticketTime)
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
	c.tickets[secret] = t
	return secret
}

// redeem takes a ticket, which cannot be used again. It reports whether it is for this holder.
func (c *changes) redeem(secret string, want ticket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tickets[secret]
	delete(c.tickets, secret)
	return ok && time.Now().Before(t.until) && t.path == want.path && t.node == want.node && t.token == want.token
}

// begin notes a revocation.
func (c *changes) begin(a *actionOf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions = slices.Insert(c.actions, 0, a)
	c.actions = c.actions[:min(len(c.actions), maxActions)]
}

// end notes what became of a revocation.
func (c *changes) end(a *actionOf, result string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.result, a.failed = result, failed
}

// of returns the latest revocations of a lock, or of all if path is empty.
func (c *changes) of(p *page, path string, most int) (list []action) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.actions {
		if path != "" && a.path != path || len(list) == most {
			continue
		}
		shown := action{
			At: p.ago(a.at), Lock: p.lockLink(a.path), Text: "Asked " + clean(a.who) + " to release it",
			From: clean(a.from), Reason: clean(a.reason), Result: clean(a.result), Look: "good",
		}
		if a.force {
			shown.Text = "Takes it by force from " + clean(a.who)
		}
		switch {
		case a.result == "":
			shown.Look, shown.Result = "warn", "waiting for the holder"
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

type revokeBody struct {
	Lock          link
	Who, Session  string
	Since         when
	Token         lock.Token
	Action, Last  string
	Ticket, Error string
	Reason        string
	There         bool
}

// wanted returns what the address of a revocation is about.
func wanted(u *url.URL) ticket {
	v := u.Query()
	token, _ := strconv.ParseInt(v.Get("token"), 10, 64) // 0 is no token
	return ticket{path: v.Get("path"), node: v.Get("node"), token: lock.Token(token)}
}

// revokePage asks for what a revocation needs.
func (d *Dashboard) revokePage(r *http.Request, problem string) *page {
	p := d.newPage(r, "revoke", "Revoke")
	want := wanted(r.URL)
	b := revokeBody{Lock: p.lockLink(want.path), Error: problem, Last: clean(lastPart(want.path)), Token: want.token}
	b.Action = "revoke?" + url.Values{
		"path": {want.path}, "node": {want.node}, "token": {strconv.FormatInt(int64(want.token), 10)},
	}.Encode()
	if holder, ok := d.holder(p.ctx, want); ok {
		b.There, b.Who, b.Session = true, p.who(holder), command.SessionID(holder.Session)
		b.Since = p.ago(holder.Since)
		b.Ticket = d.changes.issue(want)
	}
	if problem != "" {
		p.status = http.StatusUnprocessableEntity
	}
	if r.Method == http.MethodPost {
		b.Reason = command.Cut(command.Printable(head(r.PostFormValue("reason"), 4*maxReason)), maxReason)
	}
	p.Body = b
	return p
}

// holder returns the holder that a revocation is about, if it still has the lock.
func (d *Dashboard) holder(ctx context.Context, want ticket) (lock.Contender, bool) {
	read, _ := d.collector.locks.get(ctx, d.collector, want.path)
	list := read.line.List
	if list == nil { // the line is too long
		list = read.line.Entry.Holders
	}
	for _, c := range list {
		if c.Holder && c.Path == want.node && c.Token == want.token {
			return c, true
		}
	}
	return lock.Contender{}, false
}

// revoke does what the form asks for.
func (d *Dashboard) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form is too large, or not a form", http.StatusBadRequest)
		return
	}
	want := wanted(r.URL)
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	force := r.PostFormValue("force") != ""
	typed := strings.TrimSpace(r.PostFormValue("confirm"))
	last := lastPart(want.path)
	problem := ""
	switch {
	case reason == "" && !force:
		problem = "Nothing was done: the holder needs a reason."
	case len(reason) > 4*maxReason:
		problem = "Nothing was done: the reason is too long."
	case force && typed != last && typed != clean(last):
		problem = "Nothing was done: that is not the last part of the path."
	case !d.changes.redeem(r.PostFormValue("ticket"), want):
		problem = "Nothing was done: this form was used before, or is too old. Here is a new one."
	}
	holder, ok := d.holder(r.Context(), want)
	if problem != "" || !ok {
		d.render(w, r, d.revokePage(r, problem))
		return
	}
	from, _, _ := strings.Cut(r.RemoteAddr, " ")
	a := &actionOf{
		path: want.path, who: d.source.Owner(holder), from: from, reason: cmp.Or(reason, "forced in the dashboard"),
		force: force, at: time.Now(),
	}
	d.cfg.Audit("%s asks for %s: revoke%s: %s", a.from, a.path, map[bool]string{true: " by force"}[force], a.reason)
	d.changes.begin(a)
	d.collector.begin(func() { //nolint:contextcheck // it goes on when the viewer leaves
		ctx, cancel := context.WithTimeout(d.collector.ctx, revokeTime)
		defer cancel()
		holders := map[string]lock.Token{want.node: want.token}
		result, err := d.source.Revoke(ctx, a.path, holders, a.reason, force)
		if err != nil {
			result = "not done: " + command.OneLine(err)
		}
		d.changes.end(a, result, err != nil)
		d.cfg.Audit("%s", result)
	})
	// Not http.Redirect, which makes the address absolute: a proxy may have taken off what it begins with.
	w.Header().Set("Location", "lock?"+url.Values{"path": {want.path}}.Encode())
	w.WriteHeader(http.StatusSeeOther)
}

// lastPart returns the last part of a path.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
