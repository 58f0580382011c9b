package doctor

// Checks of servers and of the ensemble that they are.

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// checkConnections: has an address nearly as many connections as it may have?
func checkConnections(f *facts) (list []Finding) {
	var many, unclear []string
	for _, s := range f.serving() {
		limit, ok := s.setting("maxClientCnxns")
		if !ok || s.gauges.unknown != "" {
			continue // checkWords says so
		}
		if s.callers.unknown != "" {
			unclear = append(unclear, s.name+": "+s.callers.unknown)
			continue
		}
		for _, address := range slices.SortedFunc(maps.Keys(s.callers.value), func(a, b string) int {
			return cmp.Or(cmp.Compare(s.callers.value[b], s.callers.value[a]), cmp.Compare(a, b))
		}) {
			if n := int64(s.callers.value[address]); near(n, limit) {
				many = append(many, fmt.Sprintf("%s: %s has %d of %d", s.name, address, n, limit))
			}
		}
	}
	const page, remedy = "docs/operating.md#what-turnstile-doctor-finds",
		"raise maxClientCnxns, or use fewer connections: one client for each process suffices"
	if len(many) > 0 {
		list = append(list, Finding{
			Severity: Warning,
			Text:     "an address has nearly as many connections as a server accepts from it: it closes further ones",
			Evidence: many, Remedy: remedy, Page: page,
		})
	}
	if len(unclear) > 0 {
		list = append(list, Finding{
			Severity: Note, Unknown: true,
			Text:     "whether an address has nearly as many connections as a server accepts from it is unknown",
			Evidence: unclear, Remedy: "allow the four-letter word cons", Page: page,
		})
	}
	return list
}

// manyWatches is how many watches of a server are many: each costs memory, and time when it fires.
const manyWatches = 100_000

// checkWatches: has a server very many watches?
func checkWatches(f *facts) []Finding {
	many := f.each(func(s *server) string {
		if n, ok := s.gauge("watch_count"); ok && n >= manyWatches {
			return fmt.Sprintf("%d watches", n)
		}
		return ""
	})
	if len(many) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning,
		Text:     fmt.Sprintf("a server has more than %d watches", manyWatches),
		Evidence: many,
		Remedy: "find out whose they are (the words wchs and wchc, which are slow with so many); a client that " +
			"follows a tree needs one recursive watch",
		Page: pageDoctor,
	}}
}

// manyEphemerals is how many bytes of paths of one session are many.
const manyEphemerals = 500 << 10

// checkEphemerals: has a session so many ephemeral nodes that its end does not fit into a transaction?
func checkEphemerals(f *facts) []Finding {
	const page = pageDoctor
	if f.ephemerals.unknown != "" {
		return []Finding{{
			Severity: Note, Unknown: true, Text: "how many ephemeral nodes each session has is unknown",
			Evidence: []string{f.ephemerals.unknown}, Remedy: "allow the four-letter word dump", Page: page,
		}}
	}
	limit, how := f.largest()
	severity, evidence := Warning, []string(nil)
	sums := f.ephemerals.value
	largestFirst := func(a, b int64) int { return cmp.Compare(sums[b], sums[a]) }
	for _, id := range slices.SortedFunc(maps.Keys(sums), largestFirst) {
		if sums[id] < manyEphemerals && !near(sums[id], limit) {
			break
		}
		if sums[id] >= limit {
			severity = Error
		}
		evidence = append(evidence, fmt.Sprintf("session 0x%x: %s of paths", uint64(id), kibibytes(sums[id])))
	}
	if len(evidence) == 0 {
		return nil
	}
	return []Finding{{
		Severity: severity,
		Text: fmt.Sprintf("when a session ends, one transaction lists the paths of all its ephemeral nodes; if that "+
			"exceeds jute.maxbuffer (%s%s), the ensemble stops and does not start again (ZOOKEEPER-4306)",
			kibibytes(limit), how),
		Evidence: evidence,
		Remedy:   "spread them over several sessions, or raise jute.maxbuffer of all servers before one of these ends",
		Page:     page,
	}}
}

