package zk

// What ends when a session is no longer certain.

import "time"

// An Owner owns something by nodes of its session: a lock, a leadership, a claim. Its methods are called without any
// lock of this package held, and must not block.
type Owner interface {
	// Nodes returns the paths of the nodes.
	Nodes() []string
	// Gone reports that a node did not exist at the session's last proof. The owner may have removed it since.
	Gone(path string)
	// Lost reports that the ownership has ended with cause. The nodes may still exist. The owner must remove them, but
	// not before cooldown has passed, so that work done under the ownership can stop first.
	Lost(cause error, cooldown time.Duration)
}

// An Ownership is the time for which an Owner owns something. Meanwhile the session proves every eighth of its timeout
// that it is alive (see Certain). When it cannot, the ownership ends with ErrUncertain. Its methods may be called from
// several goroutines at once.
type Ownership struct {
	sess    *Session
	owner   Owner
	checked int // how many of the nodes have had their turn in this round of proofs; only oversee uses it

	// Guarded by sess.mu.
	lost           error
	listed         bool
	previous, next *Ownership
}

// owns reports whether the session has an active ownership.
func (s *Session) owns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned != nil
}

// NewOwnership returns an ownership that has not begun.
func (s *Session) NewOwnership(owner Owner) *Ownership { return &Ownership{sess: s, owner: owner} }

// Begin begins the ownership. Without a call of Certify before it may be lost at once.
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
	} else {
		select {
		case s.owning <- struct{}{}:
		default: // keep has not looked since the last time
		}
	}
	s.owned = o
	s.watchCertainty(s.now())
}

// End ends the ownership without reporting a loss. It may begin again.
func (o *Ownership) End() {
	o.sess.mu.Lock()
	defer o.sess.mu.Unlock()
	o.unlist()
}

// Err returns nil while the session lives and the ownership has not been lost, and otherwise the cause. It reads the
// clock, as the session's Err does.
func (o *Ownership) Err() error { return o.sess.check(o) }

// unlist removes o from the session's list. The caller holds sess.mu.
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

// checkCertainty ends all ownerships if the session is no longer certain. It must precede everything that could make
// the session certain again, because another session may have acquired in between what this one owned. If the deadline
// has passed, the end of the session ends the ownerships. The caller holds s.mu.
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

// wakeInterval bounds how long after a suspension of the machine a lost ownership goes unnoticed: timers do not count
// the time suspended.
const wakeInterval = 250 * time.Millisecond

// watchCertainty starts the timer that calls checkCertainty when certainty ends, if it is not running. It serves all
// ownerships that begin while it runs. The caller holds s.mu.
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
