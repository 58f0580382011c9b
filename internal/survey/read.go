package survey

// One reading of a part of the tree.

import (
	"context"
	"errors"
	"fmt"
	"math"
	stdpath "path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Limits of Read, if its Config has none of its own.
const (
	defaultNodes = 1_000_000
	defaultTime  = 30 * time.Second
	workers      = 64 // so many nodes are read at a time
	maxMissed    = 10 // so many paths that could not be read are named
)

// Config says what Read reads.
type Config struct {
	Root  string        // the path below which it looks, with it; "/" if empty
	Nodes int           // so many nodes are listed at most; a million if zero
	Time  time.Duration // for so long at most; 30 s if zero
}

// A Snapshot is what a part of the tree is used for. It is not of one instant: each path was read at a time of its own,
// after the call of Read.
type Snapshot struct {
	Entries []Entry // by path
	Listed  int     // how many nodes were listed; 0 if there is no such path
	Partial string  // why it is not whole; empty if nothing is missing but what Denied and TooLarge count
	Server  string  // that was asked; the last one, if the session moved
	Began   time.Time
	Took    time.Duration

	Denied   Missed // may not be read with these credentials
	TooLarge Missed // have more children than fit into a reply
}

// Missed are nodes that could not be listed. What is below them is not in the Snapshot.
type Missed struct {
	Count int
	Paths []string // the first of them
}

func (m *Missed) add(path string) {
	m.Count++
	if m.Count <= maxMissed {
		m.Paths = append(m.Paths, path)
	}
}

// An Entry is a path at which contenders stand or may stand, or a queue.
type Entry struct {
	Path   string
	Kind   Kind // Free for a path at which contenders have stood, as far as can be told
	Layout string
	lock.Summary
}

// WaitsAt returns at which other paths the first holder of e, a Set's, waits, as far as s has them: it holds nothing
// until it is first at all of its paths.
func (s *Snapshot) WaitsAt(e Entry) []string {
	if len(e.Holders) == 0 {
		return nil
	}
	var waits []string
	mine := e.Holders[0]
	for _, path := range mine.Owner.Set {
		i, ok := slices.BinarySearchFunc(s.Entries, path, func(e Entry, path string) int {
			return strings.Compare(e.Path, path)
		})
		if !ok || path == e.Path || len(s.Entries[i].Holders) == 0 {
			continue
		}
		// A set's nodes are made in one transaction, under one session.
		if first := s.Entries[i].Holders[0]; first.Session != mine.Session || first.Token != mine.Token {
			waits = append(waits, path)
		}
	}
	return waits
}

// Read reads what the tree below a path is used for. It lists each node that may have children once, and reads what is
// at the front of each line (lock.Summarize): the number of its requests does not depend on how many wait. It does not
// look into queues and semaphores for further locks. What may not be read is counted and left out. When a bound of cfg
// is reached it returns what it has, and says so. It returns ctx's cause if that ends, or the client's error.
func Read(ctx context.Context, client *zk.Client, cfg Config) (*Snapshot, error) {
	r := &reading{client: client, cfg: cfg, ends: make(map[string]string)}
	if r.cfg.Root == "" {
		r.cfg.Root = "/"
	}
	if r.cfg.Nodes == 0 {
		r.cfg.Nodes = defaultNodes
	}
	if r.cfg.Time == 0 {
		r.cfg.Time = defaultTime
	}
	if err := attempt.ReadArgs("survey", client, r.cfg.Root); err != nil && r.cfg.Root != "/" {
		return nil, err
	}
	return r.read(ctx)
}

// errTime ends a reading that takes too long.
var errTime = errors.New("the time is over")

// A reading is a call of Read. Its workers take paths from todo and add those below.
type reading struct {
	client *zk.Client
	cfg    Config

	mu     sync.Mutex // guards the fields below
	wake   sync.Cond  // todo is longer, or busy is 0
	todo   []string
	busy   int // workers that read a node
	result Snapshot
	ends   map[string]string // the end of a path that belongs to a semaphore, by that path
	err    error             // why all workers stop
}

func (r *reading) read(ctx context.Context) (*Snapshot, error) {
	// The server that we are connected to may be behind. One sync does for all reads of this session and those after.
	_, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (none struct{}, err error) {
		return none, sess.Sync(ctx, r.cfg.Root)
	})
	if err != nil {
		return nil, fmt.Errorf("survey %s: %w", r.cfg.Root, err)
	}
	r.wake.L = &r.mu
	r.todo = []string{r.cfg.Root}
	r.result.Began = time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, r.cfg.Time, errTime)
	defer cancel()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { r.work(limited) })
	}
	group.Wait()
	s := &r.result
	s.Took = time.Since(s.Began)
	switch {
	case errors.Is(r.err, errTime):
		s.Partial = fmt.Sprintf("stopped after %v, with %d nodes listed", r.cfg.Time, s.Listed)
	case r.err != nil:
		return nil, fmt.Errorf("survey %s: %w", r.cfg.Root, r.err)
	}
	if sess, err := r.client.Session(ctx); err == nil {
		s.Server, _ = sess.Server()
	}
	// The line of a kazoo Semaphore is a lock beside its path.
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return r.ends[e.Path] != "" })
	slices.SortFunc(s.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return s, nil
}

