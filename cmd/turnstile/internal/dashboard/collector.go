package dashboard

// What all viewers share: one survey, its history, and what is read when somebody looks at it.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
)

const (
	takeEvery = 250 * time.Millisecond // snapshots come no more often than that
	readLimit = time.Minute            // for what is read besides the survey
	firstRead = 3 * time.Second        // so long a page waits for what was never read
	freshRead = 300 * time.Millisecond // and so long for something newer than what there is
	lookedFor = 30 * time.Second
	maxLooked = 500 // paths
	maxRecent = 20  // changes of holders

	maxExamined = 5000 // nodes, for findings
)

// A collector keeps what is shown up to date. It follows one survey all the time, so that there is a history; lines,
// deadlocks, queues, items, sessions and servers are read only while a page that shows them is open, and once for all
// viewers.
type collector struct {
	source  ensemble.Source
	ctx     context.Context //nolint:containedctx // of the readings, which outlive the request that begins them
	group   sync.WaitGroup
	started time.Time

	waiting   reading[map[string]ensemble.Line] // of locks for which somebody waits
	crowd     reading[map[string]ensemble.Line] // of those that are held, too
	deadlocks reading[deadlocksRead]
	queues    reading[map[string]ensemble.Queue]
	sessions  reading[sessionsRead]
	servers   reading[[]ensemble.Server]
	findings  reading[findingsRead]
	locks     shelf[string, lockRead]
	queue     shelf[string, queueRead]
	items     shelf[itemList, itemsRead]
	item      shelf[itemID, itemRead]
	listTurns *turns
	findTurns *turns
	data      bool // bodies and headers of items may be shown
	node      shelf[string, nodeRead]

	mu       sync.Mutex // guards the fields below
	snapshot *survey.Snapshot
	facts    facts
	cutAt    time.Time // since when no server is connected
	past     ensemble.History
	recent   []ensemble.Change // the latest first
	series   *series
	looked   map[string]time.Time // paths that are shown
	closed   bool                 // nothing more is begun
}

// errManyNodes is why a tree is not examined: that reads all of it once more, for which there must be room.
var errManyNodes = errors.New("there are more than 5,000 nodes; run turnstile doctor")

// What is read besides the survey.
type (
	deadlocksRead struct {
		list []lock.FoundDeadlock
		err  error
	}
	findingsRead struct {
		list []ensemble.Finding
		err  error
	}
	sessionsRead struct {
		list  []ensemble.Session
		lacks []string
	}
	lockRead struct {
		line    ensemble.Line
		records []lock.Record
	}
	queueRead struct {
		counts ensemble.Queue
		err    error
	}
	nodeRead struct {
		node ensemble.Node
		err  error
	}
)

// facts are counts of a snapshot.
type facts struct {
	held, waiting             int // locks, contenders
	locks, elections, permits int // that are held or waited for
	queues                    int
	first                     time.Time // since when the one waits that has waited longest
}

