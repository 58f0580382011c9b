package dashboard

// From a page to an answer.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// partHeader is what the script sends when it asks for what changes.
const partHeader = "Turnstile-Part"

// templates are the pages. They are read when the first page is made: all other commands do without.
var templates = sync.OnceValue(func() *template.Template { //nolint:gochecknoglobals // a table
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plural": command.Plural, "list": func(v ...any) []any { return v }, "breaks": breaks,
	}).ParseFS(assets, "assets/*.html"))
})

// breaks returns a path that may be broken behind its slashes, but the first one.
func breaks(path string) template.HTML {
	text := template.HTMLEscapeString(path)
	text = strings.Replace(strings.ReplaceAll(text, "/", "/<wbr>"), "/<wbr>", "/", 1)
	return template.HTML(text) //nolint:gosec // it is escaped
}

// smallest is how many bytes an answer has that is worth compressing.
const smallest = 1000

// render answers with a page: with its whole, or with what a script puts into it.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, p *page) {
	name := "document"
	if p.Part {
		name = "part"
	}
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, p); err != nil { // a mistake of ours
		d.cfg.Audit("page %s: %v", p.Name, err)
		plain(w, http.StatusInternalServerError, "this page cannot be shown: "+command.OneLine(err))
		return
	}
	tag := ""
	if p.Part {
		sum := sha256.Sum256(b.Bytes())
		tag = `"` + hex.EncodeToString(sum[:8]) + `"`
	}
	var packed []byte
	// A page with a secret, and with text that others may choose, is not compressed: its length would tell of it.
	if b.Len() >= smallest && !p.Form() && accepts(r) && !has(r, tag) {
		packed = compress(b.Bytes())
	}
	answer(w, r, p.status, "text/html; charset=utf-8", tag, b.Bytes(), packed)
}

// A doorPage is for a viewer who has not signed in. All of it is ours, but the name of the issuer in Href.
type doorPage struct{ Title, Text, Href, Link string }

func door(w http.ResponseWriter, status int, p doorPage) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, "door", p); err != nil { // a mistake of ours
		plain(w, status, p.Title+". "+p.Text)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails if the client has gone
}

// answer answers with a body, or says that the client has it already.
func answer(w http.ResponseWriter, r *http.Request, status int, kind, tag string, body, packed []byte) {
	h := w.Header()
	if tag != "" {
		h.Set("ETag", tag)
		if has(r, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding, "+partHeader)
	if packed != nil && accepts(r) {
		h.Set("Content-Encoding", "gzip")
		body = packed
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone
}

// has reports whether the client has the answer with a tag already. A proxy may have made the tag a weak one.
func has(r *http.Request, tag string) bool {
	for other := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if tag != "" && strings.TrimPrefix(strings.TrimSpace(other), "W/") == tag {
			return true
		}
	}
	return false
}

// accepts reports whether the client takes gzip.
func accepts(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if name, weight, _ := strings.Cut(coding, ";"); strings.TrimSpace(name) == "gzip" {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

func compress(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // it is a level
	_, _ = w.Write(body)                            // to memory
	_ = w.Close()
	return b.Bytes()
}
