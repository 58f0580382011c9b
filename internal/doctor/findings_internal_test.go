package doctor

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// wellServer is a server with ZooKeeper's defaults and little to do.
func wellServer(name string) server {
	return server{
		name: name, version: known("3.9.5-abc, built on 2026-01-01"),
		settings: known(map[string]string{
			"tickTime": "2000", "minSessionTimeout": "4000", "maxSessionTimeout": "40000", "maxClientCnxns": "60",
			"syncLimit": "3",
		}),
		gauges: known(map[string]string{
			"num_alive_connections": "3", "watch_count": "7", "approximate_data_size": "1000",
		}),
		largest: known(int64(0xfffff)), callers: known(map[string]int{}),
	}
}

// well are the facts of an ensemble about which there is nothing to say.
func well() *facts {
	return &facts{
		asked: 10 * time.Second, granted: 10 * time.Second, reads: []time.Duration{time.Millisecond},
		writes:  known([]time.Duration{2 * time.Millisecond}),
		clock:   known(offset{-time.Millisecond, time.Millisecond}),
		servers: []server{wellServer("zk1:2181"), wellServer("zk2:2181"), wellServer("zk3:2181")},
		voters:  known([]string{"server.1", "server.2", "server.3"}), ephemerals: known(map[int64]int64{}),
		tree: &survey.Snapshot{Listed: 3},
	}
}

func set(s *server, name, value string) { s.settings.value[name] = value }

