package server

// Stopping a server that has no session for some time.

import (
	"errors"
	"time"
)

// ErrIdle is the reason of a server that stopped because it had no session for Config.IdleExit.
var ErrIdle = errors.New("server: stopped after a time without any session")

// idle stops the server when there has been no session for some time.
type idle struct {
	since time.Time // since when there is no session; zero while there is one
}

func (i *idle) active() { i.since = time.Time{} }

// wait returns the time until the server may stop.
func (i *idle) wait(o *owner) time.Duration {
	if o.cfg.IdleExit == 0 {
		return time.Hour
	}
	if len(o.sessions) > 0 {
		i.since = time.Time{}
		return time.Hour
	}
	if i.since.IsZero() {
		i.since = time.Now()
	}
	return o.cfg.IdleExit - time.Since(i.since)
}

func (i *idle) run(o *owner) {
	if i.wait(o) <= 0 {
		o.stop(ErrIdle)
	}
}
