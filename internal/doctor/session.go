package doctor

// Checks of times: sessions, ticks, round trips, clocks, pauses.

import (
	"fmt"
	"slices"
	"time"
)

const (
	pageAssumed = "docs/partitions.md#what-is-assumed"
	pageProblem = "docs/partitions.md#the-problem"
	pageDoctor  = "docs/operating.md#what-turnstile-doctor-finds"
)

// limits are the session timeouts that a server grants, by its settings.
func (s *server) limits() (least, most time.Duration, ok bool) {
	least, first := s.millis("minSessionTimeout")
	most, second := s.millis("maxSessionTimeout")
	return least, most, first && second && least <= most
}

// checkTimeout: does the session have the timeout that was asked for, and would it keep it at every server?
func checkTimeout(f *facts) (list []Finding) {
	if f.granted != f.asked {
		list = append(list, Finding{
			Severity: Warning,
			Text: fmt.Sprintf("the session timeout is %v, not %v as asked for: clients notice a loss, and others get "+
				"their locks, sooner or later than configured", f.granted, f.asked),
			Evidence: f.each(func(s *server) string {
				least, most, ok := s.limits()
				if !ok {
					return ""
				}
				return fmt.Sprintf("minSessionTimeout %v, maxSessionTimeout %v", least, most)
			}),
			Remedy: "set minSessionTimeout and maxSessionTimeout of all servers, or --session-timeout and " +
				"zk.Config.Timeout of the clients, so that they agree",
			Page: pageAssumed,
		})
	}
	less := f.each(func(s *server) string {
		if _, most, ok := s.limits(); ok && most < f.granted {
			return fmt.Sprintf("maxSessionTimeout %v", most)
		}
		return ""
	})
	if len(less) > 0 {
		list = append(list, Finding{
			Severity: Error,
			Text: fmt.Sprintf("some servers grant less than the session's %v: a session that moves there ends, "+
				"with all that it holds", f.granted),
			Evidence: less,
			Remedy:   "set the same maxSessionTimeout at all servers, and restart them one by one",
			Page:     pageAssumed,
		})
	}
	return list
}

// checkTicks: do the ticks suit our sessions?
func checkTicks(f *facts) (list []Finding) {
	short := f.each(func(s *server) string {
		if tick, ok := s.millis("tickTime"); ok && f.granted > 0 && times(tick, 2) > f.granted {
			return fmt.Sprintf("tickTime %v", tick)
		}
		return ""
	})
	if len(short) > 0 {
		list = append(list, Finding{
			Severity: Error,
			Text: fmt.Sprintf("the session timeout of %v is less than two ticks: the leader asks too rarely which "+
				"sessions live, and two clients may hold a lock for a part of a tick", f.granted),
			Evidence: short,
			Remedy:   "leave minSessionTimeout at twice the tickTime, or ask for longer sessions",
			Page:     pageAssumed,
		})
	}
	refused := f.each(func(s *server) string {
		tick, known := s.millis("tickTime")
		least, most, ok := s.limits()
		if !known || !ok || least <= usualTimeout && usualTimeout <= most {
			return ""
		}
		return fmt.Sprintf("tickTime %v, sessions of %v to %v", tick, least, most)
	})
	if len(refused) > 0 && f.asked != usualTimeout { // checkTimeout says so otherwise
		list = append(list, Finding{
			Severity: Warning,
			Text: fmt.Sprintf("the servers do not grant %v, the timeout that clients of Turnstile ask for if none "+
				"is configured", usualTimeout),
			Evidence: refused,
			Remedy: "sessions last from 2 to 20 ticks unless minSessionTimeout and maxSessionTimeout say otherwise: " +
				"set them, or tickTime",
			Page: pageAssumed,
		})
	}
	if lines, differ := f.compare("tickTime"); differ {
		list = append(list, Finding{
			Severity: Warning, Text: "the servers have different tickTimes: for how long sessions last depends on " +
				"the server that leads",
			Evidence: lines, Remedy: "set the same tickTime at all servers", Page: pageAssumed,
		})
	}
	return list
}

// compare returns a line for each server's value of a setting, and whether they differ.
func (f *facts) compare(name string) (lines []string, differ bool) {
	values := make(map[string]bool)
	lines = f.each(func(s *server) string {
		value := s.settings.value[name]
		if value == "" {
			return ""
		}
		values[value] = true
		return name + " " + value
	})
	return lines, len(values) > 1
}

