package lock

// RWMutex.

import (
	"context"

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
	base

	read, write, upgrade line.Line

	readers localQueue
	writers int    // how often Lock was called; the queue's mu guards it and the tickets
	tickets ticket // the head of a ring of callers that have not joined the line yet
}

// NewRWMutex returns the read/write lock at path, which no other recipe may use. It does not contact the server: the
// path and missing parents are created when they are needed and removed when they are not. It returns an error if the
// path or the configuration is invalid.
func NewRWMutex(client *zk.Client, path string, config RWConfig) (*RWMutex, error) {
	cfg, err := checkNew(client, path, config.config())
	if err != nil {
		return nil, err
	}
	m := &RWMutex{base: base{client: client, name: path, cfg: cfg}}
	m.tickets.init()
	m.readers.base, m.readers.shares, m.readers.single = &m.base, true, cfg.Handoff == StrictFIFO
	m.readers.others, m.readers.contend, m.readers.tickets = isWriter, m.contend, &m.tickets
	contenderLine(&m.read, path, cfg, readPrefixes, isWriter)
	contenderLine(&m.write, path, cfg, writePrefixes, anyone)
	contenderLine(&m.upgrade, path, cfg, upgradePrefixes, anyone)
	m.read.Strangers, m.upgrade.Strangers = m.write.Strangers, m.write.Strangers // one tells of each
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
func (m *RWMutex) Path() string { return m.name }

func (m *RWMutex) lines() []*line.Line { return []*line.Line{&m.read, &m.write, &m.upgrade} }

// Lock waits until there are no other writers and readers, and returns the hold. Contenders are served in the order
// in which the server saw them, goroutines that share this RWMutex in the order of their calls. Its errors are those
// of Mutex.Lock.
//
// With Reenter, Lock and RLock nest in a hold for writing, and RLock also in a hold for reading. Lock inside a hold for
// reading, which could only wait for itself, fails at once with ErrUpgradeConflict: see Upgrade.
func (m *RWMutex) Lock(ctx context.Context) (*Hold, error) { return m.acquire(ctx, m, Writer, m.lock) }

func (m *RWMutex) lock(ctx context.Context, r *report) (*Hold, error) {
	m.readers.mu.Lock()
	m.writers++
	m.readers.current = nil // readers that come from now on come after us
	t := m.tickets.draw()
	m.readers.mu.Unlock()
	defer t.drop(&m.readers.mu)
	return m.writing(m.own(ctx, m.stand(ctx, &m.write, t, func(own *line.Own) { r.standing(ctx, own) })))
}

// RLock waits for the writers that came before, and returns the hold. Its errors are those of Mutex.Lock.
func (m *RWMutex) RLock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, m, Reader, m.rlock)
}

func (m *RWMutex) rlock(ctx context.Context, r *report) (*Hold, error) { return m.readers.lock(ctx, r) }

// TryLock returns the hold if there is no other contender, and otherwise ErrHeld at once, as Mutex.TryLock does.
func (m *RWMutex) TryLock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, m, Writer, m.tryLock)
}

func (m *RWMutex) tryLock(ctx context.Context, _ *report) (*Hold, error) {
	return m.writing(m.own(ctx, m.try(ctx, &m.write)))
}

// TryRLock returns the hold if no writer has the lock or waits, and otherwise ErrHeld at once, as Mutex.TryLock does.
func (m *RWMutex) TryRLock(ctx context.Context) (*Hold, error) {
	return m.acquire(ctx, m, Reader, m.tryRLock)
}

func (m *RWMutex) tryRLock(ctx context.Context, _ *report) (*Hold, error) {
	m.readers.mu.Lock()
	if g := m.readers.current; g != nil && g.ownership != nil && g.open() {
		h := g.serve()
		m.readers.mu.Unlock()
		return h, nil
	}
	writers := m.writers
	m.readers.mu.Unlock()
	o, err := m.own(ctx, m.try(ctx, &m.read))
	if err != nil {
		return nil, err
	}
	m.readers.mu.Lock()
	defer m.readers.mu.Unlock()
	g := m.readers.owning(o)
	if m.readers.current == nil && m.writers == writers && !m.readers.single {
		m.readers.current = g
	}
	return g.serve(), nil
}

// writing makes a writer's hold of an ownership, unless getting it has failed with err.
func (m *RWMutex) writing(o *line.Ownership, err error) (*Hold, error) {
	if err != nil {
		return nil, err
	}
	h := newHold(o, sole{})
	h.grant.change = make(chan struct{}, 1)
	return h, nil
}

// contend returns a function that makes the contender of a group of readers first.
func (m *RWMutex) contend(ctx context.Context, g *group) func(*zk.Session) (*line.Own, error) {
	return m.stand(ctx, &m.read, g.ticket, g.queued)
}

// stand returns a function that enters l, after the callers that drew a ticket before, and waits until it is first. The
// function calls queued whenever it finds a new contender of ours behind others.
func (m *RWMutex) stand(
	ctx context.Context, l *line.Line, t *ticket, queued func(*line.Own),
) func(*zk.Session) (*line.Own, error) {
	return func(sess *zk.Session) (*line.Own, error) {
		if err := m.tickets.turn(ctx, &m.readers.mu, t, sess); err != nil {
			return nil, err
		}
		m.flush(l) // or we would stand behind our own node until it goes
		own, err := line.Enter(ctx, sess, l)
		if err != nil {
			return nil, err
		}
		t.enter(&m.readers.mu, sess)
		return m.await(ctx, own, queued)
	}
}

// try returns a function that enters l if no contender that blocks it stands there, ahead or behind.
func (m *RWMutex) try(ctx context.Context, l *line.Line) func(*zk.Session) (*line.Own, error) {
	return func(sess *zk.Session) (*line.Own, error) {
		m.flush(l) // or we would find ourselves in the line
		return m.cfg.tryEnter(ctx, sess, l)
	}
}

// flush sends what is about to leave the other lines of m's path.
func (m *RWMutex) flush(l *line.Line) {
	for _, other := range m.lines() {
		if other != l {
			other.Flush()
		}
	}
}