// Each finding is found, and nothing else is.
func TestFindings(t *testing.T) {
	t.Parallel()
	entry := func(f *facts, e survey.Entry) { f.tree.Entries = append(f.tree.Entries, e) }
	for _, c := range []struct {
		what   string
		change func(f *facts)
		want   string // check, severity, and whether it is unknown; several separated by commas
		text   string // in the finding or its evidence
	}{
		{"all is well", func(*facts) {}, "", ""},
		{"servers without a session", func(f *facts) {
			f.tree, f.granted = nil, 0
			set(&f.servers[0], "tickTime", "6000")
			f.servers[1].down, f.servers[2].down = "it is not serving requests", "connection refused"
		}, "servers error", "zk3:2181: connection refused"},
		{"two that stand alone", func(f *facts) {
			f.servers[0].mode, f.servers[1].mode = "standalone", "standalone"
		}, "ensembles error", "zk2:2181: standalone"},
		{"one that stands alone beside an ensemble", func(f *facts) {
			f.servers[0].mode, f.servers[1].mode = "standalone", "leader"
		}, "ensembles error", "zk1:2181: standalone"},
		{"two leaders", func(f *facts) {
			f.servers[0].mode, f.servers[1].mode, f.servers[2].mode = "leader", "leader", "follower"
		}, "ensembles error", "different ensembles"},
		{"one server by three names", func(f *facts) {
			for i := range f.servers {
				f.servers[i].mode, f.servers[i].addresses = "standalone", []string{"10.0.0.1:2181"}
			}
		}, "", ""},
		{"an ensemble", func(f *facts) {
			f.servers[0].mode, f.servers[1].mode, f.servers[2].mode = "leader", "follower", "observer"
		}, "", ""},
		{"less granted", func(f *facts) { f.granted = 9 * time.Second }, "timeout warning", "9s, not 10s"},
		{"another server grants less", func(f *facts) {
			set(&f.servers[1], "maxSessionTimeout", "9999")
			f.asked, f.granted = 12*time.Second, 12*time.Second
		}, "timeout error,ticks warning", "zk2:2181: maxSessionTimeout 9.999s"},
		{"defaults are not granted", func(f *facts) {
			f.asked, f.granted = 30*time.Second, 30*time.Second
			for i := range f.servers {
				set(&f.servers[i], "minSessionTimeout", "20000")
			}
		}, "ticks warning", "do not grant 10s"},
		{"less than two ticks", func(f *facts) {
			for i := range f.servers {
				set(&f.servers[i], "tickTime", "5001")
				set(&f.servers[i], "syncLimit", "1")
			}
		}, "ticks error", "tickTime 5.001s"},
		{"ticks differ", func(f *facts) { set(&f.servers[2], "tickTime", "1000") }, "ticks warning", "tickTime 1000"},
		{"syncLimit", func(f *facts) { set(&f.servers[0], "syncLimit", "4") }, "sync-limit warning", "4 × tickTime 2s"},
		{"syncLimit of any size", func(f *facts) {
			set(&f.servers[0], "syncLimit", "9007199254740991")
		}, "sync-limit warning", "syncLimit 9007199254740991"},
		{"slow reads", func(f *facts) { f.reads = []time.Duration{time.Second} }, "latency warning", "1s"},
		{"slow writes", func(f *facts) {
			f.writes = known([]time.Duration{1, 2, 626 * time.Millisecond})
		}, "latency warning", "625ms"},
		{"nothing written", func(f *facts) {
			f.writes, f.clock = unknown[[]time.Duration]("why"), unknown[offset]("why")
		}, "latency note unknown,clocks note unknown", "why"},
		{"leader ahead", func(f *facts) {
			f.clock = known(offset{1001 * time.Millisecond, 1100 * time.Millisecond})
		}, "clocks warning", "ahead of"},
		{"leader behind", func(f *facts) {
			f.clock = known(offset{-2 * time.Second, -1500 * time.Millisecond})
		}, "clocks warning", "1.5s behind"},
		{"a slow answer is no offset", func(f *facts) {
			f.clock = known(offset{-5 * time.Second, time.Second})
		}, "", ""},
		{"pause", func(f *facts) { f.lateness = 1300 * time.Millisecond }, "margin warning", "1.3s"},
		{"long pause", func(f *facts) {
			f.servers[0].gauges.value["max_jvm_pause_time_ms"] = "2501"
		}, "margin error", "zk1:2181: its process has paused for 2.501s"},
		{"many connections", func(f *facts) {
			f.servers[0].callers = known(map[string]int{"10.0.0.1": 48, "10.0.0.2": 47, "10.0.0.3": 60})
		}, "connections warning", "zk1:2181: 10.0.0.3 has 60 of 60"},
		{"many connections, unknown whose", func(f *facts) {
			f.servers[0].callers = unknown[map[string]int]("cons is off")
		}, "connections note unknown", "cons is off"},
		{"any number of connections", func(f *facts) { set(&f.servers[0], "maxClientCnxns", "0") }, "", ""},
		{"watches", func(f *facts) {
			f.servers[1].gauges.value["watch_count"] = "100000"
		}, "watches warning", "zk2:2181: 100000 watches"},
		{"a large node", func(f *facts) {
			f.nodes.data = []size{{"/small", 800_000}, {"/a", 900_000}}
		}, "sizes warning", "/a: 879 KiB"},
		{"a list that is too long", func(f *facts) {
			f.nodes.lists = []size{{"/a", 2 << 20}, {"/b", 3 << 20}}
		}, "sizes error", "/b: 3072 KiB"},
		{"another limit", func(f *facts) {
			f.servers[1].largest = known(int64(100_000))
			f.nodes.data = []size{{"/a", 90_000}}
		}, "sizes warning", "jute.maxbuffer (98 KiB)"},
		{"not listed", func(f *facts) {
			f.tree.TooLarge = survey.Missed{Count: 12, Paths: []string{"/a"}}
		}, "sizes error", "and 11 more"},
		{"many ephemeral nodes", func(f *facts) {
			f.servers[0].largest = unknown[int64]("why")
			f.ephemerals = known(map[int64]int64{-1: 600 << 10, 2: 100, 3: 501 << 10})
		}, "ephemerals warning", "session 0xffffffffffffffff: 600 KiB"},
		{"too many ephemeral nodes", func(f *facts) {
			f.ephemerals = known(map[int64]int64{1: 2 << 20})
		}, "ephemerals error", "2048 KiB"},
		{"ephemeral nodes unknown", func(f *facts) {
			f.ephemerals = unknown[map[int64]int64]("dump is off")
		}, "ephemerals note unknown", "dump is off"},
		{"sequence numbers", func(f *facts) {
			entry(f, survey.Entry{Summary: lock.Summary{Numbers: lock.Numbers{Path: "/jobs/a", Left: 7, Low: true}}})
		}, "sequences warning", "/jobs/a: 7 are left"},
		{"directories", func(f *facts) { f.nodes.empty = []string{"/b", "/a"} }, "empty-directories note", "2 empty"},
		{"groups", func(f *facts) {
			apart := []lock.Contender{{Group: 0}, {Group: 1}}
			entry(f, survey.Entry{Path: "/jobs/a", Summary: lock.Summary{Groups: 2, Holders: apart}})
		}, "groups error", "/jobs/a: 2 groups"},
		{"one that may hold", func(f *facts) {
			entry(f, survey.Entry{Path: "/jobs/a", Summary: lock.Summary{Groups: 2, MayHold: 1}})
		}, "groups warning", "/jobs/a: 2 groups"},
		{"one that waits for all", func(f *facts) {
			entry(f, survey.Entry{Path: "/jobs/a", Summary: lock.Summary{Groups: 2}})
		}, "", ""},
		{"a node of no session", func(f *facts) {
			first := &lock.Contender{Behind: "/jobs/a/x-lock-0000000000"}
			entry(f, survey.Entry{Path: "/jobs/a", Summary: lock.Summary{First: first}})
		}, "strays error", "/jobs/a/x-lock-0000000000"},
		{"read-only", func(f *facts) { f.servers[0].mode = "read-only" }, "servers error", "it only reads"},
		{"open", func(f *facts) {
			f.open = access{looked: 3, more: 5, open: []string{"/jobs/a"}}
		}, "acl note", "at 1 of 3 paths"},
		{"open to a client that logs in", func(f *facts) {
			f.credentials, f.open = true, access{looked: 3, open: []string{"/jobs/a"}}
		}, "acl warning", "/jobs/a"},
		{"four servers", func(f *facts) {
			f.voters.value = append(f.voters.value, "server.4")
		}, "even warning", "4 servers vote: the ensemble survives the loss of 1, as one of 3"},
		{"voters unknown", func(f *facts) { f.voters = unknown[[]string]("groups") }, "even note unknown", "groups"},
		{"no ensemble", func(f *facts) { f.voters.value = nil }, "", ""},
		{"versions", func(f *facts) {
			f.servers[0].version = known("3.9.4-abc, built on 2025-01-01")
		}, "versions warning", "zk1:2181: 3.9.4-abc"},
		{"hole", func(f *facts) {
			for i, version := range []string{"3.8.3-x", "3.8.3-x", "3.8.3-x"} {
				f.servers[i].version = known(version)
			}
		}, "versions warning", "CVE-2024-23944"},
		{"words off", func(f *facts) {
			f.servers[0].settings = unknown[map[string]string]("conf is not executed")
			f.servers[0].gauges = unknown[map[string]string]("mntr is not executed")
			f.servers[0].version = unknown[string]("srvr is not executed")
		}, "words note unknown", "its numbers of connections and watches (mntr is not executed)"},
		{"syncLimit unknown", func(f *facts) {
			delete(f.servers[1].settings.value, "syncLimit")
		}, "words note unknown", "zk2:2181: unknown are its syncLimit"},
		{"a server down", func(f *facts) {
			f.servers[1] = server{name: "zk2:2181", down: "connection refused"}
			f.servers[1].nothing("it does not serve")
		}, "servers error", "connection refused"},
		{"a name unknown", func(f *facts) {
			f.servers[1] = server{name: "zk2:2181", down: "no such host", lookup: "no such host"}
			f.servers[1].nothing("it does not serve")
		}, "servers error", "cannot be looked up"},
		{"unwell", func(f *facts) { f.servers[1].unwell = `"no"` }, "servers warning", `zk2:2181: "no"`},
		{"tree in parts", func(f *facts) {
			f.tree.Partial = "stopped after 1s"
			f.tree.Denied = survey.Missed{Count: 1, Paths: []string{"/private"}}
		}, "tree note unknown,tree note unknown", "/private"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			f := well()
			c.change(f)
			var got []string
			list := f.findings()
			for _, f := range list {
				one := f.Check + " " + string(f.Severity)
				if f.Unknown {
					one += " unknown"
				}
				got = append(got, one)
				if f.Text == "" || len(f.Evidence) == 0 || f.Remedy == "" || f.Page == "" {
					t.Errorf("it lacks a part: %+v", f)
				}
			}
			if strings.Join(got, ",") != c.want || !strings.Contains(fmt.Sprint(list), c.text) {
				t.Errorf("got %v: %v, want %q with %q", got, list, c.want, c.text)
			}
		})
	}
}

