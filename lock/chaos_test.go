package lock_test

import (
	"context"
	"math/rand/v2"
	stdpath "path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A held is a lock of any kind that a goroutine holds.
type held struct {
	ctx     context.Context //nolint:containedctx // the hold's
	name    string
	token   int64
	shared  bool
	permits int
	change  func(context.Context) error // an upgrade or a downgrade; nil if there is none
	release func(context.Context) error
}

// An appetite is one way of asking for something.
type appetite struct {
	shared  bool
	permits int
	try     bool
}

// A resource is what locks protect, with a rule about who may use it at a time.
type resource struct {
	limit int // permits; 0 if one may be in, or readers
	paths []string

	mu   sync.Mutex // guards the rest
	in   map[*held]bool
	last int64 // the largest token of those who had it for themselves
}

// enter fails the test unless h may be in. All clocks are one and exact: who is in whose context has not ended is in.
func (s *resource) enter(t *testing.T, h *held) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.ctx.Err() != nil {
		return
	}
	out := h.permits
	for other := range s.in {
		if other.ctx.Err() != nil {
			continue
		}
		out += other.permits
		if s.limit == 0 && (!h.shared || !other.shared) {
			t.Errorf("%v: %s and %s are in at once", s.paths, other.name, h.name)
		}
	}
	if s.limit > 0 && out > s.limit {
		t.Errorf("%v: %d permits of %d are out", s.paths, out, s.limit)
	}
	if s.limit == 0 && h.token <= s.last {
		t.Errorf("%v: %s has token %d after %d", s.paths, h.name, h.token, s.last)
	}
	if s.limit == 0 && !h.shared {
		s.last = h.token
	}
	s.in[h] = true
}

func (s *resource) leave(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.in, h)
}

// A guest is a goroutine's way to one kind of thing.
type guest struct {
	what      string
	resources []*resource
	take      func(context.Context, appetite) (*held, error)
}

func asHeld(h *lock.Hold, err error) (*held, error) {
	if err != nil {
		return nil, err
	}
	return &held{ctx: h.Context(), name: h.Path(), token: int64(h.Token()), release: h.UnlockWait}, nil
}

type locker interface {
	Lock(ctx context.Context) (*lock.Hold, error)
	TryLock(ctx context.Context) (*lock.Hold, error)
}

// plain is a guest of a lock that is taken for oneself.
func plain(what string, m locker, resources ...*resource) guest {
	return guest{what, resources, func(ctx context.Context, a appetite) (*held, error) {
		if a.try {
			return asHeld(m.TryLock(ctx))
		}
		return asHeld(m.Lock(ctx))
	}}
}

func shared(what string, m *lock.RWMutex, s *resource) guest {
	return guest{what, []*resource{s}, func(ctx context.Context, a appetite) (*held, error) {
		take := map[[2]bool]func(context.Context) (*lock.Hold, error){
			{false, false}: m.Lock, {false, true}: m.TryLock, {true, false}: m.RLock, {true, true}: m.TryRLock,
		}[[2]bool{a.shared, a.try}]
		h, err := take(ctx)
		got, err := asHeld(h, err)
		if err == nil {
			change := m.Downgrade
			if a.shared {
				change = m.Upgrade
			}
			got.shared, got.change = a.shared, func(ctx context.Context) error { return change(ctx, h) }
		}
		return got, err
	}}
}

func permitted(what string, m *lock.Semaphore, s *resource) guest {
	return guest{what, []*resource{s}, func(ctx context.Context, a appetite) (*held, error) {
		take := m.Acquire
		if a.try {
			take = m.TryAcquire
		}
		got, err := asHeld(take(ctx, a.permits))
		if err == nil {
			got.permits = a.permits
		}
		return got, err
	}}
}

func elected(what string, c *elect.Candidate, s *resource) guest {
	return guest{what, []*resource{s}, func(ctx context.Context, a appetite) (*held, error) {
		campaign := c.Campaign
		if a.try {
			campaign = c.TryCampaign
		}
		l, err := campaign(ctx)
		if err != nil {
			return nil, err
		}
		return &held{ctx: l.Context(), name: l.Path(), token: int64(l.Token()), release: l.ResignWait}, nil
	}}
}

// kindsOfGuests is how many there are of each client.
const kindsOfGuests = 13

// club is all the resources and how one client goes to them.
type club struct {
	line, layouts, rest, rw, kazooRW, agreed, stored, watched, simple, latch, selector *resource
}

