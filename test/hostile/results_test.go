//go:build linux

package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// results is what a run has shown.
type results struct {
	length     time.Duration
	quietFiles int
	rows       []row
	under      []time.Duration // any attack
}

// row is one attack.
type row struct {
	name                   string
	took                   []time.Duration
	peak                   int // MiB
	connections, megabytes int // of the attackers
	hits                   string
}

func (r row) String() string {
	return fmt.Sprintf("%-24s p99 %8v of %5d, memory %4d MiB; attackers: %6d connections, %6d MiB sent; %s",
		r.name, p99(r.took).Round(time.Microsecond), len(r.took), r.peak, r.connections, r.megabytes, r.hits)
}

const (
	tableBegin = "<!-- make hostile MINUTES=10 writes from here -->\n"
	tableEnd   = "<!-- to here -->\n"
)

// write puts the table into docs/limits.md.
func (res *results) write(t *testing.T, docs string) {
	t.Helper()
	name := filepath.Join(docs, "limits.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", name)
	}
	if err := os.WriteFile(name, []byte(before+tableBegin+res.table()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (res *results) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nMeasured for %v. Without an attack the 99th percentile is %s, "+
		"over all attacks together %s.\n\n", res.length, millis(res.rows[0].took), millis(res.under))
	fmt.Fprintln(&b, "| attack | p99 of the client that behaves | memory, MiB | connections | sent, MiB | limits met |")
	fmt.Fprintln(&b, "| --- | --- | --- | --- | --- | --- |")
	for _, r := range res.rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n",
			r.name, millis(r.took), r.peak, r.connections, r.megabytes, r.hits)
	}
	fmt.Fprintln(&b)
	return b.String()
}

func millis(took []time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(p99(took))/float64(time.Millisecond))
}
