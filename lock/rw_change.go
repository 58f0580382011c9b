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

// upgraded stands in the name of a writer's node before the marker if it was made by Upgrade: then its number is another node's, and
// tells nothing about when it came.
const upgraded = "upgrade-"

// change makes h's goroutine the only one that changes it or unlocks it, until done is called.
func (h *Hold) change(ctx context.Context) (m *RWMutex, done func(), err error) {
	m, ok := h.grant.of.(*RWMutex)
	if !ok {
		return nil, nil, errNotShared
	}
	done, err = h.grant.hold(ctx)
	if err != nil {
		return nil, nil, m.failed(err)
	}
	h.mu.Lock()
	over, lost := h.over, h.lost
	h.mu.Unlock()
	if !over {
		lost = h.grant.Stopped()
	}
	switch {
	case lost != nil:
		err = lost
	case over:
		err = ErrUnlocked
	default:
		return m, done, nil
	}
	done()
	return nil, nil, m.failed(err)
}

// Downgrade makes a writer's hold of an RWMutex a reader's, in its place: readers that wait directly behind it come in, and a writer
// that waits does not. The hold goes on: its context, its token and its session are the same, its node and its guard are others. A
// reader's hold stays one.
//
// It returns why the hold has ended if it has; the server's refusal, and then the hold is a writer's still; ctx's cause if that ends
// first, and then the downgrade goes on in the background: count on a reader's hold. Unlock waits for it. A hold that is nested in another,
// or that another is nested in, is not downgraded while both last: ErrNested.
func (h *Hold) Downgrade(ctx context.Context) error {
	m, done, err := h.change(ctx)
	if err != nil {
		return err
	}
	switch {
	case h.grant.readers() != nil:
		done()
		return nil
	case h.shared():
		done()
		return m.failed(ErrNested)
	}
	result := make(chan error, 1)
	go func() {
		defer done()
		result <- h.grant.Exchange(func() (*line.Own, error) {
			next, err := h.grant.Own().Become(&m.read)
			if err != nil {
				return nil, err
			}
			g := m.readers.owning(h.grant.Ownership) // which no other reader joins
			g.holds = 1
			h.grant.giveBackTo(g)
			return next, nil
		})
	}()
	select {
	case err = <-result:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return m.changed(err)
}

// Upgrade makes a reader's hold of an RWMutex a writer's, in its place and so before all who wait, if nobody else reads. It fails at
// once with ErrUpgradeConflict if anybody does, in this process or another, and the hold is a reader's still. The hold goes on: its
// context and its session are the same, its node and its guard are others, and its token is a larger one. A writer's hold stays one.
// Holds that are nested in it, or that it is nested in, become writers' as well, and keep their tokens.
//
// It returns why the hold has ended if it has; the server's refusal, or ctx's cause if that ends first, and then the hold is a reader's
// still.
func (h *Hold) Upgrade(ctx context.Context) error {
	m, done, err := h.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	g := h.grant.readers()
	if g == nil {
		return nil
	}
	m.readers.mu.Lock()
	alone, joinable, writers := g.holds == 1 && !h.grant.Exhausted(), m.readers.current == g, m.writers
	if alone && joinable {
		m.readers.current = nil
	}
	m.readers.mu.Unlock()
	if !alone {
		return ErrUpgradeConflict
	}
	err = h.grant.Exchange(func() (*line.Own, error) {
		own := h.grant.Own()
		contenders, err := own.Contenders(ctx)
		if err == nil && othersRead(contenders, own.Self()) {
			err = ErrUpgradeConflict
		}
		if err != nil {
			return nil, err
		}
		next, contenders, err := own.Beside(ctx, &m.upgrade)
		if err != nil {
			return nil, err
		}
		// A reader that came between the two lists may not have seen our writer's node. One that comes now does, and waits.
		if othersRead(contenders, own.Self()) {
			next.Release()
			return nil, ErrUpgradeConflict
		}
		if err := next.Succeed(ctx, own); err != nil {
			next.Release()
			return nil, err
		}
		h.grant.giveBackTo(sole{})
		h.mu.Lock()
		h.token = Token(h.grant.NextToken())
		h.mu.Unlock()
		return next, nil
	})
	m.readers.mu.Lock()
	if err != nil && joinable && m.readers.current == nil && m.writers == writers {
		m.readers.current = g
	}
	m.readers.mu.Unlock()
	return m.changed(err)
}

// othersRead reports whether anybody but mine may have the lock for reading.
//
// A reader has it not if a writer stands ahead of it that was there before it, and that it respects: Curator's readers and ours respect
// __WRIT__, kazoo's __lock__. Numbers are the order of creation, except for nodes that were made by Upgrade, so these prove nothing.
func othersRead(contenders []line.Contender, mine line.Contender) bool {
	for _, r := range contenders {
		if isWriter(r) || r.Name == mine.Name {
			continue
		}
		respected := line.CuratorWrite
		if r.Marker == line.KazooRead {
			respected = line.KazooLock
		}
		_, waits := line.Ahead(contenders, r, func(w line.Contender) bool { return w.Marker == respected && !isUpgraded(w) })
		if waits == 0 {
			return true
		}
	}
	return false
}

// changed says what became of a change.
func (m *RWMutex) changed(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrUpgradeConflict):
		return err
	case errors.Is(err, line.ErrGone):
		err = ErrDeleted
	}
	return m.failed(err)
}

func isUpgraded(w line.Contender) bool {
	return strings.Contains(w.Name, upgraded+string(w.Marker))
}
