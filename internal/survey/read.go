package survey

// One reading of a part of the tree.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

	// See, if not nil, is called with each node that is listed, its children and its stat, by several goroutines at a
	// time. Contenders are not listed, nor what is below queues and semaphores.
	See func(path string, children []string, stat zk.Stat)
}

// A Snapshot is what a part of the tree is used for. It is not of one instant: each path was read at a time of its own,
// between Began and Asked. It never changes.
type Snapshot struct {
	Entries []Entry // by path
	Listed  int     // how many nodes were listed; 0 if there is no such path
	Partial string  // why it is not whole; empty if nothing is missing but what Denied and TooLarge count
	Server  string  // that was asked; the last one, if the session moved
	Began   time.Time
	Asked   time.Time // the last answer came
	Mode    Mode      // how Follow keeps it up to date; empty if Read has returned it
	Since   time.Time // with Cut: when the connection was lost

	Denied   Missed // may not be read with these credentials
	TooLarge Missed // have more children than fit into a reply
}

// Missed are nodes that could not be listed. What is below them is not in the Snapshot.
type Missed struct {
	Count int
	Paths []string // the first of them
}

// missed returns what is in a set.
func missed(paths map[string]struct{}) Missed {
	m := Missed{Count: len(paths)}
	if m.Count > 0 {
		sorted := slices.Sorted(maps.Keys(paths))
		m.Paths = sorted[:min(m.Count, maxMissed)]
	}
	return m
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
		other, ok := s.Entry(path)
		if !ok || len(other.Holders) == 0 {
			continue
		}
		// A set's nodes are made in one transaction, under one session.
		if first := other.Holders[0]; first.Session != mine.Session || first.Token != mine.Token {
			waits = append(waits, path)
		}
	}
	return waits
}

// Entry returns the entry of a path.
func (s *Snapshot) Entry(path string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(s.Entries, path, func(e Entry, path string) int {
		return strings.Compare(e.Path, path)
	})
	if !ok {
		return Entry{}, false
	}
	return s.Entries[i], true
}

// Read reads what the tree below a path is used for. It lists each node that may have children once, and reads what is
// at the front of each line (lock.Summarize): the number of its requests does not depend on how many wait. It does not
// look into queues and semaphores for further locks. What may not be read is counted and left out. When a bound of cfg
// is reached it returns what it has, and says so. It returns ctx's cause if that ends, or the client's error.
func Read(ctx context.Context, client *zk.Client, cfg Config) (*Snapshot, error) {
	cfg, err := cfg.checked(client)
	if err != nil {
		return nil, err
	}
	r := newReading(client, cfg)
	if err := r.whole(ctx); err != nil {
		return nil, err
	}
	return r.snapshot(), nil
}

// checked returns cfg with its defaults.
func (cfg Config) checked(client *zk.Client) (Config, error) {
	cfg.Root = cmp.Or(cfg.Root, "/")
	cfg.Nodes = cmp.Or(cfg.Nodes, defaultNodes)
	cfg.Time = cmp.Or(cfg.Time, defaultTime)
	if err := attempt.ReadArgs("survey", client, cfg.Root); err != nil && cfg.Root != "/" {
		return cfg, err
	}
	return cfg, nil
}

// errTime ends a reading that takes too long.
var errTime = errors.New("the time is over")

// A reading is what has been read of a part of the tree. While it reads, workers take paths from todo and add those
// below.
type reading struct {
	client *zk.Client
	cfg    Config
	began  time.Time // the first pass
	asked  time.Time // the end of the last pass

	mu       sync.Mutex // guards the fields below while it reads
	wake     sync.Cond  // todo is longer, or busy is 0
	todo     []string
	first    map[string]struct{} // what the pass has begun with: nothing is read twice in a pass
	busy     int                 // workers that read a node
	known    map[string]Kind     // what has been listed
	entries  map[string]Entry
	denied   map[string]struct{}
	tooLarge map[string]struct{}
	skip     map[string]struct{} // too large lately: to list them again would break the connection
	partial  string
	closings bool  // a path has become one that is not looked into
	err      error // why all workers stop
}

func newReading(client *zk.Client, cfg Config) *reading {
	r := &reading{
		client: client, cfg: cfg, began: time.Now(), known: make(map[string]Kind), entries: make(map[string]Entry),
		denied: make(map[string]struct{}), tooLarge: make(map[string]struct{}),
	}
	r.wake.L = &r.mu
	return r
}

// whole reads everything.
func (r *reading) whole(ctx context.Context) error {
	// The server that we are connected to may be behind. One sync does for all reads of this session and those after.
	_, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (none struct{}, err error) {
		return none, sess.Sync(ctx, r.cfg.Root)
	})
	if err != nil {
		return fmt.Errorf("survey %s: %w", r.cfg.Root, err)
	}
	return r.pass(ctx, []string{r.cfg.Root})
}

