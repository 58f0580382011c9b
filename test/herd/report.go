package main

// The page that shows the figures.

import (
	_ "embed"
	"fmt"
	"io"
	"text/template"
	"time"
)

//go:embed herd.md.tmpl
var page string

// writePage writes the figures as herd.md.
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
	return template.Must(template.New("herd.md").Parse(page)).Execute(w, struct {
		Date      string
		Waiters   []int
		Rows      []row
		Handovers int
	}{time.Now().UTC().Format(time.DateOnly), waiters, rows, handovers})
}
