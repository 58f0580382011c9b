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

What a release costs when many processes wait, in the two ways in which a lock can wait on ZooKeeper. Written by
` + "`make herd`" + ` on {{.Date}}.

- **Simple** (` + "`lock.NewSimple`" + `): one ephemeral node. All clients try to create it, and those that fail watch it.
- **Line** (` + "`lock.NewMutex`" + `, and all other locks and the elections of this library): a sequential node for each client.
  Each client watches the node ahead of its own.

![Watch events for one release, by the number of waiters: the simple lock sends one to each, the line one in all](herd.svg)

| watch events for one release |{{range .Waiters}} {{.}} waiters |{{end}}
| --- |{{range .Waiters}} ---: |{{end}}
{{range .Rows}}| {{.Name}} |{{range .Events}} {{.}} |{{end}}
{{end}}
Every waiter has a session of its own, as a process has. The figure is the median of {{.Handovers}} releases. It is the
server's own count, read with ` + "`mntr`" + ` when all wait (` + "`zk_watch_count`" + `) before the release, and when all wait again
after it. ZooKeeper counts the watches that it fires (` + "`zk_sum_node_deleted_watch_count`" + ` and similar counters). For the
embedded server it is the packets sent less the packets received, when no answer is missing: what it sent without a
request.

After each event of the simple lock, the woken process tries to create the node. The server orders and logs that attempt
like every other write, and the process sets a new watch when it fails: with n processes waiting, n hand-overs cost in the
order of n² messages, and the delay between release and next hold grows with n. In the line both are the same for two
waiters and for a thousand. The line is also fair. The simple lock is not: any of the woken processes may win.

So use the simple lock only on a path that you share with clients that support no other lock.
`))

// writePage writes the figures as docs/herd.md.
func writePage(w io.Writer, figures []figure, waiters []int, handovers int) error {
	type row struct {
		Name   string
		Events []float64
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