// largest returns the smallest jute.maxbuffer of the servers, and a remark if it is assumed.
func (f *facts) largest() (bytes int64, remark string) {
	const usual = 0xfffff // of a server of which nothing else is known
	for _, s := range f.serving() {
		n := int64(usual)
		if s.largest.unknown == "" {
			n = s.largest.value
		} else {
			remark = ", the default"
		}
		if bytes == 0 || n < bytes {
			bytes = n
		}
	}
	return cmp.Or(bytes, usual), remark
}

func kibibytes(n int64) string { return fmt.Sprintf("%.0f KiB", float64(n)/1024) }

// checkEven: has the ensemble a server too many?
func checkEven(f *facts) []Finding {
	if f.voters.unknown != "" {
		return []Finding{{
			Severity: Note, Unknown: true, Text: "how many servers vote is unknown",
			Evidence: []string{f.voters.unknown}, Remedy: "allow clients to read /zookeeper/config", Page: pageDoctor,
		}}
	}
	n := len(f.voters.value)
	if n == 0 || n%2 != 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning,
		Text: fmt.Sprintf("%d servers vote: the ensemble survives the loss of %d, as one of %d does, and a partition "+
			"into halves stops it", n, (n-1)/2, n-1),
		Evidence: []string{"/zookeeper/config: " + strings.Join(f.voters.value, " ")},
		Remedy:   "add a server, or make one an observer",
		Page:     pageDoctor,
	}}
}

// A hole is a weakness of versions from first on, until one that has it no more.
type hole struct {
	name, means string
	ranges      [][2]string
}

// holes are those that matter to a tree that several teams share.
var holes = []hole{
	{
		"CVE-2024-23944", "a watch shows the names of nodes that its client may not read",
		[][2]string{{"3.6.0", "3.8.0"}, {"3.8.0", "3.8.4"}, {"3.9.0", "3.9.2"}},
	},
}

