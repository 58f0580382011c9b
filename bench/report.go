package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A row is a contender's result under one load.
type row struct {
	load       string
	contender  contender
	note       string    // why there are no figures
	figures    []float64 // one a round
	also       []series
	unit       string
	lessIsMore bool
	ratios     []comparison // with the subjects
	limit      limit
}

// A series is a second figure of each round.
type series struct {
	name    string
	figures []float64
}

// A comparison is how many times as good as the row's the figure of the subject on a server is.
type comparison struct {
	server string
	ratio  float64
}

// A limit is what a figure must reach by itself.
type limit struct {
	sense sense
	value float64
}

type sense int

const (
	unlimited sense = iota
	atLeast
	atMost
	exactly
)

func (l limit) sign() string { return [...]string{"", "≥", "≤", "="}[l.sense] }

func (l limit) holds(figure float64) bool {
	switch l.sense {
	case atLeast:
		return figure >= l.value
	case atMost:
		return figure <= l.value
	case exactly:
		return figure == l.value
	default:
		return true
	}
}

// promised reports whether the row is about something that is promised, and whether it is kept.
func (r *row) promised() (promised, kept bool) {
	switch {
	case len(r.figures) == 0:
		return false, false
	case r.limit.sense != unlimited:
		return true, r.limit.holds(median(r.figures))
	case r.contender.required > 0 && len(r.ratios) > 0:
		return true, !slices.ContainsFunc(r.ratios, func(c comparison) bool { return c.ratio < r.contender.required })
	default:
		return false, false
	}
}

// writeTable prints all rows as one Markdown table.
func writeTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| load | contender | configuration | median | lowest – highest | Turnstile against it | target |")
	fmt.Fprintln(w, "| --- | --- | --- | ---: | ---: | ---: | ---: |")
	last := ""
	for _, r := range rows {
		title := r.load
		if title == last {
			title = ""
		}
		last = r.load
		if r.note != "" {
			fmt.Fprintf(w, "| %s | %s | %s | %s | | | |\n", title, r.contender.title(), r.contender.config, r.note)
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s – %s | %s | %s |\n", title, r.contender.title(), r.contender.config,
			r.value(), number(slices.Min(r.figures)), number(slices.Max(r.figures)), r.against(), r.target())
	}
}

// value is the median, with the medians of what was measured besides.
func (r *row) value() string {
	parts := []string{strings.TrimSpace(number(median(r.figures)) + " " + r.unit)}
	for _, s := range r.also {
		parts = append(parts, s.name+" "+number(median(s.figures)))
	}
	return strings.Join(parts, ", ")
}

// against tells how the subjects compare with the row.
func (r *row) against() string {
	if len(r.ratios) == 1 {
		return ratio(r.ratios[0].ratio)
	}
	var parts []string
	for _, c := range r.ratios {
		parts = append(parts, ratio(c.ratio)+" ("+c.server+")")
	}
	return strings.Join(parts, ", ")
}

func ratio(v float64) string {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "–"
	case v >= 100:
		return number(v) + " ×"
	case v < 0.1:
		return fmt.Sprintf("%.1g ×", v)
	default:
		return fmt.Sprintf("%.2f ×", v)
	}
}

func (r *row) target() string {
	promised, kept := r.promised()
	if !promised {
		return ""
	}
	verdict := "**met**"
	if !kept {
		verdict = "**NOT met**"
	}
	if r.limit.sense != unlimited {
		return strings.TrimSpace(r.limit.sign()+" "+number(r.limit.value)+" "+r.unit) + " " + verdict
	}
	return fmt.Sprintf("≥ %s × %s", strconv.FormatFloat(r.contender.required, 'f', -1, 64), verdict)
}

// writeVerdict says how many targets were met, and names the others.
func writeVerdict(w io.Writer, rows []row) {
	all, met := 0, 0
	var not []string
	for _, r := range rows {
		switch promised, kept := r.promised(); {
		case kept:
			all++
			met++
		case promised:
			all++
			not = append(not, fmt.Sprintf("- %s, %s: target %s", r.load, r.contender.title(), strings.TrimSuffix(r.target(), " **NOT met**")))
		}
	}
	fmt.Fprintf(w, "Targets met: %d of %d.\n", met, all)
	if len(not) > 0 {
		fmt.Fprintf(w, "\nNOT met:\n\n%s\n", strings.Join(not, "\n"))
	}
}

