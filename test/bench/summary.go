package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A result is a row with a figure in a table of figures.md. The summary, the plot and the history are made
// from the tables, so that they include a part that was measured earlier.
type result struct {
	load, contender string
	median          float64
	unit            string
	ratio, target   string
}

// results reads the tables of a page, as writeTable writes them.
func results(page string) []result {
	var all []result
	load := ""
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 9 { // seven between the outer bars
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		load = cmp.Or(cells[1], load)
		value, _, _ := strings.Cut(cells[4], ", ") // what follows is p99 and the like
		digits, unit, _ := strings.Cut(value, " ")
		median, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		if err != nil {
			continue // the table's head, or a reason why there is no figure
		}
		all = append(all, result{load, cells[2], median, unit, cells[6], cells[7]})
	}
	return all
}

// The columns of the summary. The plot shows each column relative to peerColumn.
const (
	onOurs = iota
	onTheirs
	peerColumn
	etcdColumn
	redisColumn
	columns
)

var columnTitles = [columns]string{
	"Turnstile, turnstile serve", "Turnstile, ZooKeeper", "other client, ZooKeeper", "etcd",
	"Redis, appendfsync always",
}

// A mainFigure is a row of the summary.
type mainFigure struct {
	title      string
	load       string
	contenders [columns]string
	peer       string // the peer's name
	lessIsMore bool
	inReadme   bool
}

// lockColumns are the contenders of a lock's row. Some loads change their names.
func lockColumns(ours, goZooKeeper, ourServer string) [columns]string {
	return [columns]string{
		ours + " on " + ourServer, ours + " on " + onZooKeeper, goZooKeeper + " on " + onZooKeeper,
		"etcd concurrency.Mutex on " + onEtcd, "redsync on " + onRedisAOF,
	}
}

var queueColumns = [columns]string{
	"Turnstile on " + onServe, "Turnstile on " + onZooKeeper, "kazoo LockingQueue on " + onZooKeeper,
	"", "BLMOVE on " + onRedisAOF,
}

// recipeColumns are the contenders of the row of another recipe.
func recipeColumns(ours, ourServer, peer string) [columns]string {
	return [columns]string{
		onOurs: ours + " on " + ourServer, onTheirs: ours + " on " + onZooKeeper,
		peerColumn: peer + " on " + onZooKeeper,
	}
}

