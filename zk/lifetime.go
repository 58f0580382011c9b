package zk

// The context of a session, whose Err reads the clock.

import "context"

// lifetime is a session's context. Its Err reads the clock: after a pause of the process (SIGSTOP, a suspended
// machine), callers may run before the timer that ends the session, and must not find a session alive that the server
// has ended.
type lifetime struct {
	context.Context //nolint:containedctx // it is a context
	sess            *Session
}

// Err returns nil while the session lives and its deadline has not passed.
func (l lifetime) Err() error {
	_ = l.sess.Err()
	return l.Context.Err()
}

// Err returns nil while the session lives, and then the cause of its end. It ends the session if its deadline has
// passed.
func (s *Session) Err() error { return s.check(nil) }

// check implements Err of the session and, if o is not nil, of an ownership.
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
		<-s.ctx.Done() // another goroutine is ending the session
		return cause
	case over:
		s.end(errSilent)
		<-s.ctx.Done() // another goroutine may be ending it
		return context.Cause(s.ctx)
	default:
		return lost
	}
}
