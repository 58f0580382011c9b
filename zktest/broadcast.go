package zktest

// broadcast wakes every goroutine that waits for a change. Hold the lock that guards what changes when you call its
// methods, and release it before you wait. It is a channel and not a sync.Cond because a synctest bubble advances time
// only while all its goroutines wait on channels and timers.
type broadcast struct {
	changed chan struct{} // closed at the next change; nil while no goroutine waits
}

func (b *broadcast) wait() <-chan struct{} {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *broadcast) signal() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
