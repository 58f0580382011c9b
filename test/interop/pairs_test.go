package interop_test

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// patience bounds a contest that does not end by itself.
const patience = 6 * time.Minute

// TestPairsExcludeEachOther lets each of our recipes contend with each of a peer's, in processes that are killed
// while they are inside and then restarted. A referee checks who is inside. TURNSTILE_HANDOVERS is how often each pair
// passes the lock to the other side; then both sides are killed. By default they do so a few times, and one of two
// pairs loses our side, the other one theirs.
//
// Promise: 1, 5
func TestPairsExcludeEachOther(t *testing.T) {
	t.Parallel()
	goal, victims := 20, 1
	if text := os.Getenv("TURNSTILE_HANDOVERS"); text != "" {
		var err error
		if goal, err = strconv.Atoi(text); err != nil {
			t.Fatalf("TURNSTILE_HANDOVERS: %v", err)
		}
		victims = 2
	}
	eachPair(t, pair.exclusive, func(t *testing.T, p pair, zoo *peer.Cluster) {
		t.Helper()
		p.contest(t, zoo.Addr(0), goal, victims)
	})
}

// TestPairsThatAreSaidNotToExcludeEachOtherDoNot keeps one side inside until the other one has also entered or, if
// the table says that it does not, waits for the first. If a later version of a peer behaves differently, this test
// finds out.
func TestPairsThatAreSaidNotToExcludeEachOtherDoNot(t *testing.T) {
	t.Parallel()
	eachPair(t, func(p pair) bool { return !p.exclusive() }, func(t *testing.T, p pair, zoo *peer.Cluster) {
		t.Helper()
		for _, second := range []string{oursSide, peerSide} {
			if slices.Contains(p.intrude, second) {
				p.intrusion(t, zoo, second)
			} else {
				p.queueing(t, zoo, second)
			}
		}
	})
}

// eachPair runs f for every selected pair on an Apache ZooKeeper, a few at a time: they mostly wait for sessions to
// expire.
func eachPair(t *testing.T, wanted func(pair) bool, f func(t *testing.T, p pair, zoo *peer.Cluster)) {
	t.Helper()
	needJava(t)
	peer.Need(t, python, kazooDir)
	zoo := common.Get(t)
	const together = 8
	var wg sync.WaitGroup
	slots := make(chan struct{}, together)
	for _, p := range pairs() {
		if !wanted(p) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(p.name(), func(t *testing.T) { f(t, p, zoo) })
		})
	}
	wg.Wait()
}

