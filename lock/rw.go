package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// RWMutex is a lock with either one writer or any number of readers at a time, among all processes that use its path.
// It is fair: a reader waits for the writers that came before it, a writer for every contender that did. It shares a
// line with Curator's InterProcessReadWriteLock, and respects kazoo's WriteLock and ReadLock.
//
// An RWMutex may be used by any number of goroutines. Its readers share one node in the line; each writer has its
// own. While this process reads, another reader of it joins in at once, also if another process waits to write, but
// only within the limits of RWConfig.Handoff; after that, readers queue up behind the writer. With StrictFIFO each
// reader has its own node.
//
// The token of a read hold is larger than those of the write holds before it and smaller than those of the write
// holds after it, except one that a read hold was upgraded to: that keeps the number of its node. Tokens of readers
// that hold together have no meaningful order. So what the lock protects should remember the largest token of a
// writer, and refuse readers and writers with a smaller one.
type RWMutex struct {
	client *zk.Client
	path   string
	cfg    Config

	read, write, upgrade line.Line

	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	group   *readers   // which a reader may join; nil if none
	writers int        // how often Lock was called
	tickets ticket     // the head of a ring of those who are on their way
}

// NewRWMutex returns the read/write lock at path, which no other recipe may use. It does not contact the server: the
// path and missing parents are created when they are needed and removed when they are not. It returns an error if the
// path or the configuration is invalid.
func NewRWMutex(client *zk.Client, path string, config RWConfig) (*RWMutex, error) {
	cfg, err := checkNew(client, path, config.config())
	if err != nil {
		return nil, err
	}
	m := &RWMutex{client: client, path: path, cfg: cfg}
	m.tickets.init()
	contenderLine(&m.read, path, cfg, readStem, isWriter)
	contenderLine(&m.write, path, cfg, writeStem, anyone)
	contenderLine(&m.upgrade, path, cfg, upgradeStem, anyone)
	for _, l := range m.lines() {
		// A reader ahead, which does not block readers, may be a writer by the time that the writer behind it is gone.
		l.Change = anyone
		if err := checkSize(l); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Path returns the lock's path.
func (m *RWMutex) Path() string { return m.path }

func (m *RWMutex) lines() []*line.Line { return []*line.Line{&m.read, &m.write, &m.upgrade} }

// Lock waits until there are no other writers and readers, and returns the hold. Contenders are served in the order
// in which the server saw them, goroutines that share this RWMutex in the order of their calls. Its errors are those
// of Mutex.Lock.
//
// With Reenter, Lock and RLock nest in a hold for writing, and RLock also in a hold for reading. Lock inside a hold for
// reading, which could only wait for itself, fails at once with ErrUpgradeConflict: see Upgrade.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) { return m.acquire(ctx, true, m.lock) }

func (m *RWMutex) lock(ctx context.Context) (*Hold, error) {
	m.mu.Lock()
	m.writers++
	m.group = nil // who comes to read from now on comes after us
	t := m.tickets.draw()
	m.mu.Unlock()
	return m.writing(m.cfg.tenure(m.place(ctx, &m.write, t, m.cfg.Hooks.enqueuedOnce(ctx, m.path))))
}

// RLock waits for the writers that came before, and returns the hold. Its errors are those of Mutex.Lock.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) { return m.acquire(ctx, false, m.rlock) }

func (m *RWMutex) rlock(ctx context.Context) (*Hold, error) {
	m.mu.Lock()
	g := m.group
	if g == nil || !g.open(time.Now()) {
		g = m.newGroup()
		if m.cfg.Handoff != StrictFIFO {
			m.group = g
		}
		go g.stand(m.tickets.draw())
	}
	if g.tenure != nil {
		h := g.serve()
		m.mu.Unlock()
		return h, nil
	}
	w := newWaiter(&m.cfg.Hooks)
	if g.behind {
		w.behind()
	}
	g.waiting = append(g.waiting, w)
	m.mu.Unlock()
	if a, ok := w.await(ctx, m.path); ok {
		return a.hold, a.err
	}
	m.mu.Lock()
	g = w.group(g)
	i := slices.Index(g.waiting, w)
	if i < 0 { // the answer was quicker
		m.mu.Unlock()
		a := <-w.answer
		return a.hold, a.err
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	if len(g.waiting) == 0 {
		g.close()
		g.giveUp()
	}
	m.mu.Unlock()
	return nil, m.failed(context.Cause(ctx))
}

// TryLock returns the hold if there is no other contender, and otherwise ErrHeld at once, as Mutex.TryLock does.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) { return m.acquire(ctx, true, m.tryLock) }

func (m *RWMutex) tryLock(ctx context.Context) (*Hold, error) {
	return m.writing(m.cfg.tenure(m.try(ctx, &m.write)))
}

// TryRLock returns the hold if no writer has the lock or waits, and otherwise ErrHeld at once, as Mutex.TryLock does.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, false, m.tryRLock)
}

func (m *RWMutex) tryRLock(ctx context.Context) (*Hold, error) {
	m.mu.Lock()
	if g := m.group; g != nil && g.tenure != nil && g.open(time.Now()) {
		h := g.serve()
		m.mu.Unlock()
		return h, nil
	}
	writers := m.writers
	m.mu.Unlock()
	t, err := m.cfg.tenure(m.try(ctx, &m.read))
	if err != nil {
		return nil, m.failed(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.newGroup()
	g.begin(t)
	if m.group == nil && m.writers == writers && m.cfg.Handoff != StrictFIFO {
		m.group = g
	}
	return g.serve(), nil
}

// acquire returns a nested hold to a caller that re-enters, and takes the lock otherwise.
func (m *RWMutex) acquire(ctx context.Context, write bool, take func(context.Context) (*Hold, error)) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, m.failed(context.Cause(ctx))
	}
	outer := holdOf(ctx)
	if outer.reenters(ctx) {
		if h, err := m.again(ctx, outer, write); h != nil || err != nil {
			return h, err
		}
	}
	outer = outer.lasting()
	begin := m.cfg.Hooks.begin()
	h, err := take(ctx)
	if err != nil {
		return nil, err
	}
	h.in = inside{of: m, outer: outer}
	m.cfg.Hooks.acquired(ctx, m.path, h, begin)
	return h, nil
}

// writing makes a writer's hold of a tenure.
func (m *RWMutex) writing(t *tenure, err error) (*Hold, error) {
	if err != nil {
		return nil, m.failed(err)
	}
	h := t.hold((*tenure).leave)
	h.kind = &kind{lock: m, place: t.place, busy: make(chan struct{}, 1)}
	return h, nil
}

// place stands in line until it is first, entering it after those who drew a ticket before. It calls queued whenever
// it finds somebody ahead of a new place.
func (m *RWMutex) place(ctx context.Context, l *line.Line, t *ticket, queued func()) (*line.Place, error) {
	defer t.drop(&m.mu)
	return attempt(ctx, m.cfg.Retry, m.client, func(sess *zk.Session) (*line.Place, error) {
		if err := m.tickets.turn(ctx, &m.mu, t, sess); err != nil {
			return nil, err
		}
		for _, other := range m.lines() {
			if other != l {
				other.Flush() // or we would stand behind our own node until it goes
			}
		}
		place, err := l.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		t.enter(&m.mu, sess)
		if !place.First() {
			queued()
		}
		if err := place.Await(ctx); err != nil {
			place.Leave()
			return nil, err
		}
		return m.cfg.start(ctx, m.path, place, waitsOut(queued))
	})
}

// try takes a place in line if nobody stands in it who blocks it, whether ahead or behind.
func (m *RWMutex) try(ctx context.Context, l *line.Line) (*line.Place, error) {
	return attempt(ctx, m.cfg.Retry, m.client, func(sess *zk.Session) (*line.Place, error) {
		for _, own := range m.lines() {
			own.Flush() // or we would find ourselves in the line
		}
		children, _, err := sess.Children(ctx, m.path)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		if slices.ContainsFunc(line.Seats(children, l.Markers), l.Blocks) {
			return nil, ErrHeld
		}
		place, err := l.Enter(ctx, sess)
		if err != nil {
			return nil, err
		}
		if !place.First() {
			place.Leave()
			return nil, ErrHeld
		}
		return m.cfg.start(ctx, m.path, place, waitsNot)
	})
}

// failed says of which lock err is.
func (m *RWMutex) failed(err error) error { return failedAt(m.client, m.path, err) }