func newClub() *club {
	at := func(limit int, paths ...string) *resource {
		return &resource{limit: limit, paths: paths, in: make(map[*held]bool)}
	}
	return &club{
		line: at(0, "/c/line"), layouts: at(0, "/c/layouts"), rest: at(0, "/c/rest"),
		rw: at(0, "/c/rw"), kazooRW: at(0, "/c/kazoorw"),
		agreed: at(4, "/c/agreed"), stored: at(3, "/c/stored"), watched: at(3, "/c/watched"),
		simple: at(0, "/c/simple"),
		latch:  at(0, "/c/latch"), selector: at(0, "/c/selector"),
	}
}

func (c *club) guests(t *testing.T, client *zk.Client, n int) []guest {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	handoff := []lock.Config{
		{}, {Handoff: lock.StrictFIFO}, {Retain: 3 * time.Second}, {Handoff: lock.Handoff{Count: 2}},
	}[n%4]
	layout, way := lock.Layout(n%3), lock.Handoff{}
	if n%2 == 1 {
		way = lock.StrictFIFO
	}
	m, err := lock.NewMutex(client, c.line.paths[0], handoff)
	must(err)
	l, err := lock.NewMutex(client, c.layouts.paths[0], lock.Config{Layout: layout, Handoff: way})
	must(err)
	r, err := lock.NewMutex(client, c.rest.paths[0], lock.Config{Delay: 5 * time.Second})
	must(err)
	set, err := lock.NewSet(client, []string{c.line.paths[0], c.layouts.paths[0]}, lock.SetConfig{Layout: layout})
	must(err)
	set2, err := lock.NewSet(client, []string{c.layouts.paths[0], c.line.paths[0]},
		lock.SetConfig{Delay: 3 * time.Second})
	must(err)
	rests := time.Duration(n%2) * 3 * time.Second
	rw, err := lock.NewRWMutex(client, c.rw.paths[0], lock.RWConfig{Handoff: way, Delay: rests})
	must(err)
	krw, err := lock.NewRWMutex(client, c.kazooRW.paths[0], lock.RWConfig{Layout: layout, Handoff: way})
	must(err)
	agreed, err := lock.NewSemaphore(client, c.agreed.paths[0], lock.AgreedLimit(4), lock.SemaphoreConfig{})
	must(err)
	stored, err := lock.NewSemaphore(client, c.stored.paths[0], lock.StoredLimit(3), lock.SemaphoreConfig{})
	must(err)
	watched, err := lock.NewSemaphore(client, c.watched.paths[0], lock.WatchedLimit("/c/limit"), lock.SemaphoreConfig{})
	must(err)
	simple, err := lock.NewSimple(client, c.simple.paths[0], lock.SimpleConfig{})
	must(err)
	latch, err := elect.NewCandidate(client, c.latch.paths[0], strconv.Itoa(n), elect.Config{})
	must(err)
	selector, err := elect.NewCandidate(client, c.selector.paths[0], strconv.Itoa(n),
		elect.Config{Layout: elect.Layout(1 + n%2)})
	must(err)
	return []guest{
		plain("mutex", m, c.line), plain("layouts", l, c.layouts), plain("delay", r, c.rest),
		plain("set", set, c.line, c.layouts), plain("set2", set2, c.line, c.layouts),
		shared("rw", rw, c.rw), shared("kazoo rw", krw, c.kazooRW),
		permitted("agreed", agreed, c.agreed), permitted("stored", stored, c.stored),
		permitted("watched", watched, c.watched), plain("simple", simple, c.simple), elected("latch", latch, c.latch),
		elected("selector", selector, c.selector),
	}
}