// number writes a figure with thousands apart, and with digits behind the point where there is little before it.
func number(v float64) string {
	if v != math.Trunc(v) && math.Abs(v) < 10 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	digits := strconv.FormatInt(int64(math.Round(v)), 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// writeReport writes the page docs/benchmarks.md: the machine, who was measured and how, and the table.
func writeReport(w io.Writer, m machine, o options, command, results string) {
	fmt.Fprintln(w, "# Benchmarks")
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Written by `%s` on %s, in %v. All contenders of a load ran in the same run, each in processes of its own, and took turns, round by round:\n", command, m.date, m.took)
	fmt.Fprintf(w, "%d rounds of %v each, after a warm-up (%d for latencies and crowds of waiters); the figure is the median of the rounds.\n", o.rounds, o.duration, min(o.rounds, fewRounds))
	fmt.Fprintln(w, "The clients run on the same machine as the servers. A ratio above 1 means that Turnstile is that many times as good, on the server in brackets.")
	fmt.Fprintln(w)
	fmt.Fprint(w, results)
	for _, s := range []struct {
		title string
		facts []fact
	}{
		{"The machine", m.facts},
		{"Versions", m.versions},
		{"The contenders", configurations},
		{"What is measured", methods},
	} {
		fmt.Fprintf(w, "\n## %s\n\n", s.title)
		for _, f := range s.facts {
			fmt.Fprintf(w, "- **%s**: %s\n", f.name, f.value)
		}
	}
	fmt.Fprintln(w, "\n## Repeat it")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "`make peers` installs the peers on Debian and Ubuntu, `make bench` runs all of it, `make bench BENCHFLAGS='-only hot -duration 2s'` a part.")
	fmt.Fprintln(w, "`turnstile bench lock --processes P --goroutines G --locks L --duration D --connect HOST:PORT` measures one configuration on your own ensemble.")
}

// configurations tell how everybody was configured.
var configurations = []fact{
	{"ZooKeeper 3.8.0", "Debian's package, standalone, durable (forceSync: every request is on the disk before its answer), tickTime 2000, -Xmx1000m, one log device"},
	{"turnstile serve", "the embedded server in a process of its own, durable (one synchronous commit for all requests that wait), default configuration"},
	{"the embedded server", "the same as a library, in a process that can be asked for its live memory"},
	{"etcd", "one member, durable (its log is synchronised before an answer), default configuration"},
	{"Redis", "one server; volatile: `--save \"\" --appendonly no`; durable: `--save \"\" --appendonly yes --appendfsync always`"},
	{"Turnstile", "packages `zk` and `lock` of this repository, one client with one `Mutex` for each path, default configuration: goroutines of one process pass the lock on at most 64 times, or for 50 ms, while another process waits; an unlock does not wait for the server, the round does"},
	{"Turnstile, StrictFIFO", "`Config{Handoff: lock.StrictFIFO}`: a place in the servers' line for each acquisition"},
	{"Turnstile, Retain", "`Config{Retain: time.Minute}`"},
	{"go-zookeeper", "one connection, a `zk.NewLock` for each goroutine"},
	{"Curator", "one client, an `InterProcessMutex` for each thread, `ExponentialBackoffRetry(100, 3)`, -Xmx1000m -XX:+UseSerialGC"},
	{"kazoo", "one client, a `Lock` for each thread"},
	{"etcd's Mutex", "one client, a `concurrency.Session` (a lease of 30 s) for each goroutine, because the mutex is re-entrant within one"},
	{"redsync", "one pool, expiry one minute, as many tries as it takes, default delays"},
	{"redislock", "TTL one minute, `LinearBackoff(100ms)`"},
}

// methods tell what figures mean that do not explain themselves.
var methods = []fact{
	{"cycles/s", "locks that were taken and given back, of all goroutines and processes together, over the time until the last had ended"},
	{"p50, p99, max", "of one round; the table has the medians of the rounds. A lock that is not fair serves few quickly and lets the others wait: see its max"},
	{"two at once", "loads that trace every cycle check that nobody had the lock before the one before had begun to give it back, and fail otherwise"},
	{"client memory", "Go: heap and stacks after a garbage collection; Java: heap after a garbage collection, without the threads' stacks; Python: resident memory"},
	{"server memory", "live bytes of the embedded server after a garbage collection, with the waiters there less without. ZooKeeper's heap, after a full collection, differs by more than that from one moment to the next, so it has no row"},
	{"watch events", "by the server's own counters (`mntr`): packets sent, less packets received"},
}
