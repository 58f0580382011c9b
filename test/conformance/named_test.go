package conformance_test

import (
	"slices"
	"strings"
)

// quotaRefusals records what the monitor says of refusals by quotas, without those of other cases.
func (s *script) quotaRefusals() {
	s.Helper()
	var lines []string
	for line := range strings.SplitSeq(s.ask("mntr"), "\n") {
		if strings.Contains(line, "quota_exceeded") && strings.HasPrefix(line, "zk_quota-") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	s.logf("%q", lines)
}

// figures records lines of the monitor.
func (s *script) figures(keys ...string) {
	s.Helper()
	text := "\n" + s.ask("mntr")
	for _, key := range keys {
		_, line, found := strings.Cut(text, "\nzk_"+key+"\t")
		value, _, _ := strings.Cut(line, "\n")
		s.logf("%s %t %s", key, found, value)
	}
}

// namedCases are for servers that name their ensemble, enforce quotas, and answer some words only.
var namedCases = []testCase{
	{"a client of another ensemble is disconnected without an answer", func(s *script) {
		s.word("srst")
		for _, name := range []string{"woo", "foo", "", "goo", "woo, foo", " foo"} {
			l := s.open("client of " + name)
			l.each(auth("ensemble", name))
			if name == "woo" || name == "foo" || name == "" {
				l.each(whoAmI())
			}
		}
		s.figures("auth_failed_count", "ensemble_auth_success", "ensemble_auth_fail", "ensemble_auth_skip")
	}},
	{"words that are always allowed", func(s *script) {
		for _, word := range []string{"ruok", "isro", "stat", "gtmk", "conf"} {
			s.word(word)
		}
		for _, line := range slices.Sorted(strings.SplitSeq(s.ask("mntr"), "\n")) { // the order is that of a hash table
			if key, _, _ := strings.Cut(line, "\t"); strings.HasPrefix(key, "zk_ensemble_auth_") {
				s.logf("%s", key)
			}
		}
		s.logf("srvr %t", strings.HasPrefix(s.ask("srvr"), "Zookeeper version"))
		s.logf("mntr %t", strings.HasPrefix(s.ask("mntr"), "zk_version"))
	}},
	{"what a reset of the statistics resets", func(s *script) {
		l := s.open("a")
		l.each(auth("ensemble", "woo"), create(s.root+"/a", "", 0), get(s.root+"/a", false))
		s.word("srst")
		s.figures("max_latency", "min_latency", "avg_latency", "last_client_response_size", "max_client_response_size",
			"min_client_response_size", "auth_failed_count", "ensemble_auth_success")
	}},
	{"refusals by quotas are counted", func(s *script) {
		l := s.open("a")
		one, two := "/quota-one", "/quota-two"
		for _, ns := range []string{one, two} {
			q := "/zookeeper/quota" + ns
			l.each(create(ns, "", 0), create(ns+"/below", "", 0), create(q, "", 0),
				create(q+"/zookeeper_limits", "count=-1,bytes=-1;byteHardLimit=3;countHardLimit=3", 0),
				create(q+"/zookeeper_stats", "count=2,bytes=0", 0))
		}
		s.quotaRefusals()
		l.each(set(one, "too long", -1), set(one+"/below", "too long", -1), create(one+"/x", "1234", 0))
		s.quotaRefusals()
		l.each(set(one, "123", -1), set(one+"/missing", "too long", -1), create(two+"/x", "", 0),
			create(two+"/y", "", 0))
		s.quotaRefusals()
		l.each(multi(set(one, "1234", -1), set(two, "1234", -1)), multi(check(one, -1), create(two+"/z", "", 0)))
		s.quotaRefusals()
		s.word("srst")
		s.quotaRefusals()
		l.each(set(two, "too long", -1))
		s.quotaRefusals()
	}},
}
