package main

// The page that shows the figures.

import (
	"fmt"
	"io"
	"text/template"
	"time"
)

// page is docs/herd.md.
var page = template.Must(template.New("herd.md").Parse(`# The herd

What a release costs when many processes wait, in the two ways in which a lock can wait on ZooKeeper. Written by ` + "`make herd`" + ` on {{.Date}}.

- **Simple** (` + "`lock.NewSimple`" + `): one ephemeral node. Everybody tries to make it, and everybody else watches it.
- **Line** (` + "`lock.NewMutex`" + `, and every other lock and the elections of this library): a node for each, in a row. Everybody watches the one ahead.

![Watch events for one release, by the number of waiters: the simple lock sends one to each, the line one in all](herd.svg)

| watch events for one release |{{range .Waiters}} {{.}} waiters |{{end}}
| --- |{{range .Waiters}} ---: |{{end}}
{{range .Rows}}| {{.Name}} |{{range .Events}} {{.}} |{{end}}
{{end}}
Every waiter has a session of its own, as a process has. The figure is the median of {{.Handovers}} releases, and is the server's own count, read with ` + "`mntr`" + ` when all wait (` + "`zk_watch_count`" + `)
before the release, and when all wait again after it. ZooKeeper counts the watches that it fires (` + "`zk_sum_node_deleted_watch_count`" + ` and its sisters). Of the embedded server it is the packets that it has sent
less those that it has received, when no answer is missing: what it sent without being asked.

Each event of the simple lock is followed by an attempt of the woken process to make the node, which the server has to order and to write to its log like every other write, and by a new watch when it
has failed: with n processes waiting, n hand-overs cost in the order of n² messages, and the delay between release and the next hold grows with n. In the line both are the same for two waiters and for a thousand.
The line is also fair, and the simple lock is not: of those who are woken any may win.

So use the simple lock only on a path that you share with clients that know no other form.
`))

// writePage writes the figures as docs/herd.md.
func writePage(w io.Writer, figures []figure, waiters []int, handovers int) error {
	type row struct {
		Name   string
		Events []int
	}
	var rows []row
	for _, f := range figures {
		name := fmt.Sprintf("%s, %s", f.lock, f.server)
		if len(rows) == 0 || rows[len(rows)-1].Name != name {
			rows = append(rows, row{Name: name})
		}
		last := &rows[len(rows)-1]
		last.Events = append(last.Events, f.events)
	}
	return page.Execute(w, struct {
		Date      string
		Waiters   []int
		Rows      []row
		Handovers int
	}{time.Now().UTC().Format(time.DateOnly), waiters, rows, handovers})
}