// pass reads what is at these paths, and what is new below them.
func (r *reading) pass(ctx context.Context, paths []string) error {
	r.todo, r.err = paths, nil
	r.first = make(map[string]struct{}, len(paths))
	for _, path := range paths {
		r.first[path] = struct{}{}
	}
	limited, cancel := context.WithTimeoutCause(ctx, r.cfg.Time, errTime)
	defer cancel()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { r.work(limited) })
	}
	group.Wait()
	r.asked = time.Now()
	switch {
	case errors.Is(r.err, errTime):
		r.partial = fmt.Sprintf("stopped after %v, with %d nodes listed", r.cfg.Time, len(r.known))
	case r.err != nil:
		return fmt.Errorf("survey %s: %w", r.cfg.Root, r.err)
	}
	return nil
}

// again reads what is at these paths once more.
func (r *reading) again(ctx context.Context, paths []string) error {
	r.closings = false
	if err := r.pass(ctx, paths); err != nil || !r.closings {
		return err
	}
	inside := func(path string) bool {
		for path != r.cfg.Root {
			name := stdpath.Base(path)
			if path = stdpath.Dir(path); r.known[path].hides(name) {
				return true
			}
		}
		return false
	}
	maps.DeleteFunc(r.entries, func(path string, _ Entry) bool { return inside(path) })
	maps.DeleteFunc(r.known, func(path string, _ Kind) bool { return inside(path) })
	return nil
}

// snapshot returns what has been read.
func (r *reading) snapshot() *Snapshot {
	s := &Snapshot{
		Listed: len(r.known), Partial: r.partial, Began: r.began, Asked: r.asked,
		Denied: missed(r.denied), TooLarge: missed(r.tooLarge), Entries: make([]Entry, 0, len(r.entries)),
	}
	for path, e := range r.entries {
		// The line of a kazoo Semaphore is a lock beside its path.
		of, queue := strings.CutSuffix(path, kazooQueue)
		inLine := queue && r.entries[of].Kind == KazooPermits
		// The directories of a semaphore that nobody uses look like free locks.
		idle := e.Kind == Free && permitsDir(stdpath.Base(path)) && r.entries[stdpath.Dir(path)].Kind == Permits
		if !inLine && !idle {
			s.Entries = append(s.Entries, e)
		}
	}
	slices.SortFunc(s.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return s
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
		path := r.todo[0]
		r.todo = r.todo[1:]
		if _, ok := r.known[path]; !ok && len(r.known)+r.busy >= r.cfg.Nodes {
			r.partial = fmt.Sprintf("stopped after %d nodes", r.cfg.Nodes)
			continue
		}
		r.busy++
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
		r.forget(path)
		r.denied[path] = struct{}{}
		return
	case errors.Is(err, zk.ErrReplyTooLarge), errors.Is(err, zk.BadArguments): // its path may be too long, too
		r.forget(path)
		r.tooLarge[path] = struct{}{}
		return
	case err != nil && r.err == nil:
		r.err = err
		return
	case err != nil:
		return
	}
	before := r.known[path]
	r.forget(path)
	if f.gone {
		return
	}
	// Kinds that cover all names cover the directories of semaphores, too.
	r.closings = r.closings || f.kind != before && (f.kind.covers(leases) || f.kind == KazooPermits || before == named)
	r.known[path] = f.kind
	if f.entry != nil {
		r.entries[path] = *f.entry
	}
	for _, below := range f.below {
		_, known := r.known[below]
		_, first := r.first[below]
		_, denied := r.denied[below]
		_, large := r.tooLarge[below]
		if !known && !first && !denied && !large { // what was refused is asked for again by the next whole reading
			r.todo = append(r.todo, below)
		}
	}
}

// forget removes what is known of one path.
func (r *reading) forget(path string) {
	delete(r.known, path)
	delete(r.entries, path)
	delete(r.denied, path)
	delete(r.tooLarge, path)
}

// kazooQueue ends the path of the lock at which kazoo's Semaphore has its line.
const kazooQueue = "-__lock__"

// found is what a visit has found.
type found struct {
	kind  Kind
	entry *Entry   // nil if the path is none
	below []string // what is to be visited
	gone  bool     // there is no such node
}

// A listing is what one request tells of a node.
type listing struct {
	zk.Children
	data []byte
}

