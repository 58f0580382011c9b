package doctor

// What is known, and what is not.

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/words"
)

// A fact is a value, or the reason why it is not known.
type fact[T any] struct {
	value   T
	unknown string // why; empty if the value is known
}

func known[T any](value T) fact[T] { return fact[T]{value: value} }

func unknown[T any](format string, args ...any) fact[T] {
	return fact[T]{unknown: clip(fmt.Sprintf(format, args...))}
}

// facts are what an examination has found out.
type facts struct {
	asked, granted time.Duration // the session timeout; granted is 0 if there is no session
	credentials    bool          // the client has some
	lateness       time.Duration // the longest pause of this process, as its timers have seen it
	reads          []time.Duration
	writes         fact[[]time.Duration]
	clock          fact[offset] // of the leader
	servers        []server
	voters         fact[[]string] // the members that vote; none of a server without an ensemble
	ephemerals     fact[map[int64]int64]
	tree           *survey.Snapshot // nil if there is no session
	nodes          nodes
	open           access
}

// An offset is by how much another clock is ahead of this machine's: between the two.
type offset struct{ least, most time.Duration }

// A server is what is known of one server.
type server struct {
	name      string
	embedded  bool                    // it is Turnstile's
	down      string                  // why it does not serve; empty if it does
	lookup    string                  // why its name cannot be looked up
	addresses []string                // of its name, with the port
	mode      string                  // standalone, leader, follower, observer or read-only; empty if it does not say
	version   fact[string]            // as it writes it
	settings  fact[map[string]string] // of conf, by ZooKeeper's names in a zoo.cfg
	gauges    fact[map[string]string] // of mntr, without the prefix
	largest   fact[int64]             // jute.maxbuffer
	unwell    string                  // what it answers to ruok, if that is not imok
	callers   fact[map[string]int]    // connections by address; asked only if there are many
	silent    []string                // why words are not answered
}

// setting returns a number of the settings. It reports false if it is not known.
func (s *server) setting(name string) (int64, bool) { return words.Number(s.settings.value, name) }

// gauge returns a number of the gauges. It reports false if it is not known.
func (s *server) gauge(name string) (int64, bool) { return words.Number(s.gauges.value, name) }

// millis returns a setting in milliseconds.
func (s *server) millis(name string) (time.Duration, bool) {
	n, ok := s.setting(name)
	return time.Duration(n) * time.Millisecond, ok
}

// serving returns the servers that serve.
func (f *facts) serving() []*server {
	var list []*server
	for i := range f.servers {
		if f.servers[i].down == "" {
			list = append(list, &f.servers[i])
		}
	}
	return list
}

// each returns a line about each server that serves and of which there is something to say.
func (f *facts) each(say func(s *server) string) (lines []string) {
	for _, s := range f.serving() {
		if text := say(s); text != "" {
			lines = append(lines, s.name+": "+text)
		}
	}
	return lines
}

// clip makes text that others have written short.
func clip(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// clipped makes a list short. The last of it may be how many are missing.
func clipped(list []string) []string {
	short := make([]string, 0, min(len(list), maxEvidence+1))
	for i, text := range list {
		if i == maxEvidence && len(list) > i+1 {
			short = append(short, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		short = append(short, clip(text))
	}
	return short
}
