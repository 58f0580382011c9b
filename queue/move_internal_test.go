package queue

import (
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
)

// The leader's clock was ahead when a consumer said that it empties a bucket, and another server leads now.
func TestSignOfAMoverFromAClockThatWasAheadCountsForNothing(t *testing.T) {
	t.Parallel()
	withConsumer(t, func(t *testing.T, q *Queue, co *consumer) {
		c := q.layout.bucket(bucket{})
		node, err := co.sess.CreateNode(t.Context(), zk.Node{Path: c.Dir, Data: []byte("mover another")})
		if err != nil {
			t.Fatal(err)
		}
		wait := moverWait.Milliseconds()
		for behind, want := range map[int64]bool{
			0: true, wait - 1: true, wait: false, 100 * wait: false, -wait: false,
		} {
			q.clock.saw(node.Stat.Mtime - behind)
			m := &mover{co: co.claimant, f: co.fetcher}
			if taken, _, err := m.taken(t.Context(), c); err != nil || taken != want {
				t.Errorf("a mark from %d ms ahead: got %v, %v, want %v", behind, taken, err, want)
			}
		}
	})
}