// visit finds out what path is used for.
func (r *reading) visit(ctx context.Context, path string) (found, error) {
	if _, ok := r.skip[path]; ok {
		return found{}, zk.ErrReplyTooLarge
	}
	l, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (listing, error) { return list(ctx, sess, path) })
	if errors.Is(err, zk.NoNode) { // it has gone since its parent was listed
		return found{gone: true}, nil
	}
	if err != nil {
		return found{}, err
	}
	if r.cfg.See != nil {
		r.cfg.See(path, l.Names, l.Stat)
	}
	if l.Stat.EphemeralOwner != 0 { // it has no children
		if l.Stat.DataLength == 0 {
			return found{kind: Other}, nil
		}
		return r.simple(ctx, path, l.Children)
	}
	f := found{kind: Recognise(l.Names, l.data)}
	if f.kind == ClassicQueue {
		if item, err := r.item(ctx, stdpath.Join(path, l.Names[0])); !item || err != nil {
			return found{kind: named, below: below(path, named, l.Names)}, err
		}
	}
	f.entry = &Entry{Path: path, Kind: f.kind, Layout: Layout(f.kind, l.Names)}
	f.below = below(path, f.kind, l.Names)
	if !f.kind.Contended() {
		if f.kind == Other || f.kind == Free && !used(l.Stat) {
			f.entry = nil
		}
		return f, nil
	}
	f.entry.Summary, err = lock.SummarizeListed(ctx, r.client, path, l.Children)
	switch empty := f.entry.Holding+f.entry.Waiting == 0; {
	case empty && f.kind == KazooPermits: // they only have such names
		return found{kind: Other, below: below(path, Other, l.Names)}, err
	case empty && f.kind == Permits: // a semaphore that nobody uses, or a directory with a lock of that name
		if slices.ContainsFunc(l.Names, func(name string) bool { return !f.kind.covers(name) }) {
			f.entry = nil
		}
		f.kind, f.below = Other, below(path, Other, l.Names)
	case empty && err == nil:
		directories, err := r.directories(ctx, path, l.Names)
		switch {
		case errors.Is(err, zk.NoNode):
			return found{gone: true}, nil
		case directories || err != nil:
			return found{kind: named, below: below(path, named, l.Names)}, err
		}
		f.entry.Kind = Free // all have left meanwhile
	}
	return f, err
}

// list lists the children of a node, and reads its data if it may be a queue's.
func list(ctx context.Context, sess *zk.Session, path string) (l listing, err error) {
	l.Names, l.Stat, err = sess.Children(ctx, path)
	if err != nil || len(l.Names) == 0 || l.Stat.DataLength == 0 {
		return l, err
	}
	l.data, _, err = sess.Get(ctx, path)
	return l, err
}

// simple returns the simple lock at path, if the ephemeral node there is one: only ours can be told.
func (r *reading) simple(ctx context.Context, path string, listed zk.Children) (found, error) {
	s, err := lock.SummarizeListed(ctx, r.client, path, listed)
	if errors.Is(err, zk.NoAuth) || errors.Is(err, zk.BadArguments) { // it is one of many, and most likely not a lock
		return found{kind: Other}, nil
	}
	if err != nil || len(s.Holders) == 0 || !s.Holders[0].Known {
		return found{kind: Other}, err
	}
	return found{kind: Lock, entry: &Entry{Path: path, Kind: Lock, Layout: "simple", Summary: s}}, nil
}

// directories reports whether children of path that have the names of contenders, though none stands there, are still
// there: then they are directories, of other locks perhaps. Contenders would have left.
func (r *reading) directories(ctx context.Context, path string, children []string) (bool, error) {
	now, err := attempt.Run(ctx, r.client, func(sess *zk.Session) ([]string, error) {
		names, _, err := sess.Children(ctx, path)
		return names, err
	})
	return slices.ContainsFunc(now, func(name string) bool {
		return contender(name) && slices.Contains(children, name)
	}), err
}

// item reports whether the node at a path, which has the name of a classic queue's item, may be one: not if it has or
// had children, as the path of a lock.
func (r *reading) item(ctx context.Context, path string) (bool, error) {
	stat, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (zk.Stat, error) {
		stat, _, err := sess.Exists(ctx, path) // of one that has gone it is zero
		return stat, err
	})
	return stat.NumChildren == 0 && !used(stat), err
}

// below returns the paths of those children of a path of a kind that may have contenders: that are none themselves, nor
// a part of what the path is.
func below(path string, kind Kind, children []string) []string {
	var list []string
	for _, name := range children {
		system := path == "/" && name == "zookeeper"
		if !system && !kind.hides(name) && !Beside(name) {
			list = append(list, stdpath.Join(path, name))
		}
	}
	return list
}

// used reports whether a node without children looks like the path of a lock that is free: it has no data, and has had
// children.
func used(s zk.Stat) bool { return s.DataLength == 0 && s.Cversion > 0 }