func newCollector(ctx context.Context, source ensemble.Source, data bool) *collector {
	c := &collector{
		source: source, ctx: ctx, started: time.Now(), past: make(ensemble.History), series: newSeries(),
		looked: make(map[string]time.Time), listTurns: newTurns(), findTurns: newTurns(), data: data,
	}
	c.waiting = reading[map[string]ensemble.Line]{
		every: time.Second,
		read: func(ctx context.Context, last map[string]ensemble.Line) map[string]ensemble.Line {
			return c.lines(ctx, last, false)
		},
	}
	c.deadlocks = reading[deadlocksRead]{
		every: time.Second,
		read: func(ctx context.Context, _ deadlocksRead) (r deadlocksRead) {
			r.list, r.err = source.Deadlocks(ctx)
			return r
		},
	}
	c.findings = reading[findingsRead]{
		every: 10 * time.Minute, late: true, // it reads everything
		read: func(ctx context.Context, _ findingsRead) (r findingsRead) {
			if s, _ := c.now(); s.Listed > maxExamined {
				r.err = errManyNodes
				return r
			}
			r.list, r.err = source.Findings(ctx)
			return r
		},
	}
	c.crowd = reading[map[string]ensemble.Line]{
		every: 5 * time.Second,
		read: func(ctx context.Context, last map[string]ensemble.Line) map[string]ensemble.Line {
			return c.lines(ctx, last, true)
		},
	}
	c.queues = reading[map[string]ensemble.Queue]{
		every: 2 * time.Second,
		read: func(ctx context.Context, last map[string]ensemble.Queue) map[string]ensemble.Queue {
			s, _ := c.now()
			return source.ReadQueues(ctx, s, last)
		},
	}
	c.sessions = reading[sessionsRead]{
		every: 10 * time.Second, // dump names each ephemeral node
		read: func(ctx context.Context, _ sessionsRead) (r sessionsRead) {
			r.list, r.lacks = source.Sessions(ctx)
			return r
		},
	}
	c.servers = reading[[]ensemble.Server]{
		every: 5 * time.Second, always: true,
		read: func(ctx context.Context, _ []ensemble.Server) []ensemble.Server { return source.Servers(ctx) },
	}
	c.locks = shelf[string, lockRead]{every: time.Second, read: c.readLock}
	c.queue = shelf[string, queueRead]{
		every: 2 * time.Second,
		read: func(ctx context.Context, path string, last queueRead) (r queueRead) {
			r.counts, r.err = source.Queue(ctx, path, maxWorking, last.counts.Rates)
			return r
		},
	}
	c.items = shelf[itemList, itemsRead]{every: listEvery, read: c.readItems}
	c.item = shelf[itemID, itemRead]{every: findEvery, read: c.findItem}
	c.node = shelf[string, nodeRead]{
		every: 2 * time.Second,
		read: func(ctx context.Context, path string, _ nodeRead) (r nodeRead) {
			r.node, r.err = source.Node(ctx, path, data)
			return r
		},
	}
	return c
}

// lines reads again what is stale of some lines.
func (c *collector) lines(ctx context.Context, last map[string]ensemble.Line, all bool) map[string]ensemble.Line {
	s, now := c.now()
	wanted := ensemble.Crowded(s, all, now)
	lines := make(map[string]ensemble.Line, len(wanted))
	for _, e := range wanted {
		if l, ok := last[e.Path]; ok {
			lines[e.Path] = l
		}
	}
	maps.Copy(lines, c.source.ReadLines(ctx, ensemble.Stale(wanted, lines, now)))
	return lines
}

// readLock reads the line of a lock, unless it is too long, and what is recorded of revocations.
func (c *collector) readLock(ctx context.Context, path string, last lockRead) lockRead {
	s, now := c.now()
	e, ok := s.Entry(path)
	if !ok || ensemble.TooLong(e) {
		return lockRead{line: ensemble.Line{Entry: e, Read: now}}
	}
	if len(ensemble.Stale([]survey.Entry{e}, map[string]ensemble.Line{path: last.line}, now)) == 0 {
		return last
	}
	r := lockRead{line: ensemble.Line{Entry: e, Read: now}}
	r.line.List, r.line.Err = c.source.Line(ctx, path)
	r.records, _ = c.source.Records(ctx, path) // they may not be for these credentials
	return r
}

// run follows the survey until ctx ends or there will be no other snapshot. It returns why.
func (c *collector) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { c.sample(ctx) })
	for {
		s, err := c.source.Next(ctx, c.latest(), c.shown())
		if err != nil {
			return err
		}
		c.take(s, time.Now())
		select {
		case <-time.After(takeEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin does something that outlives the request for it. It reports whether it has begun.
func (c *collector) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.group.Go(f)
	}
	return !c.closed
}

// close waits for what has begun. That ends soon after ctx.
func (c *collector) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.group.Wait()
}

