package interop_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// A pair is one of our recipes and one of a peer's on the same path, and whether they exclude each other there.
type pair struct {
	ours  string // "mutex"
	peer  string // language and what of it: "java mutex"
	limit int    // how many permits there are; 0 for locks

	// Why they do not exclude each other, empty if they do; and whose fault it is: who walks in on whom.
	why                     string
	peerWalksIn, oursWalkIn bool
}

// pairs is the table of docs/interop.md.
var pairs = []pair{
	{ours: "mutex", peer: "java mutex"},
	{ours: "mutex", peer: "java selector"},
	{ours: "mutex", peer: "java writelock"},
	{ours: "mutex", peer: "gozk lock"},
	{ours: "mutex", peer: "kazoo lock"},
	{ours: "mutex", peer: "kazoo lock+pattern"},
	{ours: "mutex", peer: "kazoo lock-as-mutex"},
	{ours: "mutex", peer: "kazoo election"},
}

// handovers is how often each pair that excludes each other passes the lock on, from one process to another.
func handovers(t *testing.T) int {
	t.Helper()
	text := os.Getenv("INTEROP_HANDOVERS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("INTEROP_HANDOVERS: %v", err)
	}
	return n
}

// TestPairsExcludeEachOther lets each of our recipes contend with each peer's, in processes that are killed in the middle of it and
// started again, and has a referee count who is inside.
func TestPairsExcludeEachOther(t *testing.T) {
	t.Parallel()
	needPeers(t)
	if testing.Short() {
		t.Skip("many processes for a minute: not in short mode")
	}
	zoo := peer.ZooKeeper(t, peer.Options{Properties: map[string]string{"zookeeper.forceSync": "no"}, Heap: "256m"})
	goal := handovers(t)
	eachPair(t, func(t *testing.T, p pair) {
		t.Helper()
		if p.why == "" {
			p.contest(t, zoo.Addr(0), goal)
		}
	})
}

// eachPair runs f for every pair, a few at a time: they wait for sessions to time out more than they compute.
func eachPair(t *testing.T, f func(*testing.T, pair)) {
	t.Helper()
	const together = 6
	var wg sync.WaitGroup
	slots := make(chan struct{}, together)
	for _, p := range pairs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(p.name(), func(t *testing.T) { f(t, p) })
		})
	}
	wg.Wait()
}

func (p pair) name() string { return strings.ReplaceAll(p.ours+"/"+p.peer, " ", "_") }

// contest lets the pair contend until the lock has changed sides often enough. Meanwhile each side is killed, while it is inside.
func (p pair) contest(t *testing.T, servers string, goal int) {
	t.Helper()
	const contenders = 3
	c := contest{servers: servers, path: "/" + strings.ReplaceAll(p.name(), "/", "-"), referee: newReferee(t, max(1, p.limit))}
	sess := prepare(t, c)
	r := c.referee
	sides := []*side{{name: "ours", kind: "ours " + p.ours}, {name: "theirs", kind: p.peer}}
	for _, s := range sides {
		s.start(t, c, contenders)
		defer func() { s.kill() }()
	}
	limit, began := time.After(2*time.Minute), time.Now()
	reached := func(n int) {
		t.Helper()
		stopped := func() bool { return len(r.overlaps) > 0 || slices.ContainsFunc(sides, (*side).ended) }
		inTime := r.await(func() bool { return r.handovers >= n || stopped() }, limit)
		for _, s := range sides {
			if s.ended() {
				t.Fatalf("%s ended too early: %v", s.name, s.failure())
			}
		}
		score := r.score()
		switch {
		case len(score.overlaps) > 0:
			t.Fatalf("after %d hand-overs: %s", score.handovers, score.overlaps[0])
		case !inTime:
			t.Fatalf("%d of %d hand-overs in time; entries: %v", score.handovers, n, score.entries)
		}
	}
	for i, victim := range sides {
		reached((i + 1) * goal / 3)
		r.hold(victim.name)
		if !r.await(func() bool { return r.within(victim.name) }, limit) {
			t.Fatalf("%s does not come in", victim.name)
		}
		victim.kill()
		r.release(victim.name)
		victim.start(t, c, contenders)
	}
	reached(goal)
	r.dismiss()
	for _, s := range sides {
		if err := s.finish(limit); err != nil {
			t.Error(err)
		}
	}
	score := r.score()
	if len(score.overlaps) > 0 {
		t.Errorf("at the end: %s", score.overlaps[0])
	}
	t.Logf("%d hand-overs in %v; entries: %v", score.handovers, time.Since(began).Round(time.Millisecond), score.entries)
	left, _, err := sess.Children(t.Context(), c.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// prepare makes the path, because some peers do not, and returns a session to look at it with.
func prepare(t *testing.T, c contest) *zk.Session {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: c.servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sess.Create(t.Context(), c.path, nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	return sess
}
