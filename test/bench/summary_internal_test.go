package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the repository, seen from here.
const root = "../.."

func TestSummaryOfTheRepositoryIsWhatIsDrawnFromItsFigures(t *testing.T) {
	t.Parallel()
	all := results(read(t, root, allFile))
	if got := read(t, root, summaryFile); got != summary(all) {
		t.Errorf("%s is not what the figures give: go -C test/bench run . -redraw -write ../..", summaryFile)
	}
	if got := read(t, root, plotFile); got != plot(all) {
		t.Errorf("%s is not what the figures give: go -C test/bench run . -redraw -write ../..", plotFile)
	}
	readme := read(t, root, readmeFile)
	want, err := inReadme(readme, all)
	if err != nil {
		t.Fatal(err)
	}
	if readme != want {
		t.Error("README's table is not what the figures give: go -C test/bench run . -redraw -write ../..")
	}
}

func TestMainFiguresAreAllMeasured(t *testing.T) {
	t.Parallel()
	all := results(read(t, root, allFile))
	for _, f := range mainFigures {
		for i, cell := range f.in(all) {
			if f.contenders[i] != "" && cell.contender == "" {
				t.Errorf("%s: no figure of %s under %q", f.title, f.contenders[i], f.load)
			}
		}
	}
}

func TestResultsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rows := []row{
		{load: "l", contender: subject(onServe), figures: []float64{12345}, unit: "cycles/s"},
		{
			load: "l", contender: goZooKeeper(onServe, 2), figures: []float64{1.25}, unit: "cycles/s",
			also: []series{{"p99", []float64{9}}},
		},
		{load: "l", contender: goZooKeeper(onZooKeeper, 2), note: "left out: it is slow"},
		{load: "k", contender: subject(onServe), figures: []float64{7}, unit: ""},
	}
	judge(rows[:2], limit{})
	var table bytes.Buffer
	writeTable(&table, rows)
	got := results(table.String())
	want := []result{
		{"l", "Turnstile on turnstile serve", 12345, "cycles/s", "", ""},
		{"l", "go-zookeeper Lock on turnstile serve", 1.25, "cycles/s", "9,876 ×", "≥ 2 × **met**"},
		{"k", "Turnstile on turnstile serve", 7, "", "", ""},
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

func TestPlotHasADotForEachFigure(t *testing.T) {
	t.Parallel()
	rate := mainFigures[0]
	time := mainFigures[slices.IndexFunc(mainFigures, func(f mainFigure) bool { return f.lessIsMore })]
	all := []result{
		{load: rate.load, contender: rate.contenders[onOurs], median: 200},
		{load: rate.load, contender: rate.contenders[peerColumn], median: 100},
		{load: time.load, contender: time.contenders[onOurs], median: 10},
		{load: time.load, contender: time.contenders[peerColumn], median: 1000},
		{load: time.load, contender: time.contenders[onTheirs], median: 0}, // has no place on a logarithmic axis
	}
	if got := rate.relative(all)[onOurs]; got != 2 {
		t.Errorf("twice as many: got %v, want 2", got)
	}
	if got := time.relative(all)[onOurs]; got != 100 {
		t.Errorf("a hundredth of the time: got %v, want 100", got)
	}
	drawn := plot(all)
	if got, want := strings.Count(drawn, "<circle"), columns+4; got != want {
		t.Errorf("got %d dots, want %d: the legend's and four", got, want)
	}
	for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf`).FindString(drawn); bad != "" {
		t.Errorf("%s in\n%s", bad, drawn)
	}
}

func TestHistoryGrowsByWhatWasMeasured(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{allFile, summaryFile} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := "# T\n\n" + readmeFrom + "old\n" + readmeTo + "\n\nmore\n"
	if err := os.WriteFile(filepath.Join(root, readmeFile), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := []row{
		{load: mainFigures[0].load, contender: subject(onZooKeeper), figures: []float64{300}, unit: "cycles/s"},
		{load: mainFigures[0].load, contender: goZooKeeper(onZooKeeper, 2), figures: []float64{100}, unit: "cycles/s"},
		{load: "another", contender: goZooKeeper(onZooKeeper, 0), figures: []float64{100}, unit: "cycles/s"},
	}
	judge(rows[:2], limit{})
	var table bytes.Buffer
	writeTable(&table, rows)
	written := []section{{title: "Locks", text: table.String()}}
	for _, commit := range []string{"aaaa", "bbbb"} {
		if err := publish(root, written, &machine{date: "2026-01-02", commit: commit}); err != nil {
			t.Fatal(err)
		}
	}
	if err := publish(root, nil, nil); err != nil { // draws, and measures nothing
		t.Fatal(err)
	}
	free := mainFigures[0].load
	want := `date,commit,load,contender,median,unit,ratio,target
2026-01-02,aaaa,FREE,Turnstile on ZooKeeper 3.8.0,300,cycles/s,,
2026-01-02,aaaa,FREE,go-zookeeper Lock on ZooKeeper 3.8.0,100,cycles/s,3.00 ×,≥ 2 × met
2026-01-02,bbbb,FREE,Turnstile on ZooKeeper 3.8.0,300,cycles/s,,
2026-01-02,bbbb,FREE,go-zookeeper Lock on ZooKeeper 3.8.0,100,cycles/s,3.00 ×,≥ 2 × met
`
	if got := strings.ReplaceAll(read(t, root, historyFile), `"`+free+`"`, "FREE"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	readme := read(t, root, readmeFile)
	fresh := strings.Contains(readme, "| 300 | 100 (go-zookeeper) |") && !strings.Contains(readme, "old")
	if !fresh || !strings.HasSuffix(readme, "\n\nmore\n") {
		t.Errorf("README: got\n%s", readme)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
