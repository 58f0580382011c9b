package cli

import (
	"path"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The column of top has eight letters.
func TestLatencyIsShort(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"0/0.5142/7": "0.51 ms", "1/99.0/99": "99.00 ms", "0/101.6666/300": "102 ms", "9/12345.6/99999": "12346 ms",
		"unknown": "unknown",
	} {
		if got := serverOf(map[string]string{"Latency min/avg/max": said}).Latency; got != want || len(got) > 8 {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
}

// Dead letters are listed once for all batches, and once more for each when it is moved.
func TestDeadLettersAreListedOnceForAllBatches(t *testing.T) {
	t.Parallel()
	const letters, most = 3*letterBatch + 50, 2*letterBatch + 20
	for name, remove := range map[string]bool{"put back": false, "removed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				ctx, client := t.Context(), srv.Client(t, 20*time.Second)
				q, err := queue.New(client, "/mail", queue.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer q.Close(ctx)
				ids := rejected(t, q, letters)
				var mu sync.Mutex
				lists := 0
				srv.Control(func(r zktest.Request) zktest.Fault {
					mu.Lock()
					defer mu.Unlock()
					if r.Op == zktest.OpGetChildren && path.Base(r.Path) == "dead" {
						lists++
					}
					return zktest.Pass
				})
				moved := 0
				err = moveLetters(ctx, client, "/mail", remove, most, func(n int) { moved += n })
				if err != nil || moved != most {
					t.Errorf("got %d, %v, want %d", moved, err, most)
				}
				if want := 1 + 3*2; lists > want { // the second of each batch looks for segments that are empty
					t.Errorf("got %d lists, want at most %d", lists, want)
				}
				for letter, err := range q.DeadLetters(ctx) {
					if err != nil || letter.ID != ids[most] {
						t.Errorf("the first that is left is %s, %v, want %s", letter.ID, err, ids[most])
					}
					break
				}
			})
		})
	}
}

// rejected puts items and makes dead letters of them. It returns their ids in the order in which they died.
func rejected(t *testing.T, q *queue.Queue, n int) (ids []string) {
	t.Helper()
	for range n {
		if _, err := q.Put(t.Context(), queue.Message{}); err != nil {
			t.Fatal(err)
		}
		item, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := item.Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, item.ID())
	}
	return ids
}
