package dashboard

// Revoking: a holder is asked to release a lock, or it is taken from it.

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
)

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
	return ticket{what: "revoke", path: v.Get("path"), node: v.Get("node"), token: lock.Token(token)}
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
		b.Ticket = d.changes.issue(want, 0)
	}
	b.Reason = p.form(r, problem)
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
	if !parseForm(w, r) {
		return
	}
	want := wanted(r.URL)
	reason := strings.TrimSpace(r.PostFormValue("reason"))
	force := r.PostFormValue("force") != ""
	problem := ""
	switch {
	case reason == "" && !force:
		problem = noReason
	case len(reason) > maxReason:
		problem = longText
	case force && !confirms(r, want.path):
		problem = otherPath
	}
	holder, ok := d.holder(r.Context(), want)
	if _, fresh := d.changes.redeem(r.PostFormValue("ticket"), want); problem == "" && !fresh {
		problem = usedForm
	}
	if problem != "" || !ok {
		d.render(w, r, d.revokePage(r, problem))
		return
	}
	a := &actionOf{
		page: "lock", path: want.path, text: "Asked " + d.source.Owner(holder) + " to release it",
		reason: cmp.Or(reason, "forced in the dashboard"), result: "waiting for the holder",
	}
	if force {
		a.text = "Takes it by force from " + d.source.Owner(holder)
	}
	do := func(ctx context.Context) (string, error) {
		holders := map[string]lock.Token{want.node: want.token}
		return d.source.Revoke(ctx, a.path, holders, a.reason, force)
	}
	if !d.start(r, a, revokeTime, do) { //nolint:contextcheck // it goes on when the viewer leaves
		d.render(w, r, d.revokePage(r, notNow))
		return
	}
	see(w, "lock", want.path)
}

// confirms reports whether the user has typed the last part of a path.
func confirms(r *http.Request, path string) bool {
	typed, last := strings.TrimSpace(r.PostFormValue("confirm")), lastPart(path)
	return typed == last || typed == clean(last)
}

// lastPart returns the last part of a path.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
