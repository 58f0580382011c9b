//go:build unix

package lin_test

// Members of groups, and items that they share.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// Bugs of members that the run must find.

// unawaited is that of a partitioner that takes an item without waiting for its turn.
var unawaited = bug{"member/partition_run.go", "err := own.Await(ctx)", "err := error(nil)"}

// forgotten is that of a member that leaves its node behind.
var forgotten = bug{"member/leave.go", "err := k.remove(sess)", "err := error(nil)"}

var brokenMembers = []plant{
	brokenMember("partitioner-out-of-turn", memberTrial{}, unawaited, "is not that of a mutex"),
	brokenMember("nodes-left-behind", memberTrial{names: []string{"group-0", "party-slow"}}, forgotten,
		"do not all see each other"),
}

func brokenMember(name string, trial memberTrial, b bug, want string) plant {
	return plant{name: name, trial: trial, bug: b, want: want, length: 5 * time.Second, patience: 20 * time.Second}
}

const memberJob = "members"

// The places of a memberTrial: partitioners and groups, named by their split or layout.
var (
	splits = map[string]member.Split{"even-0": member.Even, "kazoo-slow": member.SetPartitioner}
	groups = map[string]member.GroupLayout{
		"group-0": member.GroupMember, "party-slow": member.Party, "shallow-0": member.ShallowParty,
	}
)

// items are those of each partitioner: two for each client.
const items = 2 * clients

// memberTrial tries groups and partitioners: all if names is nil.
type memberTrial struct{ names []string }

func (t memberTrial) places() []string {
	if t.names != nil {
		return t.names
	}
	return []string{"even-0", "kazoo-slow", "group-0", "party-slow", "shallow-0"}
}

func (memberTrial) prepare(*epoch, *zk.Session) error { return nil }

func (t memberTrial) instruct(o *orders) { o.Job, o.Places = memberJob, t.places() }

// newJournal returns a journal of locks: each item is one, named after its place.
func (memberTrial) newJournal() journal { return &memberJournal{lockJournal: newLockJournal()} }

type memberJournal struct {
	*lockJournal
	alone []string // clients that did not see all others at the end
}

func (j *memberJournal) note(r report) {
	if r.Failed {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.alone = append(j.alone, r.Place)
		return
	}
	j.lockJournal.note(r)
}

// busy returns the client that was last known to have an item of a place.
func (j *memberJournal) busy(place string) (number int, session int64, known bool) {
	j.mu.Lock()
	names := make([]string, 0, len(j.places))
	for name := range j.places {
		if strings.HasPrefix(name, place+"/") {
			names = append(names, name)
		}
	}
	j.mu.Unlock()
	for _, name := range names {
		if number, session, known = j.lockJournal.busy(name); known {
			return number, session, true
		}
	}
	return 0, 0, false
}

func (j *memberJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	holds := map[string]int{}
	for name, page := range j.places {
		place, _, _ := strings.Cut(name, "/")
		holds[place] += len(page.holds)
	}
	return fmt.Sprintf("items were owned: %v", holds)
}

func (j *memberJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var verdicts []error
	if n := len(j.alone); n > 0 {
		err := fmt.Errorf("the members do not all see each other, %d times, first in %s", n, j.alone[0])
		verdicts = append(verdicts, err)
	}
	for name, page := range j.places {
		var holds []lincheck.Hold
		for _, h := range page.holds {
			holds = append(holds, h)
		}
		kept := filepath.Join(dir, name)
		if err := errors.Join(lincheck.CheckMutex(holds, kept), lincheck.CheckTokens(holds)); err != nil {
			verdicts = append(verdicts, fmt.Errorf("%s: %w", name, err))
			keepHistory(kept, holds)
		}
	}
	return errors.Join(verdicts...)
}

// settle waits until no member has left anything behind. A creation that was on its way may still make a node, which
// its client removes.
func (memberTrial) settle(e *epoch, _ *zk.Session) error { return e.noOrphans(e.root) }

// memberUser is a client that joins groups and shares items.
type memberUser struct {
	*worker
	client *zk.Client
	number int

	mu    sync.Mutex       // guards ended
	ended map[string]int64 // when this client last had an item
}

// useMembers starts the goroutines of a client: one for each place.
func useMembers(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	u := &memberUser{worker: w, client: client, number: w.First + i*goroutinesPerClient, ended: map[string]int64{}}
	for n, place := range w.Places {
		rnd := rand.New(rand.NewPCG(w.Seed, uint64(u.number*100+n)))
		wg.Go(func() {
			if _, ok := splits[place]; ok {
				u.share(ctx, place, rnd, quiet(i))
			} else {
				u.meet(ctx, place, rnd, quiet(i))
			}
		})
	}
	return nil
}

// stays returns how long a member is to stay: a quiet one until ctx ends.
func stays(ctx context.Context, rnd *rand.Rand, quiet bool) (context.Context, context.CancelFunc) {
	if quiet {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, upTo(rnd, 2*timeout))
}