func TestLongEvidenceIsCut(t *testing.T) {
	t.Parallel()
	f := well()
	for i := range 100 {
		f.nodes.empty = append(f.nodes.empty, fmt.Sprintf("/%03d", i))
	}
	f.open = access{looked: 1, open: []string{"/" + strings.Repeat("\xff", 10_000)}}
	list := f.findings()
	if n := list[0].Evidence; len(n) != maxEvidence+1 || n[maxEvidence] != "and 90 more" {
		t.Error(n)
	}
	if text := list[1].Evidence[0]; len(text) > 4*maxShown || !strings.HasSuffix(text, "…") {
		t.Error(text)
	}
}

// The pages that the findings name exist, and so do their headings.
func TestPagesOfFindingsExist(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, name := range []string{"session.go", "servers.go", "tree.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	pages := regexp.MustCompile(`"(docs/[^"]*)"`).FindAllStringSubmatch(source.String(), -1)
	if len(pages) < 5 {
		t.Fatal(pages)
	}
	for _, m := range pages {
		page, heading, _ := strings.Cut(m[1], "#")
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Error(err)
		}
		want := "\n#+ " + strings.ReplaceAll(regexp.QuoteMeta(heading), "-", "[ -]") + "\n"
		if heading != "" && !regexp.MustCompile("(?i)"+want).Match(text) {
			t.Errorf("%s has no heading %s", page, heading)
		}
	}
}

// The page for operators names each check.
func TestPageListsAllChecks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "\n## What turnstile doctor finds\n")
	for _, name := range Checks() {
		if !strings.Contains(list, "\n| `"+name+"` |") {
			t.Errorf("docs/operating.md has no row for %s", name)
		}
	}
}

func TestHoleIsOfTheVersionsThatHaveIt(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"3.5.9-a": false, "3.6.0-a": true, "3.7.2": true, "3.8.0-11+deb12u2": true, "3.8.3-x": true, "3.8.4-x": false,
		"3.9.0": true, "3.9.1, built": true, "3.9.2": false, "3.10.0": false, "4.0.0": false, "": false,
		"x3.8.0":        false,
		"99999.99999.9": false,
	} {
		if got := holes[0].has(version); got != want {
			t.Errorf("%q: got %t", version, got)
		}
	}
}

func TestP99(t *testing.T) {
	t.Parallel()
	var list []time.Duration
	for i := range 200 {
		list = append(list, time.Duration(200-i))
	}
	if got := p99(list); got != 198 {
		t.Error(got)
	}
	if got := p99(list[:20]); got != 200 {
		t.Error(got)
	}
	if got := p99(nil); got != 0 {
		t.Error(got)
	}
}

func TestNodesAreSeen(t *testing.T) {
	t.Parallel()
	var n nodes
	old := time.Now().Add(-2 * time.Hour).UnixMilli()
	n.see("/lists", []string{strings.Repeat("x", smallest)}, zk.Stat{})
	n.see("/data", nil, zk.Stat{DataLength: smallest})
	n.see("/left", nil, zk.Stat{Cversion: 2, Ctime: old})
	n.see("/young", nil, zk.Stat{Cversion: 2, Ctime: time.Now().UnixMilli()})
	n.see("/written", nil, zk.Stat{Cversion: 2, Ctime: old, Version: 1})
	n.see("/container", nil, zk.Stat{Cversion: 2, Ctime: old, EphemeralOwner: -1 << 63})
	n.see("/", nil, zk.Stat{Cversion: 2, Ctime: old})
	if len(n.lists) != 1 || n.lists[0] != (size{"/lists", reply + 4 + smallest}) ||
		len(n.data) != 1 || n.data[0] != (size{"/data", smallest}) || !slices.Equal(n.empty, []string{"/left"}) {
		t.Errorf("%+v %+v %q", n.lists, n.data, n.empty)
	}
}
