// Package doctor examines an ensemble and the tree on it, and says what is wrong, what may become so, and what could
// not be found out. It only reads, unless it is told to write a probe node.
package doctor

// Findings, and an examination from its beginning to its end.

import (
	"cmp"
	"context"
	"net"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // locks may fail, or the ensemble
	Warning Severity = "warning" // it will become one, or harms other programs
	Note    Severity = "note"    // to know
)

// A Finding is one thing that was found, or that could not be found out.
type Finding struct {
	Check    string   // which check has found it: one of Checks
	Severity Severity // Note if Unknown
	Unknown  bool     // it could not be found out; Evidence says why
	Text     string   // one sentence
	Evidence []string // what was seen, one thing each; others may have written parts of it
	Remedy   string   // what to do
	Page     string   // where to read more: a page of docs/, with a heading
}

// A Report is what an examination has found.
type Report struct {
	Findings []Finding // in the order of Checks
	Servers  int       // how many were asked
	Tree     *survey.Snapshot
}

// Count returns how many findings have a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Config says what to examine, and how.
type Config struct {
	Root        string        // the part of the tree; "/" if empty
	Time        time.Duration // for reading the tree; 30 s if zero
	Asked       time.Duration // the session timeout that the client asked for
	Credentials bool          // the client has some
	Write       bool          // make a probe node, write to it, and delete it
	AdminPort   int           // of the servers' HTTP commands; 0 asks none

	// Word asks a server a four-letter word. The answer has at most so many bytes.
	Word func(ctx context.Context, server, word string, most int64) (string, error)
	// Lookup returns the addresses of a host; net.DefaultResolver.LookupHost if nil.
	Lookup func(ctx context.Context, host string) ([]string, error)

	_ struct{}
}

// usualTimeout is zk.Config.Timeout if it is zero.
const usualTimeout = 10 * time.Second

// Examine examines the ensemble of a client. What servers answer may be anything: what it cannot read is unknown. It
// returns ctx's cause if that ends, or the client's error.
func Examine(ctx context.Context, client *zk.Client, cfg Config) (*Report, error) {
	f, err := gather(ctx, client, cfg.withDefaults())
	if err != nil {
		return nil, err
	}
	return &Report{Findings: f.findings(), Servers: len(f.servers), Tree: f.tree}, nil
}

// ExamineServers examines only the servers of a connect string, as zk.Client.Servers names them: for when none of them
// gives out a session. It returns ctx's cause if that ends.
func ExamineServers(ctx context.Context, names []string, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	servers := askAll(ctx, names, cfg)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f := &facts{asked: cfg.Asked, servers: servers}
	return &Report{Findings: f.findings(), Servers: len(servers), Tree: new(survey.Snapshot)}, nil
}

func (cfg Config) withDefaults() Config {
	cfg.Asked = cmp.Or(cfg.Asked, usualTimeout)
	if cfg.Lookup == nil {
		cfg.Lookup = net.DefaultResolver.LookupHost
	}
	return cfg
}

// A check looks for one thing.
type check struct {
	name    string
	look    func(f *facts) []Finding
	session bool // it needs one, and so is not made if no server gives one out
}

// checks are all checks, in the order in which their findings are shown.
var checks = []check{
	{"timeout", checkTimeout, true},
	{"ticks", checkTicks, false},
	{"sync-limit", checkSyncLimit, true},
	{"latency", checkLatency, true},
	{"clocks", checkClocks, true},
	{"margin", checkMargin, true},
	{"connections", checkConnections, false},
	{"watches", checkWatches, false},
	{"sizes", checkSizes, true},
	{"ephemerals", checkEphemerals, true},
	{"sequences", checkSequences, true},
	{"empty-directories", checkEmpty, true},
	{"groups", checkGroups, true},
	{"strays", checkStrays, true},
	{"acl", checkACL, true},
	{"even", checkEven, true},
	{"versions", checkVersions, false},
	{"words", checkWords, false},
	{"servers", checkServers, false},
	{"ensembles", checkEnsembles, false},
	{"tree", checkTree, true},
}

// Checks returns the names of all checks.
func Checks() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// findings makes all checks that can be made.
func (f *facts) findings() []Finding {
	var all []Finding
	for _, c := range checks {
		if c.session && f.tree == nil {
			continue
		}
		found := c.look(f)
		slices.SortStableFunc(found, func(a, b Finding) int { return a.Severity.rank() - b.Severity.rank() })
		for _, finding := range found {
			finding.Check = c.name
			finding.Evidence = clipped(finding.Evidence)
			all = append(all, finding)
		}
	}
	return all
}

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

const (
	maxEvidence = 10  // so many things are shown of a finding
	maxShown    = 300 // bytes of one
)