// take makes a snapshot the one that is shown.
func (c *collector) take(s *survey.Snapshot, now time.Time) {
	f := count(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range c.past.Note(c.snapshot, s, c.source.Owner, now) {
		c.recent = slices.Insert(c.recent, 0, change)
		c.recent = c.recent[:min(len(c.recent), maxRecent)]
	}
	switch cut := s.Mode == survey.Cut; {
	case !cut:
		c.cutAt = time.Time{}
	case c.cutAt.IsZero():
		c.cutAt = now
	}
	c.snapshot, c.facts = s, f
}

func count(s *survey.Snapshot) (f facts) {
	for _, e := range s.Entries {
		switch {
		case ensemble.IsQueue(e):
			f.queues++
			continue
		case !e.Kind.Contended() || e.Holding+e.Waiting == 0:
			continue
		case ensemble.KindWord(e) == "permits":
			f.permits++
		case ensemble.IsElection(e):
			f.elections++
		default:
			f.locks++
		}
		if e.Holding > 0 {
			f.held++
		}
		f.waiting += e.Waiting
		if e.First != nil && (f.first.IsZero() || e.First.Since.Before(f.first)) {
			f.first = e.First.Since
		}
	}
	return f
}

// sample adds to the history each second.
func (c *collector) sample(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.mu.Lock()
			c.series.add(c.snapshot, c.facts, now)
			c.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

func (c *collector) latest() *survey.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshot
}

// now returns the snapshot that is shown, an empty one if there is none yet, and the time.
func (c *collector) now() (*survey.Snapshot, time.Time) {
	s := c.latest()
	if s == nil {
		s = &survey.Snapshot{Mode: survey.Cut}
	}
	return s, time.Now()
}

// look says that paths are shown.
func (c *collector) look(paths ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, path := range paths {
		if _, ok := c.looked[path]; ok || len(c.looked) < maxLooked {
			c.looked[path] = now
		}
	}
}

// shown returns what has been shown in the last seconds.
func (c *collector) shown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.looked, func(_ string, at time.Time) bool { return time.Since(at) > lookedFor })
	return slices.Collect(maps.Keys(c.looked))
}

// A reading is something that is read when somebody looks at it, no more often than it should be, and once for all.
type reading[T any] struct {
	every  time.Duration
	always bool // also while no server is connected
	late   bool // nobody waits for it
	read   func(ctx context.Context, last T) T

	mu      sync.Mutex // guards the fields below
	value   T
	at      time.Time     // when it was read; zero if never
	running chan struct{} // closed when the reading ends that is under way
}

// get returns what was read, and when: zero if there is nothing yet.
func (r *reading[T]) get(ctx context.Context, c *collector) (T, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := c.now()
	if r.running == nil && now.Sub(r.at) >= r.every && (r.always || s.Mode != survey.Cut) {
		done, last := make(chan struct{}), r.value
		begun := c.begin(func() { //nolint:contextcheck // it outlives the request
			ctx, cancel := context.WithTimeout(c.ctx, readLimit)
			defer cancel()
			value := r.read(ctx, last)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.value, r.at, r.running = value, time.Now(), nil
			close(done)
		})
		if begun {
			r.running = done
		}
	}
	if running := r.running; running != nil && !r.late {
		patience := freshRead
		if r.at.IsZero() {
			patience = firstRead
		}
		r.mu.Unlock()
		select {
		case <-running:
		case <-time.After(patience):
		case <-ctx.Done():
		}
		r.mu.Lock()
	}
	return r.value, r.at
}

// maxShelf is how many things are looked at at a time.
const maxShelf = 64

// A shelf has a reading for each thing that is looked at.
type shelf[K comparable, T any] struct {
	every time.Duration
	read  func(ctx context.Context, of K, last T) T

	mu   sync.Mutex // guards list
	list []*shelved[K, T]
}

type shelved[K comparable, T any] struct {
	reading[T]

	of K
}

// get returns what was read of a thing, and when: zero if there is nothing yet.
func (s *shelf[K, T]) get(ctx context.Context, c *collector, of K) (T, time.Time) {
	s.mu.Lock()
	i := slices.IndexFunc(s.list, func(b *shelved[K, T]) bool { return b.of == of })
	var b *shelved[K, T]
	if i >= 0 {
		b = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	} else {
		b = &shelved[K, T]{of: of}
		b.every = s.every
		b.read = func(ctx context.Context, last T) T { return s.read(ctx, of, last) }
	}
	s.list = slices.Insert(s.list, 0, b) // those that were looked at longest ago are at the end
	s.list = s.list[:min(len(s.list), maxShelf)]
	s.mu.Unlock()
	return b.get(ctx, c)
}