// share shares items, comes and goes. After the faults it gets an item once more.
func (u *memberUser) share(ctx context.Context, place string, rnd *rand.Rand, quiet bool) {
	for ctx.Err() == nil {
		one, cancel := stays(ctx, rnd, quiet)
		u.own(one, place, func() {})
		cancel()
		pause(ctx, upTo(rnd, 200*time.Millisecond))
	}
	last, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	u.own(last, place, cancel)
}

// own owns the items that are this client's until ctx ends. It calls got for each.
func (u *memberUser) own(ctx context.Context, place string, got func()) {
	names := make([]string, items)
	for i := range names {
		names[i] = fmt.Sprint("item", i)
	}
	p, err := member.NewPartitioner(u.client, u.Root+"/"+place, fmt.Sprint("m", u.number), names,
		member.PartitionerConfig{Split: splits[place], Settle: 50 * time.Millisecond})
	if err != nil {
		u.abort(place, err)
	}
	began := clock()
	if err := p.Run(ctx, func(ctx context.Context, s *member.Share) error {
		u.hold(ctx, place, s, began)
		got()
		return nil
	}); ctx.Err() == nil {
		u.abort(place, err)
	}
}

func (u *memberUser) abort(place string, err error) {
	fmt.Fprintf(os.Stderr, "worker: %s: %v\n", place, err)
	os.Exit(1)
}

// hold reports that this client owns an item, until it does not any more, but for no longer than some time.
func (u *memberUser) hold(ctx context.Context, place string, s *member.Share, began int64) {
	name := place + "/" + s.Item()
	got := clock()
	if ctx.Err() != nil {
		return // it ended before it was seen
	}
	u.mu.Lock()
	asked := max(began, u.ended[name])
	u.mu.Unlock()
	h := lincheck.Hold{
		Client: u.number, Node: s.Path(), Session: s.Session().ID(), Token: int64(s.Token()),
		Asked: asked, Got: got, Alive: got,
	}
	tell := func() { u.report(report{Place: name, Hold: &h}) }
	tell()
	stay(ctx, got, 2*timeout, &h.Alive, tell)
	h.Ended = clock()
	tell()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended[name] = clock()
}

// finalName begins the ids of those who join after the faults.
const finalName = "final"

// meet joins a group and leaves it. After the faults all clients join once more and must see each other once, each.
func (u *memberUser) meet(ctx context.Context, place string, rnd *rand.Rand, quiet bool) {
	g, err := member.NewGroup(u.client, u.Root+"/"+place, member.GroupConfig{Layout: groups[place]})
	if err != nil {
		u.abort(place, err)
	}
	for n := 0; ctx.Err() == nil; n++ {
		one, cancel := stays(ctx, rnd, quiet)
		if m, err := g.Join(one, fmt.Sprintf("m%d-%d", u.number, n%3), nil); err == nil {
			<-one.Done()
			m.Leave()
		}
		cancel()
		pause(ctx, upTo(rnd, 100*time.Millisecond))
	}
	ctx = context.WithoutCancel(ctx)
	m, err := g.Join(ctx, fmt.Sprint(finalName, u.number), nil)
	if err != nil {
		u.abort(place, err)
	}
	u.seeAll(ctx, place, g)
	// Those who have not seen all do not leave, so whoever looks for the others finds them there.
	u.gather(ctx, place)
	if err := m.LeaveWait(ctx); err != nil {
		u.abort(place, err)
	}
}

// seeAll returns when the group has every client's last member once, and nobody else.
func (u *memberUser) seeAll(ctx context.Context, place string, g *member.Group) {
	ctx, cancel := context.WithTimeout(ctx, u.Patience)
	defer cancel()
	var ids []string
	for all, err := range g.Watch(ctx) {
		if err != nil {
			break
		}
		ids = ids[:0]
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		slices.Sort(ids)
		different := len(slices.Compact(slices.Clone(ids)))
		if len(ids) == clients && different == clients && strings.HasPrefix(ids[0], finalName) {
			return
		}
	}
	u.report(report{Place: fmt.Sprintf("%s at %d: %v", place, u.number, ids), Failed: true})
}

// gather returns when all clients have come here.
func (u *memberUser) gather(ctx context.Context, place string) {
	dir := u.Root + "/" + place + "-seen"
	for _, path := range []string{dir, fmt.Sprintf("%s/%d", dir, u.number)} {
		for {
			_, err := u.client.Create(ctx, path, nil, zk.Persistent)
			if err == nil || errors.Is(err, zk.NodeExists) {
				break
			}
			pause(ctx, 10*time.Millisecond)
		}
	}
	for {
		names, _, err := u.client.Children(ctx, dir)
		if err == nil && len(names) == clients {
			return
		}
		pause(ctx, 20*time.Millisecond)
	}
}
