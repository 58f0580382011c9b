package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew, from Apache ZooKeeper")

// A profile is one configuration of both servers. All cases of a profile share one server of each kind.
type profile struct {
	name   string
	apache peer.Options
	cases  []testCase
}

type testCase struct {
	name string
	run  func(s *script)
}

// slug returns the case's name for file names.
func (c testCase) slug() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		default:
			return -1
		}
	}, strings.ToLower(c.name))
}

// superDigest is the digest of super:secret.
const superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="

func profiles() []profile {
	return []profile{
		{
			name: "main",
			apache: peer.Options{Properties: map[string]string{
				"zookeeper.forceSync":                                "no",
				"znode.container.checkIntervalMs":                    "600000",
				"zookeeper.DigestAuthenticationProvider.superDigest": superDigest,
			}},
			cases: slices.Concat(
				handshakeCases, frameCases, createCases, nodeCases, multiCases, watchCases, setWatchesCases, aclCases,
				sessionCases, quotaCases, wordCases,
			),
		},
		{
			name: "strict",
			apache: peer.Options{
				Keys: map[string]string{
					"extendedTypesEnabled":   "false",
					"4lw.commands.whitelist": "", // the default
					"maxClientCnxns":         "5",
					"enforceQuota":           "true",
					"reconfigEnabled":        "true",
				},
				Properties: map[string]string{"zookeeper.forceSync": "no", "jute.maxbuffer": "4096"},
			},
			cases: strictCases,
		},
		{
			name: "named",
			apache: peer.Options{
				Keys: map[string]string{
					"4lw.commands.whitelist": "mntr, srst,ruok",
					"enforceQuota":           "true",
					"authProvider.1":         "org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider",
				},
				Properties: map[string]string{
					"zookeeper.forceSync":        "no",
					"zookeeper.ensembleAuthName": "woo, foo",
					"readonlymode.enabled":       "true",
				},
			},
			cases: namedCases,
		},
		{
			name: "reaper",
			apache: peer.Options{Properties: map[string]string{
				"zookeeper.forceSync":             "no",
				"znode.container.checkIntervalMs": "50",
			}},
			cases: reaperCases,
		},
	}
}

// TestScript runs every case on every server and compares the transcripts, line by line.
//
// Promise: 11
func TestScript(t *testing.T) {
	t.Parallel()
	for _, p := range profiles() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			targets := targetsOf(t, p)
			for _, c := range p.cases {
				t.Run(c.slug(), func(t *testing.T) { c.check(t, targets) })
			}
		})
	}
}

// targetsOf starts the servers of a profile, with Apache ZooKeeper first if it is installed.
func targetsOf(t *testing.T, p profile) []*target {
	t.Helper()
	var targets []*target
	if peer.Installed() || os.Getenv("CI") == "true" {
		zk := peer.ZooKeeper(t, p.apache)
		targets = append(targets,
			&target{
				name: "Apache ZooKeeper " + zk.Version(), apache: true, version: zk.Version(), addr: zk.Addr(0),
				restart: func(t *testing.T) {
					t.Helper()
					zk.Restart(0)
				},
			})
	} else {
		t.Log("Apache ZooKeeper is not installed: comparing with its transcripts only; run `make peers`")
	}
	return append(targets, ours(t, p.name)...)
}

// check runs the case on all targets. The first transcript, of Apache ZooKeeper or from its file, is what the others
// must match.
func (c testCase) check(t *testing.T, targets []*target) {
	t.Helper()
	file := filepath.Join("testdata", c.slug()+".txt")
	recorded, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(recorded), "\n"), "\n")
	for _, tg := range targets {
		if tg.company > 0 && slices.ContainsFunc(wordCases, func(w testCase) bool { return w.name == c.name }) {
			continue // these cases count what is sent
		}
		got := c.transcript(t, tg)
		if tg.apache && *update {
			want = got
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got a transcript other than %s:\n%s", tg.name, file, diff(want, got))
		}
	}
}

func (c testCase) transcript(t *testing.T, tg *target) []string {
	t.Helper()
	s := newScript(t, tg, "/"+c.slug())
	defer s.finish()
	c.run(s)
	return s.lines
}

// diff shows the first difference between got and want, with the lines before it.
func diff(want, got []string) string {
	i := 0
	for i < min(len(want), len(got)) && want[i] == got[i] {
		i++
	}
	var b strings.Builder
	for _, line := range want[max(0, i-6):i] {
		b.WriteString("    " + line + "\n")
	}
	for _, line := range want[i:min(len(want), i+4)] {
		b.WriteString("  - " + line + "\n")
	}
	for _, line := range got[i:min(len(got), i+4)] {
		b.WriteString("  + " + line + "\n")
	}
	return b.String()
}