var mainFigures = []mainFigure{
	{
		title: "one client, one free lock", load: "one client, one free lock: lock + unlock", peer: "go-zookeeper",
		contenders: lockColumns("Turnstile", "go-zookeeper Lock", onServe), inReadme: true,
	},
	{
		title: "16 goroutines, 16 locks", load: "one client, 16 goroutines, 16 locks", peer: "go-zookeeper",
		contenders: lockColumns("Turnstile", "go-zookeeper Lock", onServe),
	},
	{
		title: "64 goroutines of one process, one hot lock", load: "64 goroutines of one process, one hot lock",
		peer: "go-zookeeper, 16", inReadme: true,
		contenders: lockColumns("Turnstile", "go-zookeeper Lock (16)", onServe),
	},
	{
		title: "16 processes, one hot lock, strict FIFO", load: "16 processes, one hot lock, strict FIFO",
		peer: "go-zookeeper", inReadme: true,
		contenders: lockColumns("Turnstile, StrictFIFO", "go-zookeeper Lock", onServe),
	},
	{
		title: "1,000 waiters served in turn, strict FIFO", peer: "go-zookeeper", lessIsMore: true,
		load:       "1,000 waiters of one process, served one after the other",
		contenders: lockColumns("Turnstile, StrictFIFO", "go-zookeeper Lock", onHosted),
	},
	{
		title: "the server: create + delete, 256 in flight", peer: "ZooKeeper, same client",
		load: "durable create + delete, one client (ours), 256 in flight",
		contenders: [columns]string{
			onOurs: "Turnstile's client on " + onServe, peerColumn: "Turnstile's client on " + onZooKeeper,
		},
	},
	{
		title: "queue of 10,000: take + done, one consumer", load: "take + done, one consumer, 10,000 items deep",
		peer: "kazoo", contenders: queueColumns,
	},
	{
		title: "queue of 10,000: take + done, 16 in flight", load: "take + done, 16 in flight, 10,000 items deep",
		peer: "kazoo", contenders: queueColumns, inReadme: true,
	},
	{
		title: "queue of 10,000: put, 1,000 at a time", load: "put, 1,000 at a time, 10,000 items deep",
		peer: "kazoo", contenders: queueColumns,
	},
	{
		title: "queue: put until a waiting consumer has it", peer: "kazoo", lessIsMore: true,
		load:       "from the beginning of a put until a consumer that waits has the item: p50",
		contenders: queueColumns,
	},
	{
		title: "16 goroutines of one process add to one counter", peer: "Curator",
		load:       "16 goroutines of one process, one counter: add 1",
		contenders: recipeColumns("Turnstile", onServe, "Curator DistributedAtomicLong"),
	},
	{
		title: "16 processes add to one counter", peer: "Curator",
		load:       "16 processes, one counter: add 1",
		contenders: recipeColumns("Turnstile", onServe, "Curator DistributedAtomicLong (16 clients of one JVM)"),
	},
	{
		title: "unique ids, one goroutine", peer: "Curator",
		load:       "ids of one process, one goroutine, in blocks of 1,000",
		contenders: recipeColumns("Turnstile Sequence", onServe, "Curator CachedAtomicLong"),
	},
	{
		title: "a cache loads 100,000 nodes", peer: "Curator", lessIsMore: true,
		load:       "loading 100,002 nodes in two trees",
		contenders: recipeColumns(ourCache, onHosted, "Curator CuratorCache"),
	},
	{
		title: "16 processes meet at a double barrier", peer: "Curator, one process",
		load: "16 processes, rounds of a barrier",
		contenders: recipeColumns(
			"Turnstile Double", onServe, "Curator DistributedDoubleBarrier (16 clients of one process)"),
	},
}

// in returns the results of each column; those that are missing have no unit.
func (f *mainFigure) in(all []result) (cells [columns]result) {
	for _, r := range all {
		if i := slices.Index(f.contenders[:], r.contender); i >= 0 && r.load == f.load {
			cells[i] = r
		}
	}
	return cells
}

// summaryTable is the table of the main figures, or of those for the README alone.
func summaryTable(all []result, readme bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | unit | %s |\n", strings.Join(columnTitles[:], " | "))
	fmt.Fprintf(&b, "| --- | --- |%s\n", strings.Repeat(" ---: |", columns))
	for _, f := range mainFigures {
		if readme && !f.inReadme {
			continue
		}
		unit := ""
		var texts []string
		for i, cell := range f.in(all) {
			text := "–"
			if cell.contender != "" {
				text, unit = number(cell.median), cell.unit
			}
			if i == peerColumn {
				text += " (" + f.peer + ")"
			}
			texts = append(texts, text)
		}
		if f.lessIsMore {
			unit += ", less is better"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.title, unit, strings.Join(texts, " | "))
	}
	return b.String()
}

// summary is the page docs/benchmarks.md.
func summary(all []result) string {
	return text("summary-head") + summaryTable(all, false) + text("summary-foot")
}

// The README's table stands between these lines.
const (
	readmeFrom = "<!-- make bench writes from here -->\n"
	readmeTo   = "<!-- to here -->"
)

// inReadme returns the README with the table of today.
func inReadme(readme string, all []result) (string, error) {
	before, rest, from := strings.Cut(readme, readmeFrom)
	_, after, to := strings.Cut(rest, readmeTo)
	if !from || !to {
		return "", fmt.Errorf("README.md: no lines %q and %q", strings.TrimSpace(readmeFrom), readmeTo)
	}
	return before + readmeFrom + summaryTable(all, true) + readmeTo + after, nil
}
