package supervise

import "time"

// schedule is when a command is ended whose hold may be lost. Half of its grace is over when the session stops being
// certain that it lives. The other half is the first part of the margin, a quarter of the session timeout, after which
// another client may acquire what was held.
type schedule struct {
	grace time.Duration // between SIGTERM and SIGKILL
	spare time.Duration // for sending the signals
}

// newSchedule makes the schedule for sessions of that timeout.
func newSchedule(c *Command, timeout time.Duration) schedule {
	s := schedule{spare: timeout / 40}
	if c.OnLost != Kill && c.OnLost != Ignore {
		s.grace = min(c.Grace, MaxGrace(timeout))
	}
	return s
}

func (s schedule) kill(certain time.Time) time.Time { return certain.Add(s.grace/2 - s.spare) }
func (s schedule) term(certain time.Time) time.Time { return certain.Add(-s.grace/2 - s.spare) }