// contest lets the pair contend until the lock has changed sides often enough. Meanwhile it kills one side or both,
// while they are inside.
func (p pair) contest(t *testing.T, servers string, goal, victims int) {
	t.Helper()
	c, sess := p.prepare(t, servers, "contest", workerSession)
	r, limit, began := c.referee, time.After(patience), time.Now()
	sides := []*side{p.ourSide(), p.peerSide()}
	for _, s := range sides {
		s.start(t, c)
	}
	reached := func(n int) {
		t.Helper()
		inTime := r.await(func() bool {
			return r.seen.handovers >= n || len(r.seen.overlaps) > 0 || slices.ContainsFunc(sides, (*side).ended)
		}, limit)
		for _, s := range sides {
			if s.ended() {
				t.Fatalf("%s ended too early: %v", s.name, s.failure())
			}
		}
		switch seen := r.score(); {
		case len(seen.overlaps) > 0:
			t.Fatalf("after %d hand-overs: %s", seen.handovers, seen.overlaps[0])
		case !inTime:
			t.Fatalf("got %d of %d hand-overs in time; entries: %v", seen.handovers, n, seen.entries)
		}
	}
	if slices.IndexFunc(pairs(), func(q pair) bool { return q.name() == p.name() })%2 == 1 {
		slices.Reverse(sides)
	}
	for i, victim := range sides[:victims] {
		reached((i + 1) * goal / (victims + 1))
		r.hold(victim.name)
		if !r.await(func() bool { return r.withinLocked(victim.name) }, limit) {
			t.Fatalf("%s does not enter", victim.name)
		}
		victim.kill()
		r.release(victim.name)
		victim.start(t, c)
	}
	reached(goal)
	r.dismiss()
	for _, s := range sides {
		if err := s.finish(limit); err != nil {
			t.Error(err)
		}
	}
	seen := r.score()
	if len(seen.overlaps) > 0 {
		t.Errorf("at the end: %s", seen.overlaps[0])
	}
	t.Logf("%d hand-overs in %v; entries: %v", seen.handovers, time.Since(began).Round(time.Millisecond), seen.entries)
	for expired := false; ; { // others, such as readers, may not have waited for the session of one that was killed
		left := contendersAt(t, sess, c.path)
		left = append(left, contendersAt(t, sess, c.path+"-__lock__")...) // where kazoo's semaphore waits
		if len(left) == 0 {
			break
		}
		if expired {
			t.Errorf("got nodes %v at the end, want none", left)
			break
		}
		select {
		case <-limit:
			expired = true
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// contendersAt lists the nodes of contenders below a path: its children, or those of a semaphore's directories.
func contendersAt(t *testing.T, sess *zk.Session, path string) []string {
	t.Helper()
	children, _, err := sess.Children(t.Context(), path)
	if err != nil && !errors.Is(err, zk.NoNode) { // ZooKeeper may delete an empty container
		t.Fatal(err)
	}
	var all []string
	for _, name := range children {
		switch name {
		case "__keep__": // with it a stored limit stays
		case "locks", "leases":
			all = append(all, contendersAt(t, sess, path+"/"+name)...)
		default:
			all = append(all, path+"/"+name)
		}
	}
	return all
}

// intrusion keeps one side inside until the intruder has also entered.
func (p pair) intrusion(t *testing.T, zoo *peer.Cluster, intruder string) {
	t.Helper()
	c, _ := p.prepare(t, zoo.Addr(0), "intrusion-of-"+intruder, patientSession)
	first, second := p.couple(t, c, intruder)
	entered := func() bool { return c.referee.withinLocked(second.name) || second.ended() }
	if !c.referee.await(entered, time.After(patience)) {
		t.Fatalf("%s does not enter while %s is inside; if it waits, correct the table", second.name, first.name)
	}
	if second.ended() {
		t.Fatal(second.failure())
	}
	if seen := c.referee.score(); len(seen.overlaps) == 0 {
		t.Errorf("%s entered while %s was inside, and the referee did not notice", second.name, first.name)
	}
}

// queueing keeps one side inside until the other one watches its node, and then lets both go.
func (p pair) queueing(t *testing.T, zoo *peer.Cluster, waiter string) {
	t.Helper()
	c, sess := p.prepare(t, zoo.Addr(0), "patience-of-"+waiter, patientSession)
	first, second := p.couple(t, c, waiter)
	for end := time.Now().Add(patience); !watched(t, zoo, sess, c.path); {
		if second.ended() {
			t.Fatal(second.failure())
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not wait for %s; if it enters, correct the table", second.name, first.name)
		}
		time.Sleep(20 * time.Millisecond) // no event tells of another session's watch
	}
	c.referee.dismiss()
	c.referee.release(first.name)
	c.referee.release(second.name)
	entered := func() bool { return c.referee.seen.entries[second.name] > 0 || second.ended() }
	c.referee.await(entered, time.After(patience))
	if seen := c.referee.score(); len(seen.overlaps) > 0 || seen.entries[second.name] == 0 {
		t.Errorf("%s did not enter after %s: %+v", second.name, first.name, seen)
	}
}

// couple lets one contender enter and stay inside, and then starts the named side's.
func (p pair) couple(t *testing.T, c contest, late string) (first, second *side) {
	t.Helper()
	first, second = p.ourSide(), p.peerSide()
	if late == first.name {
		first, second = second, first
	}
	first.contenders, second.contenders = 1, 1
	first.write, second.write = true, true
	c.referee.hold(first.name)
	c.referee.hold(second.name)
	first.start(t, c)
	if !c.referee.await(func() bool {
		return c.referee.withinLocked(first.name) || first.ended()
	}, time.After(patience)) || first.ended() {
		t.Fatalf("%s does not enter: %v", first.name, first.failure())
	}
	second.start(t, c)
	return first, second
}

// watched reports whether a session watches another session's node below path.
func watched(t *testing.T, zoo *peer.Cluster, sess *zk.Session, path string) bool {
	t.Helper()
	children, _, err := sess.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	watches, err := zoo.Word(0, "wchp") // each path on a line, and below it the sessions that watch it
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range children {
		_, stat, err := sess.Get(t.Context(), path+"/"+name)
		if err != nil {
			continue // deleted meanwhile
		}
		_, watchers, _ := strings.Cut(watches, path+"/"+name+"\n")
		for line := range strings.Lines(watchers) {
			id, indented := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t0x")
			if !indented {
				break
			}
			if id != strconv.FormatInt(stat.EphemeralOwner, 16) {
				return true
			}
		}
	}
	return false
}

// prepare creates the path of the pair, because some peers do not, and returns a session to inspect it. The data are
// empty and not null, on which kazoo's Semaphore fails: it may look before ours has stored the limit.
func (p pair) prepare(t *testing.T, servers, purpose string, session int) (contest, *zk.Session) {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := "/" + strings.ReplaceAll(p.name(), "/", "-") + "-" + purpose
	if _, err := sess.Create(t.Context(), path, []byte{}, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	return contest{servers: servers, path: path, session: session, referee: newReferee(t, max(1, p.limit))}, sess
}

func (p pair) ourSide() *side  { return &side{name: oursSide, kind: "ours " + p.ours, contenders: 2} }
func (p pair) peerSide() *side { return &side{name: peerSide, kind: p.peer, contenders: 2} }
