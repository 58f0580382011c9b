//go:build unix

package partitions_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"
)

// results has the samples of all tests.
var results collection

type collection struct {
	mu      sync.Mutex // guards samples
	samples []sample
}

func (c *collection) add(s sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, s)
}

// projects are the columns of the results.
var projects = []string{ours.name, curatorName, kazooName, goZooKeeperName, etcdName}

// The part of partitions.md that write replaces is between these lines.
const begins, ends = "<!-- results -->\n", "<!-- /results -->\n"

// write updates the results in partitions.md and writes partitions.svg, both in dir. The rest of partitions.md stays.
func (c *collection) write(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.samples) == 0 {
		return nil
	}
	var section bytes.Buffer
	if err := page.Execute(&section, c.facts()); err != nil {
		return err
	}
	name := filepath.Join(dir, "partitions.md")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, rest, _ := strings.Cut(string(text), begins)
	_, after, _ := strings.Cut(rest, ends)
	return errors.Join(
		os.WriteFile(name, []byte(before+begins+section.String()+ends+after), 0o644),
		os.WriteFile(filepath.Join(dir, "partitions.svg"), timeline(c.samples), 0o644),
	)
}

// facts is the data of the page.
type facts struct {
	Date     string
	Tick     time.Duration
	Phases   int
	Samples  int // ours in which the contender acquired without a release of the holder
	Kept     int // ours in which the hold outlasted the partition
	Released int // ours in which the holder was told and released before its session ended
	Projects []string
	Rows     []row
	Lost     string // how much later Curator reports LOST than SUSPENDED
	Versions string
}

type row struct {
	Shape, Timeout string
	Cells          []string
}

func (c *collection) facts() facts {
	f := facts{Date: time.Now().UTC().Format(time.DateOnly), Tick: c.samples[0].tick, Projects: projects}
	for _, s := range c.samples {
		f.Phases = max(f.Phases, s.phase+1)
		switch {
		case s.project != ours.name:
		case s.kept:
			f.Kept++
		case s.released:
			f.Released++
		default:
			f.Samples++
		}
	}
	for _, sh := range shapes {
		for _, timeout := range timeouts {
			r := row{Shape: sh.name, Timeout: fmt.Sprintf("%d ticks", timeout)}
			for _, p := range projects {
				r.Cells = append(r.Cells, worst(c.of(p, sh.name, timeout)))
			}
			if slices.ContainsFunc(r.Cells, func(cell string) bool { return cell != none }) {
				f.Rows = append(f.Rows, r)
			}
		}
	}
	var curators []sample
	for _, timeout := range timeouts {
		curators = append(curators, c.of(curatorName, "", timeout)...)
	}
	f.Lost, f.Versions = later(curators), versions()
	return f
}

// of returns the samples of a project in a shape, or in all shapes if shape is empty, in which the contender acquired
// without a release of the holder.
func (c *collection) of(project, shape string, timeout int) []sample {
	return slices.DeleteFunc(slices.Clone(c.samples), func(s sample) bool {
		return s.project != project || shape != "" && s.shape != shape || s.timeout != timeout || s.kept ||
			s.released || s.acquired == 0
	})
}

const none = "–"

// worst returns the result of the worst sample.
func worst(samples []sample) string {
	if len(samples) == 0 {
		return none
	}
	return verdict(slices.MinFunc(samples, func(a, b sample) int { return int(a.distance() - b.distance()) }))
}

// verdict returns the result of a sample.
func verdict(s sample) string {
	switch d := s.distance(); {
	case s.told == 0:
		return "**never told**"
	case d <= 0:
		return fmt.Sprintf("**%.2f s overlap**", -d.Seconds())
	default:
		return fmt.Sprintf("%.2f s before", d.Seconds())
	}
}

// later returns how much later the second notice came than the first.
func later(samples []sample) string {
	samples = slices.DeleteFunc(samples, func(s sample) bool { return s.lost == 0 || s.told == 0 })
	if len(samples) == 0 {
		return none
	}
	after := func(s sample) float64 { return time.Duration(s.lost - s.told).Seconds() }
	least, most := after(samples[0]), after(samples[0])
	for _, s := range samples {
		least, most = min(least, after(s)), max(most, after(s))
	}
	return fmt.Sprintf("%.1f to %.1f s", least, most)
}

// versions returns the known versions of the software that was measured.
func versions() string {
	var list []string
	for _, p := range []struct{ name, debian string }{
		{"ZooKeeper", "zookeeper"}, {curatorName, "libcurator-recipes-java"}, {kazooName, "python3-kazoo"}, {
			etcdName,
			"etcd-server",
		},
	} {
		if out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", p.debian).Output(); err == nil {
			list = append(list, p.name+" "+string(out))
		}
	}
	for _, p := range []struct{ name, module string }{
		{goZooKeeperName, "github.com/go-zookeeper/zk"}, {"etcd's client", "go.etcd.io/etcd/client/v3"},
	} {
		if out, err := exec.Command("go", "-C", "../bench", "list", "-m", "-f", "{{.Version}}",
			p.module).Output(); err == nil {
			list = append(list, p.name+" "+strings.TrimSpace(string(out)))
		}
	}
	return strings.Join(list, ", ")
}

var page = template.Must(template.New("partitions.md").Parse(`
Written by ` + "`make partitions`" + ` on {{.Date}}: three servers, tickTime {{.Tick}}, {{.Phases}} partitions of
each shape. Session timeouts are in ticks. A cell is the worst sample: how long the holder had its first notice of any
kind before another contender acquired, or for how long both held without a notice. For Turnstile that is the worst of
all kinds, {{.Samples}} samples. In {{.Kept}} more the hold outlasted the partition, and in {{.Released}} the holder was
told and released in time, while its session lasted.

| shape | timeout |{{range .Projects}} {{.}} |{{end}}
| --- | --- |{{range .Projects}} --- |{{end}}
{{range .Rows}}| {{.Shape}} | {{.Timeout}} |{{range .Cells}} {{.}} |{{end}}
{{end}}
The holder's first notice is, for Turnstile, the end of the hold's context; for Curator and kazoo, SUSPENDED or LOST;
for go-zookeeper, the event StateDisconnected or StateExpired; for etcd, the end of the session. A program that
continues after SUSPENDED and stops at LOST learns even later: Curator's LOST came {{.Lost}} later. kazoo's LOST and
go-zookeeper's StateExpired come when the client reaches a server again.

Versions: {{.Versions}}.

![What holders believe during a partition, by project](partitions.svg)

`))
