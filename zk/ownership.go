package zk

// What ends when a session is no longer certain.

import "time"

// An Owner owns something by nodes of its session: a lock, a leadership, a claim. Its methods are called without any lock of this package
// held, and must not block.
type Owner interface {
	// Nodes returns the paths of the nodes by which it owns.
	Nodes() []string
	// Gone tells that a node was not there when the session last proved itself. The owner may have given it up meanwhile.
	Gone(path string)
	// Lost tells that the ownership has ended with cause. The node may still be there, and is the owner's to remove: not before cooldown has
	// passed, so that what was done in good faith can end first.
	Lost(cause error, cooldown time.Duration)
}

// An Ownership is the time for which an Owner owns something. While there is one, the session proves every eighth of its timeout that it
// is alive (see Certain); the ownership ends with ErrUncertain when it cannot. All methods may be called from any goroutine.
type Ownership struct {
	sess  *Session
	owner Owner

	// Guarded by sess.mu.
	lost           error
	listed         bool
	previous, next *Ownership
}

// owns reports whether something is owned under the session.
func (s *Session) owns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned != nil
}

// NewOwnership returns an ownership that has not begun.
func (s *Session) NewOwnership(owner Owner) *Ownership { return &Ownership{sess: s, owner: owner} }

// Begin begins the ownership. Call Certify before, or it may be lost at once.
func (o *Ownership) Begin() {
	s := o.sess
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.listed || o.lost != nil || s.cause != nil {
		return
	}
	o.listed = true
	if o.next = s.owned; o.next != nil {
		o.next.previous = o
	}
	s.owned = o
	s.watchCertainty(s.now())
}

// End ends the ownership without loss. It may begin again.
func (o *Ownership) End() {
	o.sess.mu.Lock()
	defer o.sess.mu.Unlock()
	o.unlist()
}

// Err returns nil while the session lives and the ownership was not lost, and why otherwise. It looks at the clock itself, as the session's
// Err does.
func (o *Ownership) Err() error { return o.sess.check(o) }

// unlist takes o out of the session's list. The caller holds sess.mu.
func (o *Ownership) unlist() {
	if !o.listed {
		return
	}
	if o.previous == nil {
		o.sess.owned = o.next
	} else {
		o.previous.next = o.next
	}
	if o.next != nil {
		o.next.previous = o.previous
	}
	o.listed, o.previous, o.next = false, nil, nil
}

// certain returns until when the session is certain. The caller holds s.mu.
func (s *Session) certain() time.Time {
	if s.client.cfg.NoCertificates {
		return s.verified.Add(s.window())
	}
	return s.certainty.until
}

// checkCertainty ends all ownerships if the session is not certain any more. It comes before everything that would make it certain again:
// what was uncertain for a moment may have been another's in that moment. A session whose deadline has passed ends them by its own end. The
// caller holds s.mu.
func (s *Session) checkCertainty(now time.Time) {
	if s.owned == nil || now.Before(s.certain()) || !now.Before(s.deadline()) {
		return
	}
	for o := s.owned; o != nil; o = s.owned {
		o.lost = ErrUncertain
		o.unlist()
		go o.owner.Lost(ErrUncertain, s.timeout-s.window())
	}
}

// wakeInterval bounds how long a machine that was suspended takes after waking to find that an ownership was lost meanwhile: timers stand still
// while the machine is suspended.
const wakeInterval = 250 * time.Millisecond

// watchCertainty has checkCertainty called when the session is not certain any more. One timer serves all ownerships that come and go while it
// runs. The caller holds s.mu.
func (s *Session) watchCertainty(now time.Time) {
	if s.owned == nil || s.doubting {
		return
	}
	s.doubting = true
	left := max(s.certain().Sub(now), 0)
	if s.client.clock.suspend != nil {
		left = min(left, wakeInterval)
	}
	if s.doubt == nil {
		s.doubt = time.AfterFunc(left, s.doubts)
	} else {
		s.doubt.Reset(left)
	}
}

func (s *Session) doubts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.doubting = false
	s.checkCertainty(now)
	s.watchCertainty(now)
}
