//go:build linux

package hostile_test

import (
	"fmt"
	"os"
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

// write writes the page of a run.
func (res *results) write(t *testing.T, name string) {
	t.Helper()
	const head = "# Hostile clients\n\nWritten by `make hostile MINUTES=10`; [what it attacks, and what must hold](" +
		"../../docs/limits.md#hostile-clients).\n\n"
	if err := os.WriteFile(name, []byte(head+res.table()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (res *results) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured for %v. Without an attack the 99th percentile is %s, "+
		"over all attacks together %s.\n\n", res.length, millis(res.rows[0].took), millis(res.under))
	fmt.Fprintln(&b, "| attack | p99 of the client that behaves | memory, MiB | connections | sent, MiB | limits met |")
	fmt.Fprintln(&b, "| --- | --- | --- | --- | --- | --- |")
	for _, r := range res.rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n",
			r.name, millis(r.took), r.peak, r.connections, r.megabytes, r.hits)
	}
	return b.String()
}

func millis(took []time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(p99(took))/float64(time.Millisecond))
}