// work reads nodes until none is left.
func (r *reading) work(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.todo) == 0 && r.busy > 0 && r.err == nil {
			r.wake.Wait()
		}
		if len(r.todo) == 0 || r.err != nil {
			return
		}
		if r.result.Listed >= r.cfg.Nodes {
			r.result.Partial = fmt.Sprintf("stopped after %d nodes", r.result.Listed)
			r.todo = nil
			r.wake.Broadcast()
			return
		}
		path := r.todo[0]
		r.todo = r.todo[1:]
		r.busy++
		r.result.Listed++
		r.mu.Unlock()
		found, err := r.visit(ctx, path)
		r.mu.Lock()
		r.busy--
		r.note(path, found, err)
		r.wake.Broadcast()
	}
}

// note takes over what a visit has found.
func (r *reading) note(path string, f found, err error) {
	switch {
	case errors.Is(err, zk.NoAuth):
		r.result.Denied.add(path)
	case errors.Is(err, zk.ErrReplyTooLarge):
		r.result.TooLarge.add(path)
	case err != nil && r.err == nil:
		r.err = err
	case f.gone:
		r.result.Listed--
	case err == nil:
		r.todo = append(r.todo, f.below...)
		if f.entry != nil {
			r.result.Entries = append(r.result.Entries, *f.entry)
		}
		if f.entry != nil && f.entry.Kind == KazooPermits {
			r.ends[path+kazooQueue] = path
		}
	}
}

// kazooQueue ends the path of the lock at which kazoo's Semaphore has its line.
const kazooQueue = "-__lock__"

// found is what a visit has found.
type found struct {
	entry *Entry   // nil if the path is none
	below []string // what is to be visited
	gone  bool     // there is no such node
}

// A listing is what one request tells of a node.
type listing struct {
	names []string
	stat  zk.Stat
	data  []byte
}

// visit finds out what path is used for.
func (r *reading) visit(ctx context.Context, path string) (found, error) {
	l, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (listing, error) { return list(ctx, sess, path) })
	if errors.Is(err, zk.NoNode) { // it has gone since its parent was listed
		return found{gone: true}, nil
	}
	if err != nil {
		return found{}, err
	}
	if owned(l.stat) { // it has no children
		if l.stat.DataLength == 0 {
			return found{}, nil
		}
		return r.simple(ctx, path)
	}
	kind := Recognise(l.names, l.data)
	e := &Entry{Path: path, Kind: kind, Layout: Layout(kind, l.names)}
	switch {
	case kind == Queue, kind == ClassicQueue:
		return found{entry: e}, nil
	case kind == Free:
		if !used(l.stat) {
			return found{}, nil
		}
		return found{entry: e}, nil
	case !kind.Contended():
		return found{below: below(path, l.names)}, nil
	}
	e.Summary, err = lock.Summarize(ctx, r.client, path)
	if err != nil {
		return found{}, err
	}
	switch empty := e.Holding+e.Waiting == 0; {
	case empty && kind == KazooPermits: // they only have such names
		return found{below: below(path, l.names)}, nil
	case empty && kind != Permits:
		e.Kind = Free // all have left meanwhile
	}
	if kind == Permits || kind == KazooPermits {
		return found{entry: e}, nil
	}
	return found{entry: e, below: below(path, l.names)}, nil
}

// list lists the children of a node, and reads its data if it may be a queue's.
func list(ctx context.Context, sess *zk.Session, path string) (l listing, err error) {
	l.names, l.stat, err = sess.Children(ctx, path)
	if err != nil || len(l.names) == 0 || l.stat.DataLength == 0 {
		return l, err
	}
	l.data, _, err = sess.Get(ctx, path)
	return l, err
}

// simple returns the simple lock at path, if the ephemeral node there is one: only ours can be told.
func (r *reading) simple(ctx context.Context, path string) (found, error) {
	s, err := lock.Summarize(ctx, r.client, path)
	if errors.Is(err, zk.NoAuth) { // it is one of many nodes, and most likely not a lock
		return found{}, nil
	}
	if err != nil || len(s.Holders) == 0 || !s.Holders[0].Known {
		return found{}, err
	}
	return found{entry: &Entry{Path: path, Kind: Lock, Layout: "simple", Summary: s}}, nil
}

// below returns the paths of children that may have contenders: those that are none themselves.
func below(path string, children []string) []string {
	var list []string
	for _, name := range children {
		system := path == "/" && name == "zookeeper"
		if !system && !Beside(name) && !contender(name) {
			list = append(list, stdpath.Join(path, name))
		}
	}
	return list
}

// marks of containers, and of nodes that expire, are where others have their owner.
const container = math.MinInt64

// owned reports whether a node belongs to a session.
func owned(s zk.Stat) bool {
	const expires = 0xff
	return s.EphemeralOwner != 0 && s.EphemeralOwner != container && uint64(s.EphemeralOwner)>>56 != expires
}

// used reports whether a node without children looks like the path of a lock that is free: a container, or a node
// without data that has had children.
func used(s zk.Stat) bool {
	return s.EphemeralOwner == container || s.DataLength == 0 && s.Cversion > 0
}
