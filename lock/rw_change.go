package lock

// Upgrading and downgrading.

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// ErrUpgradeConflict is what RWMutex.Upgrade returns when there are other readers: it cannot wait for them, because
// they may wait for an upgrade, too.
var ErrUpgradeConflict = errors.New("others hold the lock for reading; unlock, and lock for writing")

// ErrNested is what RWMutex.Downgrade returns while other holds are nested in the hold, or it in them (Reenter): their
// users count on writing.
var ErrNested = errors.New("other holds are nested in this one, or it in them; unlock them first")

// errOther is the answer to a change of a hold that is not of this lock.
var errOther = errors.New("the hold belongs to another lock; use the RWMutex that returned it")

// upgraded stands in the name of a writer's node before the marker if it was made by Upgrade: then its number is
// another node's, and does not say when the node was made.
const upgraded = "upgrade-"

// change makes the caller's goroutine the only one that changes h or unlocks it, until done is called.
func (m *RWMutex) change(ctx context.Context, h *Hold) (done func(), err error) {
	if h == nil || h.grant.of != any(m) {
		return nil, m.failed(errOther)
	}
	done, err = h.grant.hold(ctx)
	if err != nil {
		return nil, m.failed(err)
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
		return done, nil
	}
	done()
	return nil, m.failed(err)
}

// Downgrade turns a writer's hold into a reader's, in its place: readers that wait directly behind it come in, and a
// writer that waits does not. The hold goes on: its context, its token and its session stay, its node and its guard
// change. A reader's hold stays one.
//
// Downgrade returns why the hold has ended if it has, and an error for a hold of another lock. If the server refuses,
// the hold stays a writer's. If ctx ends first, Downgrade returns ctx's cause and goes on in the background, and Unlock
// waits for it: take the hold for a reader's from then on. ErrNested is the error for a hold with other holds nested in
// it, or nested in another.
func (m *RWMutex) Downgrade(ctx context.Context, h *Hold) error {
	done, err := m.change(ctx, h)
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
			next, err := h.grant.Own().Become(&m.read, withToken(m.read.Data(), h.Token()))
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

// Upgrade turns a reader's hold into a writer's, in its place and so before every waiter. It fails at once with
// ErrUpgradeConflict if there is another reader, in this process or elsewhere. The hold goes on: its context and its
// session stay, its node and its guard change, and its token grows. A writer's hold stays one. Holds that are nested in
// it, or that it is nested in, become writers' as well, and keep their tokens.
//
// Upgrade returns why the hold has ended if it has, and an error for a hold of another lock. If the server refuses, or
// ctx ends first, the hold stays a reader's.
func (m *RWMutex) Upgrade(ctx context.Context, h *Hold) error {
	done, err := m.change(ctx, h)
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
		next, contenders, err := own.Beside(ctx, &m.upgrade, withToken(m.upgrade.Data(), Token(h.grant.ComingToken())))
		if err != nil {
			return nil, err
		}
		// A reader that came between the two lists may not have seen our writer's node. One that comes now does, and
		// waits.
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

// othersRead reports whether a contender other than mine may have the lock for reading.
//
// A reader does not have it if a writer that it respects stands ahead of it, and was there before it: Curator's readers
// and ours respect __WRIT__, kazoo's __lock__. Numbers are the order of creation, except for nodes that were made by
// Upgrade, so these prove nothing.
func othersRead(contenders []line.Contender, mine line.Contender) bool {
	for _, r := range contenders {
		if isWriter(r) || r.Name == mine.Name {
			continue
		}
		respected := line.CuratorWrite
		if r.Marker == line.KazooRead {
			respected = line.KazooLock
		}
		_, waits := line.Ahead(contenders, r, func(w line.Contender) bool {
			return w.Marker == respected && !isUpgraded(w)
		})
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