// stay takes what g is a guest of, and reports whether it had it. It fails the test if it has to wait too long.
func (g *guest) stay(ctx context.Context, t *testing.T, a appetite, long time.Duration, change bool) bool {
	t.Helper()
	h, err := g.take(ctx, a)
	if err != nil {
		return false
	}
	for _, s := range g.resources {
		s.enter(t, h)
	}
	select {
	case <-h.ctx.Done():
	case <-time.After(long):
	}
	if change && h.change != nil && h.ctx.Err() == nil {
		for _, s := range g.resources {
			s.leave(h)
		}
		_ = h.change(h.ctx) // what it is then is another test's
		select {
		case <-h.ctx.Done():
		case <-time.After(long):
		}
	}
	for _, s := range g.resources {
		s.leave(h)
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = h.release(leaving)
	return true
}

// Everything that can be held, used at random under random faults: what is promised of it holds, and when the faults
// are over, every waiter is served and nothing is left.
//
// Promise: 4
func TestEverybodyIsServedAfterRandomFaults(t *testing.T) {
	t.Parallel()
	for range 5 {
		t.Run("", func(t *testing.T) { inWorld(t, randomFaults) })
	}
}

func randomFaults(t *testing.T, w *world) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dice := rand.New(rand.NewPCG(seed, 1)) // the control function's own
	const clients, each = 4, 2
	c := newClub()
	chosen := random.Perm(kindsOfGuests)[:1+random.IntN(3)] // few kinds, so that many contend for one lock
	sess := w.Session(t, 20*time.Second)
	if _, err := sess.Create(t.Context(), "/c", nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	w.setLimitAt("/c/limit", 3)
	faults := []zktest.Fault{
		zktest.Refuse, zktest.CutBefore, zktest.DropReply, zktest.DropReply, zktest.CutAfter, zktest.Mute,
		zktest.DelayReply(time.Second),
	}
	w.Control(func(zktest.Request) zktest.Fault {
		if i := dice.IntN(250); i < len(faults) {
			return faults[i]
		}
		return zktest.Pass
	})
	ctx, calm := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range clients {
		client := w.Client(t, time.Duration(2+random.IntN(10))*time.Second)
		var guests []guest
		for _, n := range chosen {
			guests = append(guests, c.guests(t, client, i)[n])
		}
		for range each {
			taste := rand.New(rand.NewPCG(seed, random.Uint64()))
			wg.Go(func() { visits(ctx, t, guests, taste) })
		}
	}
	for range 40 {
		<-time.After(time.Duration(random.IntN(4000)) * time.Millisecond)
		w.wreak(random)
	}
	w.Control(nil)
	w.Heal()
	w.ReleaseWatches()
	calm()
	served := make(chan struct{})
	go func() {
		wg.Wait()
		close(served)
	}()
	select {
	case <-served:
	case <-time.After(20 * time.Minute):
		t.Errorf("seed %d: a waiter is not served; there are %v", seed, w.below("/c"))
	}
	<-time.After(time.Minute) // for sessions of which only the server knows
	for _, left := range w.below("/c") {
		markers := []string{"lock-", "lease-", "latch-", "lock__", "READ__", "WRIT__"}
		if name := stdpath.Base(left); slices.ContainsFunc(markers, func(marker string) bool {
			return strings.Contains(name, marker)
		}) {
			t.Errorf("left: %s", left)
		}
	}
	w.NoWatches(t)
}

// below lists the nodes below a path.
func (w *world) below(path string) []string {
	var found []string
	for _, name := range w.nodes(path) {
		found = append(found, path+"/"+name)
		found = append(found, w.below(path+"/"+name)...)
	}
	return found
}

func visits(ctx context.Context, t *testing.T, guests []guest, taste *rand.Rand) {
	t.Helper()
	for ctx.Err() == nil {
		g := guests[taste.IntN(len(guests))]
		a := appetite{shared: taste.IntN(3) > 0, permits: 1 + taste.IntN(3), try: taste.IntN(5) == 0}
		long := time.Duration(taste.IntN(100)) * time.Millisecond
		if taste.IntN(10) == 0 {
			long *= 50
		}
		inside, cancel := context.WithCancel(ctx)
		if taste.IntN(3) == 0 {
			inside, cancel = context.WithTimeout(ctx, time.Duration(taste.IntN(3000))*time.Millisecond)
		}
		g.stay(inside, t, a, long, taste.IntN(3) == 0)
		cancel()
		<-time.After(time.Duration(taste.IntN(50)) * time.Millisecond)
	}
	for _, g := range guests {
		for !g.stay(context.WithoutCancel(ctx), t, appetite{permits: 3}, time.Millisecond, false) {
			<-time.After(time.Millisecond)
		}
	}
}

// wreak does something bad to a random session, and mends it after a while.
func (w *world) wreak(random *rand.Rand) {
	ids := w.Connected()
	if len(ids) == 0 {
		w.Heal()
		return
	}
	sessions := []int64{ids[random.IntN(len(ids))]}
	if random.IntN(10) == 0 {
		sessions = nil // all of them
	}
	switch random.IntN(8) {
	case 0, 1:
		w.Drop(sessions...)
	case 2:
		w.Cut(sessions...)
	case 3:
		w.HalfOpen(sessions...)
	case 4:
		w.Mute(sessions...)
	case 5:
		w.Freeze(sessions...)
	case 6:
		w.Delay(time.Duration(random.IntN(2000))*time.Millisecond, sessions...)
	default:
		w.HoldWatches(sessions...)
	}
	time.AfterFunc(time.Duration(random.IntN(15_000))*time.Millisecond, func() {
		w.Heal(sessions...)
		w.ReleaseWatches(sessions...)
	})
}
