package lincheck

// The page about a violation.

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"sync"
)

const (
	shownViolations = 50
	shownItems      = 100
)

// queuePage shows violations, and the lives of the items that they concern, in the order of time.
var queuePage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("queue").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>A history that is not a queue's</title>
<style>body{font-family:sans-serif}td,th{padding:0 1em 0 0;text-align:left;vertical-align:top}
td:first-child{text-align:right;font-variant-numeric:tabular-nums}</style>
<h1>{{.Count}} offences</h1>
<ol>{{range .Offences}}<li>{{.}}</li>{{end}}</ol>
{{with .Calls}}<h2>purges, and dead letters put back</h2>
<table><tr><th>ms</th><th>what</th></tr>
{{range .}}<tr><td>{{.At}}</td><td>{{.What}}</td></tr>
{{end}}</table>
{{end}}{{range .Items}}<h2>{{.Name}}</h2>
<table><tr><th>ms</th><th>what</th></tr>
{{range .Events}}<tr><td>{{.At}}</td><td>{{.What}}</td></tr>
{{end}}</table>
{{end}}</html>
`))
})

type queuePageData struct {
	Count    int
	Offences []string
	Calls    []queueEvent // that concern many items
	Items    []queueLife
}

type queueLife struct {
	Name   string
	Events []queueEvent
}

type queueEvent struct {
	at   int64
	At   string
	What string
}

// page returns the data of the page.
func (j *queueJudge) page() queuePageData {
	data := queuePageData{Count: len(j.violations)}
	begin := int64(0)
	for i := range j.Puts {
		if at := j.Puts[i].Asked; begin == 0 || at < begin {
			begin = at
		}
	}
	data.Calls = j.calls(begin)
	seen := make(map[string]bool)
	for _, o := range j.violations[:min(len(j.violations), shownViolations)] {
		data.Offences = append(data.Offences, o.text)
		for _, id := range o.items {
			if seen[id] || len(data.Items) == shownItems {
				continue
			}
			seen[id] = true
			data.Items = append(data.Items, j.life(id, begin))
		}
	}
	return data
}

// calls returns the calls that concern many items.
func (j *queueJudge) calls(begin int64) []queueEvent {
	var calls []queueEvent
	tell := func(asked, done int64, what string) {
		calls = append(calls,
			queueEvent{asked, fmt.Sprintf("%.3f to %.3f", ms(asked-begin), ms(max(done, asked)-begin)), what})
	}
	for _, p := range j.Purges {
		tell(p.Asked, p.Done,
			fmt.Sprintf("client %d purges %d items (answered: %t, failed: %t, alone under session %#x)", p.Client, p.N,
				p.Done > 0, p.Failed, p.Session))
	}
	for _, r := range j.Requeues {
		tell(r.Asked, r.Done,
			fmt.Sprintf("client %d puts back %d of %v (answered: %t, failed: %t)", r.Client, r.N, r.Items, r.Done > 0,
				r.Failed))
	}
	slices.SortStableFunc(calls, func(a, b queueEvent) int { return cmp.Compare(a.at, b.at) })
	return calls
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// life returns the life of an item.
func (j *queueJudge) life(id string, begin int64) queueLife {
	life := queueLife{Name: "item " + id}
	tell := func(at int64, format string, args ...any) {
		if at > 0 {
			life.Events = append(life.Events,
				queueEvent{at, fmt.Sprintf("%.3f", ms(at-begin)), fmt.Sprintf(format, args...)})
		}
	}
	it := j.items[id]
	if it == nil {
		return life
	}
	if p := it.from; p != nil {
		life.Name += fmt.Sprintf(": %q, priority %d, key %q, delayed %t", p.Body, p.Priority, p.Key, p.Delayed)
		tell(p.Asked, "client %d puts it, with %d others", p.Client, len(p.Items)-1)
		tell(p.Put.Done, "client %d was told: %d in, the others not: %t", p.Client, len(p.IDs), p.Certain)
	}
	for _, d := range it.deliveries {
		tell(d.Asked, "%s: asked for", d.describe())
		tell(d.Got, "token %d: delivered", d.Token)
		tell(d.Alive, "token %d: last seen alive", d.Token)
		tell(d.Finish.Asked, "token %d: to be %s %s (mark: %t, with %d others)", d.Token, d.Finish.Fate,
			d.Finish.Reason, d.Finish.Marked, d.Finish.Others)
		tell(d.Finish.Done, "token %d: %s", d.Token, d.Finish.Fate)
	}
	slices.SortStableFunc(life.Events, func(a, b queueEvent) int { return cmp.Compare(a.at, b.at) })
	for _, x := range it.dead {
		life.Events = append(life.Events,
			queueEvent{At: "in the end", What: fmt.Sprintf("dead after %d attempts: %s", x.Attempts, x.Reason)})
	}
	return life
}
