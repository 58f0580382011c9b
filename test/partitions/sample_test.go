//go:build unix

package partitions_test

import (
	"fmt"
	"time"
)

// A sample is the history of one hold in one partition. Times are those of clock; zero means unknown.
type sample struct {
	project, shape string
	phase          int
	kind           string
	timeout        int           // of the session, in ticks
	tick           time.Duration // of the servers
	free           bool          // whether the holder may connect to other servers
	cut            int64         // when the partition began
	told           int64         // when the holder got the first notice
	lost           int64         // when a second notice said that the hold is over
	acquired       int64         // when the contender acquired
	why            string        // the text of the first notice
	kept           bool          // the hold outlasted the partition, and the holder released it
	released       bool          // the holder was told and released in time, which admitted the contender
}

// distance is for how long the holder had known when the contender acquired. If it is negative, both held.
func (s *sample) distance() time.Duration { return time.Duration(s.acquired - s.told) }

// wrong returns how the sample breaks the promise; "" if it does not.
func (s *sample) wrong() string {
	switch {
	case s.acquired == 0:
		return "the contender never acquired"
	case s.told == 0:
		return fmt.Sprintf("the holder was never told; the contender acquired %v after the cut", s.since(s.acquired))
	case s.distance() <= 0:
		return fmt.Sprintf(
			"two undisputed holds for %v: the contender acquired %v after the cut, the holder was told %v after (%s)",
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
	return fmt.Sprintf("%s %s, T = %d ticks = %v, %s", s.project, s.kind, s.timeout, time.Duration(s.timeout)*s.tick,
		where)
}