var number3 = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})`)
})

// release returns the three numbers of a version as one that can be compared; 0 if it has none.
func release(version string) int {
	m := number3().FindStringSubmatch(version)
	if m == nil {
		return 0
	}
	n := 0
	for _, part := range m[1:] {
		k, _ := strconv.Atoi(part) // the expression has found digits
		n = n*10_000 + k
	}
	return n
}

func (h hole) has(version string) bool {
	n := release(version)
	return slices.ContainsFunc(h.ranges, func(r [2]string) bool { return release(r[0]) <= n && n < release(r[1]) })
}

// checkVersions: are all servers of one version, without a known hole?
func checkVersions(f *facts) (list []Finding) {
	versions := make(map[string]bool)
	lines := f.each(func(s *server) string {
		if s.version.unknown != "" {
			return ""
		}
		short, _, _ := strings.Cut(s.version.value, ", built")
		versions[short] = true
		return short
	})
	if len(versions) > 1 {
		list = append(list, Finding{
			Severity: Warning, Text: "the servers have different versions", Evidence: lines,
			Remedy: "finish the upgrade", Page: "docs/support.md",
		})
	}
	for _, h := range holes {
		with := f.each(func(s *server) string {
			if s.embedded || !h.has(s.version.value) {
				return ""
			}
			short, _, _ := strings.Cut(s.version.value, ", built")
			return short
		})
		if len(with) > 0 {
			list = append(list, Finding{
				Severity: Warning,
				Text: fmt.Sprintf("these versions have %s, unless the distribution has closed it: %s",
					h.name, h.means),
				Evidence: with,
				Remedy:   "upgrade to 3.8.4, 3.9.2 or later, or see what the distribution says of its package",
				Page:     "docs/support.md",
			})
		}
	}
	return list
}

// checkWords: what is unknown because servers do not tell it?
func checkWords(f *facts) []Finding {
	evidence := f.each(func(s *server) string {
		var lacks []string
		if s.version.unknown != "" {
			lacks = append(lacks, "its version")
		}
		switch {
		case s.settings.unknown != "":
			lacks = append(lacks, "its tickTime, syncLimit and limits of session timeouts and connections ("+
				s.settings.unknown+")")
		case !s.embedded && len(f.voters.value) > 1 && s.settings.value["syncLimit"] == "":
			lacks = append(lacks, "its syncLimit, which only conf tells")
		}
		if s.gauges.unknown != "" {
			lacks = append(lacks, "its numbers of connections and watches ("+s.gauges.unknown+")")
		}
		if len(lacks) == 0 {
			return ""
		}
		return "unknown are " + strings.Join(lacks, "; ")
	})
	if len(evidence) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Note, Unknown: true, Text: "some servers do not tell what other checks need", Evidence: evidence,
		Remedy: "allow the words conf and mntr (4lw.commands.whitelist, or turnstile serve --words conf,mntr), or " +
			"HTTP commands at the port of --admin-port",
		Page: "docs/security.md#who-may-see-what",
	}}
}

// checkServers: can each server of the connect string be found, and does it serve?
func checkServers(f *facts) (list []Finding) {
	var names, down, unwell []string
	for _, s := range f.servers {
		switch {
		case s.lookup != "":
			names = append(names, s.name+": "+s.lookup)
		case s.down != "":
			down = append(down, s.name+": "+s.down)
		case s.mode == "read-only":
			down = append(down, s.name+": it only reads, because it has lost its quorum: most servers of the ensemble")
		case s.unwell != "":
			unwell = append(unwell, s.name+": "+s.unwell)
		}
	}
	for _, found := range []Finding{
		{
			Severity: Error, Evidence: names,
			Text:   "names of the connect string cannot be looked up: clients reach one server less",
			Remedy: "correct the connect string, or the name service",
		},
		{
			Severity: Error, Evidence: down, Text: "servers of the connect string do not serve",
			Remedy: "start them, and look at their logs",
		},
		{
			Severity: Warning, Evidence: unwell, Text: "servers do not say imok when they are asked ruok",
			Remedy: "look at their logs",
		},
	} {
		if len(found.Evidence) > 0 {
			found.Page = pageDoctor
			list = append(list, found)
		}
	}
	return list
}

// checkEnsembles: are all servers of the connect string of one ensemble? A server that stands alone is none of another,
// and no ensemble has two leaders.
func checkEnsembles(f *facts) []Finding {
	var servers, alone, leaders []*server
	for _, s := range f.serving() {
		if slices.ContainsFunc(servers, s.is) {
			continue
		}
		servers = append(servers, s)
		switch s.mode {
		case "standalone":
			alone = append(alone, s)
		case "leader":
			leaders = append(leaders, s)
		}
	}
	if len(servers) < 2 || len(alone) == 0 && len(leaders) < 2 {
		return nil
	}
	var evidence []string
	for _, s := range servers {
		evidence = append(evidence, s.name+": "+cmp.Or(clip(s.mode), "it does not say what it is"))
	}
	return []Finding{{
		Severity: Error,
		Text: "servers of the connect string belong to different ensembles: a lock may be held at each, and a " +
			"session that moves to another one is lost",
		Evidence: evidence,
		Remedy: "let the connect string of all clients name the servers of one ensemble, and no others; if there are " +
			"two leaders, ask again: one of them may be cut off, and step down soon; name none beside " +
			"an address that leads to it, as that of a service",
		Page: pageDoctor,
	}}
}

// is reports whether other is the same server by another name.
func (s *server) is(other *server) bool {
	names := append([]string{other.name}, other.addresses...)
	return slices.ContainsFunc(append([]string{s.name}, s.addresses...), func(name string) bool {
		return slices.Contains(names, name)
	})
}
