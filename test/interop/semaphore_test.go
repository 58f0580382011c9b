package interop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestThirdWhoWantsTwoOfThreePermitsStandsBehindTwoHalfServed shows what docs/interop.md says of Curator's
// InterProcessSemaphoreV2: acquire(2) takes one lease, leaves the line, and joins it again at its end for the other
// one. Of three permits, two such contenders have one each. A third one that wants two does not get them, nor do
// those behind it. It makes no difference whether the third is ours or Curator's. When it dies, the others continue,
// which shows that they waited for it.
//
// Promise: 5
func TestThirdWhoWantsTwoOfThreePermitsStandsBehindTwoHalfServed(t *testing.T) {
	t.Parallel()
	needJava(t)
	zoo := common.Get(t)
	for _, third := range []struct {
		kind  string
		taken int // the leases when all contenders are stuck
	}{
		{"ours semaphore-curator:2", 2}, // ours takes two at once or none
		// Curator's takes its one; the first then has a second one, which is one too many, and waits with it.
		{"java semaphore:2", 4},
	} {
		t.Run(third.kind, func(t *testing.T) {
			t.Parallel()
			p := pair{ours: "half-served", peer: third.kind, limit: 3}
			c, sess := p.prepare(t, zoo.Addr(0), "stall", workerSession)
			all := takeAll(t, c)
			two := &side{name: "two", kind: "java semaphore:2", contenders: 2}
			last := &side{name: "last", kind: third.kind, contenders: 1}
			two.start(t, c)
			// The first of the line has already created its lease, and waits until it counts.
			c.standing(t, sess, 2, 4, two)
			last.start(t, c)
			c.standing(t, sess, 3, 4, two, last)

			if err := all.UnlockWait(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.standing(t, sess, 3, third.taken, two, last)
			if seen := c.referee.score(); len(seen.entries) > 0 {
				t.Fatalf("got entries %v; if the contenders are no longer stuck, correct docs/interop.md", seen.entries)
			}

			last.kill()
			limit := time.After(patience)
			if !c.referee.await(func() bool {
				return c.referee.seen.entries[two.name] > 0 || two.ended()
			}, limit) || two.ended() {
				t.Fatalf("got no entry after the third had died: %v", two.failure())
			}
			c.referee.dismiss()
			if err := two.finish(limit); err != nil {
				t.Error(err)
			}
			if seen := c.referee.score(); len(seen.overlaps) > 0 {
				t.Error(seen.overlaps[0])
			}
		})
	}
}

// takeAll takes every permit.
func takeAll(t *testing.T, c contest) *lock.Hold {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: c.servers, Timeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, err := lock.NewSemaphore(client, c.path, lock.AgreedLimit(c.referee.limit), lock.SemaphoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := s.Acquire(t.Context(), c.referee.limit)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// standing waits until the semaphore's line and its leases have these lengths.
func (c contest) standing(t *testing.T, sess *zk.Session, waiting, leases int, sides ...*side) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		line, taken := childrenOf(t, sess, c.path+"/locks"), childrenOf(t, sess, c.path+"/leases")
		if len(line) == waiting && len(taken) == leases {
			return
		}
		for _, s := range sides {
			if s.ended() {
				t.Fatalf("%s ended too early: %v", s.name, s.failure())
			}
		}
		if time.Now().After(end) {
			t.Fatalf("got the line %v and the leases %v; want %d and %d; entries: %v", line, taken, waiting, leases,
				c.referee.score().entries)
		}
	}
}

// childrenOf lists a node's children, or none if the node does not exist.
func childrenOf(t *testing.T, sess *zk.Session, path string) []string {
	t.Helper()
	names, _, err := sess.Children(t.Context(), path)
	if err != nil && !errors.Is(err, zk.NoNode) {
		t.Fatal(err)
	}
	return names
}
