package dashboard

// The page of a node of the tree.

import (
	"cmp"
	"errors"
	"net/http"
	stdpath "path"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/zk"
)

type treeBody struct {
	query
	rows

	Sent     string // the path, for a form
	Above    []link // the nodes above it, the root first
	Use      link   // the page of what the path is used for; nowhere if that is not known
	Problem  string // why there is nothing to see
	Read     bool
	Mode     string
	Session  string // of an ephemeral node
	Stat     zk.Stat
	Bytes    int // of data
	Created  when
	Changed  when
	Access   []string
	NoAccess bool // its access list may not be read
	ShowData bool
	Data     command.Text
	DataMore int // bytes that are not shown
	Children []childRow
	Unread   int // children that are there besides
}

type childRow struct {
	Node      link
	Ephemeral bool
	Below     int32 // children
	Bytes     int32 // of data
	Changed   when
}

func (d *Dashboard) treePage(r *http.Request) *page {
	p := d.newPage(r, "tree", "Tree")
	path := cmp.Or(r.URL.Query().Get("path"), d.cfg.Root)
	p.Title = cutMiddle(clean(path))
	b := treeBody{query: newQuery(r.URL, nil, nil), ShowData: d.cfg.Data, Above: d.above(path)}
	b.Path, b.Sent, b.Hint = path, sent(path), "Part of a name"
	if e, ok := p.snapshot.Entry(path); ok && ensemble.IsQueue(e) {
		b.Use = link{"Its items", linkTo("queue", path).Href}
	} else if ok && e.Kind.Contended() {
		b.Use = link{"Who holds it, and who waits", linkTo("lock", path).Href}
	}
	if err := zk.ValidatePath(path); err != nil || !within(d.cfg.Root, path) {
		b.Problem = "This dashboard does not show this path."
		p.status, p.Body = http.StatusNotFound, b
		return p
	}
	read, at := d.collector.node.get(p.ctx, d.collector, path)
	switch {
	case at.IsZero():
	case errors.Is(read.err, zk.NoNode):
		b.Problem = "There is no such node now."
	case read.err != nil:
		b.Problem = "It could not be read: " + clean(command.OneLine(read.err))
	default:
		b.Read = true
		p.fillNode(&b, path, read.node)
	}
	p.Body = b
	return p
}

// within reports whether a path is root or below it.
func within(root, path string) bool {
	return root == "/" || path == root || strings.HasPrefix(path, root+"/")
}

// above returns links to the nodes above a path that the dashboard shows.
func (d *Dashboard) above(path string) (list []link) {
	for path != "/" && path != "." && within(d.cfg.Root, stdpath.Dir(path)) {
		path = stdpath.Dir(path)
		list = append([]link{nodeLink(path)}, list...)
	}
	return list
}

// nodeLink returns a link to the page of a node, with its name.
func nodeLink(path string) link {
	l := linkTo("tree", path)
	l.Text = cutMiddle(clean(stdpath.Base(path)))
	return l
}

func (p *page) fillNode(b *treeBody, path string, n ensemble.Node) {
	b.Stat, b.Mode, b.Bytes = n.Stat, "persistent", int(n.Stat.DataLength)
	if n.Stat.EphemeralOwner != 0 {
		b.Mode, b.Session = "ephemeral", command.SessionID(n.Stat.EphemeralOwner)
	}
	b.Created, b.Changed = p.ago(time.UnixMilli(n.Stat.Ctime)), p.ago(time.UnixMilli(n.Stat.Mtime))
	if n.Stat.Ctime == 0 { // the root
		b.Created, b.Changed = when{}, when{}
	}
	b.NoAccess = n.ACL == nil
	for _, entry := range n.ACL {
		if user, _, ok := strings.Cut(entry.ID.ID, ":"); ok && entry.ID.Scheme == "digest" {
			entry.ID.ID = user + ":…" // what is behind it is made of the password
		}
		b.Access = append(b.Access, clean(command.FormatACL([]zk.ACL{entry})))
	}
	if b.ShowData {
		b.Data, b.DataMore = command.PrintableLines(string(n.Data)), b.Bytes-len(n.Data)
	}
	var found []childRow
	for _, c := range n.Children {
		if b.Filter != "" && !strings.Contains(command.Printable(c.Name), b.Filter) {
			continue
		}
		found = append(found, childRow{
			Node: nodeLink(stdpath.Join(path, c.Name)), Ephemeral: c.Stat.EphemeralOwner != 0,
			Below: c.Stat.NumChildren, Bytes: c.Stat.DataLength,
			Changed: p.ago(time.UnixMilli(c.Stat.Mtime)),
		})
	}
	b.Unread = max(0, int(n.Stat.NumChildren)-len(n.Children))
	var shown int
	shown, b.rows = b.shownOf("tree", len(found))
	b.Children = found[:shown]
}
