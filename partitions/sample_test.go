//go:build unix

package partitions_test

import (
	"fmt"
	"time"
)

// A sample is what became of one hold in one partition. Times are those of clock; zero is not known.
type sample struct {
	project, shape string
	phase          int
	kind           string
	timeout        int           // of the session, in ticks
	tick           time.Duration // of the servers
	free           bool          // the holder may connect to other servers
	cut            int64         // when the partition began
	told           int64         // when the holder had the first notice
	lost           int64         // when it was told that all is over, if that was a second notice
	acquired       int64         // when the other one acquired
	why            string        // what the holder was told
	kept           bool          // the hold outlasted the partition, and was released
	released       bool          // the holder was told, and released while its session lasted: that let the other one in
}

// distance is how long the holder had known when the other one acquired. If it is negative both held.
func (s *sample) distance() time.Duration { return time.Duration(s.acquired - s.told) }

// wrong says how the sample breaks the promise, "" if it does not.
func (s *sample) wrong() string {
	switch {
	case s.acquired == 0:
		return "the other one never acquired"
	case s.told == 0:
		return fmt.Sprintf("the holder was never told; the other one acquired %v after the cut", s.since(s.acquired))
	case s.distance() <= 0:
		return fmt.Sprintf("two undisputed holds for %v: the other one acquired %v after the cut, the holder was told %v after it (%s)",
			-s.distance().Round(time.Millisecond), s.since(s.acquired), s.since(s.told), s.why)
	default:
		return ""
	}
}

func (s *sample) since(at int64) time.Duration {
	return time.Duration(at - s.cut).Round(time.Millisecond)
}

func (s *sample) String() string {
	where := "pinned"
	if s.free {
		where = "free"
	}
	return fmt.Sprintf("%s %s, T = %d ticks = %v, %s", s.project, s.kind, s.timeout, time.Duration(s.timeout)*s.tick, where)
}