// checkSyncLimit: for how long does a follower answer that is cut off?
func checkSyncLimit(f *facts) []Finding {
	bound := times(f.granted, 3) / 4
	long := f.each(func(s *server) string {
		limit, ok := s.setting("syncLimit")
		tick, known := s.millis("tickTime")
		if !ok || !known || limit <= 0 || times(tick, limit) <= bound {
			return ""
		}
		return fmt.Sprintf("syncLimit %d × tickTime %v = %v", limit, tick, times(tick, limit))
	})
	if len(long) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning,
		Text: fmt.Sprintf("a server that is cut off from the leader answers its clients for longer than three "+
			"quarters of the session timeout, %v: two clients of Curator, kazoo or go-zookeeper, or with "+
			"NoCertificates, may hold a lock then, and Turnstile's holders lose theirs early", bound),
		Evidence: long,
		Remedy:   "lower syncLimit or tickTime, or use longer sessions",
		Page:     pageProblem,
	}}
}

// checkLatency: are reads and writes fast enough for the proofs of a session, of which there are eight in its timeout?
func checkLatency(f *facts) (list []Finding) {
	bound := f.granted / 16
	slow := func(what string, measured []time.Duration) {
		if p := p99(measured); p > bound {
			list = append(list, Finding{
				Severity: Warning,
				Text: fmt.Sprintf("%s take longer than a sixteenth of the session timeout, %v: holders may lose "+
					"their locks although nothing has failed", what, bound),
				Evidence: []string{fmt.Sprintf("the 99th percentile of %d %s is %v", len(measured), what, rounded(p))},
				Remedy: "look at the disks of the servers and at the network, or use longer sessions; turnstile " +
					"bench lock measures more",
				Page: pageDoctor,
			})
		}
	}
	slow("reads", f.reads)
	if f.writes.unknown != "" {
		return append(list, Finding{
			Severity: Note, Unknown: true, Text: "how long writes take is unknown",
			Evidence: []string{f.writes.unknown},
			Remedy:   "turnstile doctor --write measures 20 writes to a node of its own", Page: pageDoctor,
		})
	}
	slow("writes", f.writes.value)
	return list
}

// p99 returns the 99th percentile.
func p99(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(99*len(sorted)+99)/100-1]
}

// rounded is a duration with few digits.
func rounded(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// maxOffset is how far clocks may differ.
const maxOffset = time.Second

// checkClocks: does the leader's clock agree with ours?
func checkClocks(f *facts) []Finding {
	if f.clock.unknown != "" {
		return []Finding{{
			Severity: Note, Unknown: true, Text: "whether the leader's clock agrees with this machine's is unknown",
			Evidence: []string{f.clock.unknown},
			Remedy:   "turnstile doctor --write reads the leader's clock from a node that it creates", Page: pageDoctor,
		}}
	}
	where, by := "ahead of", f.clock.value.least
	if by <= maxOffset {
		where, by = "behind", -f.clock.value.most
	}
	if by <= maxOffset {
		return nil
	}
	return []Finding{{
		Severity: Warning,
		Text: fmt.Sprintf("the leader's clock is %v %s this machine's: since when a lock is held, and for how long "+
			"others have waited, is shown wrongly", rounded(by), where),
		Evidence: []string{fmt.Sprintf("the time of a node that the leader has created differs by %v at least",
			rounded(by))},
		Remedy: "synchronise the clocks of servers and clients, with NTP for example; locks do not depend on them",
		Page:   pageDoctor,
	}}
}

// checkMargin: are there pauses that the margin does not cover?
func checkMargin(f *facts) []Finding {
	margin := f.granted / 4
	worst, evidence := time.Duration(0), []string(nil)
	add := func(what string, pause time.Duration) {
		if pause > margin/2 {
			worst = max(worst, pause)
			evidence = append(evidence, fmt.Sprintf("%s %v", what, rounded(pause)))
		}
	}
	add("a timer of this process was late by", f.lateness)
	for _, s := range f.serving() {
		if ms, ok := s.gauge("max_jvm_pause_time_ms"); ok {
			add(s.name+": its process has paused for", times(time.Millisecond, ms))
		}
	}
	if worst == 0 {
		return nil
	}
	severity, how := Warning, "more than half of"
	if worst > margin {
		severity, how = Error, "more than"
	}
	return []Finding{{
		Severity: severity,
		Text: fmt.Sprintf("processes pause for %s the margin of %v, in which a holder must stop before another "+
			"client can acquire", how, margin),
		Evidence: evidence,
		Remedy: "find what stops them (memory, garbage collection, too little CPU), or use longer sessions: the " +
			"margin is a quarter of the timeout",
		Page: pageAssumed,
	}}
}
