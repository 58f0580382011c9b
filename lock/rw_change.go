package lock

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// ErrUpgradeConflict is Upgrade's answer when there are other readers: to wait for them could be to wait for ever, because they may do
// the same.
var ErrUpgradeConflict = errors.New("lock: others hold the lock for reading; unlock, and lock for writing")

// ErrNested is Downgrade's answer while the lock is held more than once by the same caller: the others would not know.
var ErrNested = errors.New("lock: other holds are nested in this one, or it in them; unlock them first")

// errNotShared is the answer to a change of a hold that knows only one kind.
var errNotShared = errors.New("lock: only a hold of an RWMutex can be downgraded or upgraded")

// kind is what a hold of an RWMutex is: for reading, with others, or for writing. Whoever fills busy may use the other fields.
type kind struct {
	lock  *RWMutex
	busy  chan struct{} // one slot
	place *line.Own
	group *readers // nil for a writer
}

// upgraded stands in the name of a writer's node before the marker if it was made by Upgrade: then its number is another node's, and
// tells nothing about when it came.
const upgraded = "upgrade-"

// change makes h's goroutine the only one that changes it or unlocks it, until done is called.
func (h *Hold) change(ctx context.Context) (done func(), err error) {
	if h.kind == nil {
		return nil, errNotShared
	}
	select {
	case h.kind.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, h.kind.lock.failed(context.Cause(ctx))
	}
	done = func() { <-h.kind.busy }
	h.mu.Lock()
	over, lost := h.over, h.lost
	h.mu.Unlock()
	if !over {
		lost = h.tenure.Stopped()
	}
	switch {
	case lost != nil:
		err = lost
	case over:
		err = ErrUnlocked
	default:
		return done, nil
	}
	done()
	return nil, h.kind.lock.failed(err)
}

// Downgrade makes a writer's hold of an RWMutex a reader's, in its place: readers that wait directly behind it come in, and a writer
// that waits does not. The hold goes on: its context, its token and its session are the same, its node and its guard are others. A
// reader's hold stays one.
//
// It returns why the hold has ended if it has; the server's refusal, and then the hold is a writer's still; ctx's cause if that ends
// first, and then the downgrade goes on in the background: count on a reader's hold. Unlock waits for it. A hold that is nested in another,
// or that another is nested in, is not downgraded while both last: ErrNested.
func (h *Hold) Downgrade(ctx context.Context) error {
	done, err := h.change(ctx)
	if err != nil {
		return err
	}
	k := h.kind
	switch {
	case k.group != nil:
		done()
		return nil
	case h.shared():
		done()
		return k.lock.failed(ErrNested)
	}
	m := k.lock
	result := make(chan error, 1)
	go func() {
		defer done()
		result <- h.tenure.Exchange(func() (*line.Own, error) {
			next, err := k.place.Become(&m.read)
			if err != nil {
				return nil, err
			}
			g := m.newGroup() // which nobody joins
			g.begin(h.tenure)
			g.holds = 1
			k.place, k.group = next, g
			h.mu.Lock()
			h.releaseBy(g.release)
			h.mu.Unlock()
			return next, nil
		})
	}()
	select {
	case err = <-result:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return h.changed(err)
}

// Upgrade makes a reader's hold of an RWMutex a writer's, in its place and so before all who wait, if nobody else reads. It fails at
// once with ErrUpgradeConflict if anybody does, in this process or another, and the hold is a reader's still. The hold goes on: its
// context and its session are the same, its node and its guard are others, and its token is a larger one. A writer's hold stays one.
// Holds that are nested in it, or that it is nested in, become writers' as well, and keep their tokens.
//
// It returns why the hold has ended if it has; the server's refusal, or ctx's cause if that ends first, and then the hold is a reader's
// still.
func (h *Hold) Upgrade(ctx context.Context) error {
	done, err := h.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	k := h.kind
	if k.group == nil {
		return nil
	}
	m, g := k.lock, k.group
	m.mu.Lock()
	alone, joinable, writers := g.holds == 1 && !h.tenure.Exhausted(), m.group == g, m.writers
	if alone {
		g.close()
	}
	m.mu.Unlock()
	if !alone {
		return ErrUpgradeConflict
	}
	err = h.tenure.Exchange(func() (*line.Own, error) {
		seats, err := k.place.Contenders(ctx)
		if err == nil && othersRead(seats, k.place.Self()) {
			err = ErrUpgradeConflict
		}
		if err != nil {
			return nil, err
		}
		next, seats, err := k.place.Beside(ctx, &m.upgrade)
		if err != nil {
			return nil, err
		}
		// Who came to read between the two looks may not have seen our writer's node. Who comes now does, and waits.
		if othersRead(seats, k.place.Self()) {
			next.Release()
			return nil, ErrUpgradeConflict
		}
		if err := next.Succeed(ctx, k.place); err != nil {
			next.Release()
			return nil, err
		}
		k.place, k.group = next, nil
		h.mu.Lock()
		h.releaseBy(release)
		h.token = Token(h.tenure.NextToken())
		h.mu.Unlock()
		return next, nil
	})
	m.mu.Lock()
	if err != nil && joinable && m.group == nil && m.writers == writers {
		m.group = g
	}
	m.mu.Unlock()
	return h.changed(err)
}

// othersRead reports whether anybody but mine may have the lock for reading.
//
// A reader has it not if a writer stands ahead of it that was there before it, and that it respects: Curator's readers and ours respect
// __WRIT__, kazoo's __lock__. Numbers are the order of creation, except for nodes that were made by Upgrade, so these prove nothing.
func othersRead(seats []line.Contender, mine line.Contender) bool {
	for _, r := range seats {
		if isWriter(r) || r.Name == mine.Name {
			continue
		}
		respected := line.CuratorWrite
		if r.Marker == line.KazooRead {
			respected = line.KazooLock
		}
		_, waits := line.Ahead(seats, r, func(w line.Contender) bool { return w.Marker == respected && !isUpgraded(w) })
		if waits == 0 {
			return true
		}
	}
	return false
}

// changed says what became of a change.
func (h *Hold) changed(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrUpgradeConflict):
		return err
	case errors.Is(err, line.ErrGone):
		err = ErrDeleted
	}
	return h.kind.lock.failed(err)
}

func isUpgraded(w line.Contender) bool {
	return strings.Contains(w.Name, upgraded+string(w.Marker))
}
