package dashboard

// Text of others, links, and times.

import (
	"net/url"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/lock"
)

const (
	maxText = 400  // characters of others' text in a row
	maxLink = 2000 // bytes of a path that is linked to
)

// clean returns text of others as a page may have it: escaped as by all commands, and cut.
func clean(s string) string { return command.Cut(command.Printable(head(s, 4*maxText)), maxText) }

// head returns the beginning of text of others.
func head(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// A link is a path, and where it leads; nowhere if Href is empty.
type link struct {
	Text, Href string
}

// linkTo returns a link to a page about a path.
func linkTo(to, path string) link {
	l := link{Text: cutMiddle(clean(path))}
	if len(path) <= maxLink {
		l.Href = to + "?" + url.Values{"path": {path}}.Encode()
	}
	return l
}

// sent returns a path as a form on a page may send it along, empty if it is none that a page may have as it is: then
// there is no such form.
func sent(path string) string {
	if len(path) > maxLink || command.Printable(path) != path {
		return ""
	}
	return path
}

// cutMiddle cuts out the middle of a long path: both its beginning and its last part tell the most.
func cutMiddle(path string) string {
	const ends = 40
	if runes := []rune(path); len(runes) > 2*ends {
		return string(runes[:ends]) + "…" + string(runes[len(runes)-ends:])
	}
	return path
}

// lockLink returns a link to the page of a lock.
func (p *page) lockLink(path string) link { return linkTo("lock", path) }

// who says whose a contender is.
func (p *page) who(c lock.Contender) string { return clean(p.source.Owner(c)) }

// A when is a time of which a page says how long ago it was. Where a script keeps that up to date there is no text, so
// that a page on which nothing has happened is the same as before.
type when struct {
	Ms    int64 // 0 for none
	Stamp string
	Text  string
	Level string
}

// ago returns a time in the past.
func (p *page) ago(t time.Time) when {
	if t.IsZero() {
		return when{}
	}
	w := when{Ms: t.UnixMilli(), Stamp: t.UTC().Format(time.RFC3339)}
	if !p.Part {
		w.Text = ensemble.Ago(p.now.Sub(t))
	}
	return w
}

// waited returns since when somebody waits.
func (p *page) waited(t time.Time) when {
	w := p.ago(t)
	if w.Ms != 0 {
		w.Level = waitLevel(p.now.Sub(t))
	}
	return w
}
