package zk

// The context of a session, whose Err reads the clock.

import "context"

// lifetime is a session's context. Its Err looks at the clock itself: after a process was stopped for a while (SIGSTOP, a paused
// machine, a long collection of garbage), callers may run before the timer that ends the session does, and would find a session alive that
// others have outlived.
type lifetime struct {
	context.Context //nolint:containedctx // it is one
	sess            *Session
}

// Err returns nil as long as the session lives and its deadline has not passed.
func (l lifetime) Err() error {
	_ = l.sess.Err()
	return l.Context.Err()
}

// Err returns nil while the session lives, and why it has ended afterwards. It ends the session if its deadline has passed.
func (s *Session) Err() error { return s.check(nil) }

// check is Err of the session, and of an ownership unless that is nil.
func (s *Session) check(o *Ownership) error {
	s.mu.Lock()
	cause, over, lost := s.cause, false, error(nil)
	if cause == nil && s.expiry != nil {
		now := s.now()
		over = !now.Before(s.deadline())
		s.checkCertainty(now)
		if o != nil {
			lost = o.lost
		}
	}
	s.mu.Unlock()
	switch {
	case cause != nil:
		<-s.ctx.Done() // the goroutine that ends the session is at it
		return cause
	case over:
		s.end(ErrLost)
		<-s.ctx.Done() // another goroutine may be ending it
		return context.Cause(s.ctx)
	default:
		return lost
	}
}
