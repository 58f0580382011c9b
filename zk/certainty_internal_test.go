package zk

import (
	"testing"
	"time"
)

// A script is the exchanges of a session, with times in sixteenths of its timeout. The margin is a quarter.
type script struct {
	c     certainty
	start time.Time
}

const sixteenth = time.Second

func (s *script) at(n float64) time.Time { return s.start.Add(time.Duration(n * float64(sixteenth))) }

func (s *script) ping(sent, answered float64) { s.c.answered(s.at(sent), s.at(answered)) }

func (s *script) sync(sent, answered float64) {
	s.ping(sent, answered)
	s.c.travelled(s.at(sent), s.at(answered))
}

func (s *script) write(sent, answered float64) {
	s.ping(sent, answered)
	s.c.certified(s.at(sent), 4*sixteenth)
	s.c.travelled(s.at(sent), s.at(answered))
}

// pings adds a ping, answered at once, every sixteenth.
func (s *script) pings(from, to int) {
	for n := from; n <= to; n++ {
		s.ping(float64(n), float64(n)+0.1)
	}
}

func (s *script) until() float64 { return float64(s.c.until.Sub(s.start)) / float64(sixteenth) }

func slowSync(s *script) {
	s.pings(1, 44)
	s.sync(40.2, 45)
	s.write(45.2, 45.3)
}

// Promise: 2
func TestCertaintyCountsFromWhatTheLeaderKnows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play func(s *script)
		want float64
	}{
		"a new session is certain from its creation": {func(*script) {}, 12},
		"pings do not prolong it": {
			func(s *script) { s.pings(1, 40) }, 12,
		},
		"syncs do not prolong it": {
			func(s *script) { s.pings(1, 40); s.sync(30, 31) }, 12,
		},
		"a write soon after the handshake adds nothing": {
			func(s *script) { s.write(2, 2.1) }, 12,
		},
		"a write alone counts a quarter at most": {
			func(s *script) { s.pings(1, 40); s.write(40, 40.1) }, 44,
		},
		"a sync before it lets older requests count": {
			func(s *script) { s.pings(1, 40); s.sync(40.2, 40.3); s.write(40.4, 40.5) }, 35 + 12,
		},
		"a write does as well": {
			func(s *script) { s.pings(1, 40); s.write(40.2, 40.3); s.write(42, 42.1) }, 35 + 12,
		},
		"not one that is answered after it was sent": {
			func(s *script) { s.pings(1, 40); s.sync(40.2, 41); s.write(40.4, 41.1) }, 44.4,
		},
		"an answer that came late counts from when it came": {
			func(s *script) { s.pings(1, 30); s.ping(31, 39); s.sync(40, 40.1); s.write(40.2, 40.3) }, 30 + 12,
		},
		"a sync that took long counts from its sending": {slowSync, 49.2},
		"a client that was silent has little to count": {
			func(s *script) { s.pings(1, 20); s.sync(32, 32.1); s.write(32.2, 32.3) }, 20 + 12,
		},
		"and more when the leader can have heard of it again": {
			func(s *script) { s.pings(1, 20); s.write(32, 32.1); s.sync(38, 38.1); s.write(38.2, 38.3) }, 32 + 12,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{start: time.Now()}
			s.c.connected(s.start, 16*sixteenth, 4*sixteenth, true)
			test.play(s)
			if got := s.until(); got < test.want-0.01 || got > test.want+0.01 {
				t.Errorf("certain until %.2f, want %.2f", got, test.want)
			}
		})
	}
}

// Promise: 2
func TestCertaintyOfANewConnectionCountsFromItsHandshake(t *testing.T) {
	t.Parallel()
	s := &script{start: time.Now()}
	s.c.connected(s.start, 16*sixteenth, 4*sixteenth, true)
	s.pings(1, 10)
	s.c.connected(s.at(10), 16*sixteenth, 4*sixteenth, false)
	if got := s.until(); got != 12 {
		t.Errorf("certain until %v after a handshake, which any server may answer; want 12", got)
	}
	s.write(10.1, 10.2) // at once, as a rule
	if got := s.until(); got != 22 {
		t.Errorf("certain until %v after a write, want 22", got)
	}
}
