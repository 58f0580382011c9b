package cli

import (
	"errors"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ensemble"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
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

// An item is found whatever its state, and reading ends before it is too much.
func TestItemsAreListedAndFound(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		ctx, client := t.Context(), srv.Client(t, 20*time.Second)
		q, err := queue.New(client, "/mail", queue.Config{Prefetch: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close(ctx)
		const none = "00112233445566778899aabbccddeeff"
		ids := map[string]string{"dead": rejected(t, q, 1)[0]}
		headers := make(map[string]string)
		for i := range 2 * ensemble.MaxHeaders {
			headers[fmt.Sprintf("h%03d", i)] = "value"
		}
		for _, c := range []struct {
			state string
			m     queue.Message
		}{
			{"claimed", queue.Message{Body: make([]byte, 2*ensemble.MaxData), Headers: headers, Priority: -1}},
			{"ready", queue.Message{Group: "g"}},
			{"waiting", queue.Message{Group: "g"}},
			{"delayed", queue.Message{Delay: time.Hour}},
		} {
			if ids[c.state], err = q.Put(ctx, c.m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := q.Take(ctx); err != nil {
			t.Fatal(err)
		}
		for state, id := range ids {
			list, err := firstItems(ctx, client, "/mail", state, 9)
			if err != nil || len(list) != 1 || list[0].ID != id || list[0].State != state || list[0].Body != nil {
				t.Errorf("%s: got %+v, %v, want the item %s without its body", state, list, err, id)
			}
			if list, err := firstItems(ctx, client, "/mail", state, 0); err != nil || len(list) > 0 {
				t.Errorf("%s: got %+v, %v, want none", state, list, err)
			}
			for _, hint := range []string{state, "ready", "delayed", ""} {
				x, err := findItem(ctx, client, "/mail", hint, id, true)
				if err != nil || x.ID != id || x.State != state {
					t.Errorf("%s, looked for as %q: got %+v, %v", state, hint, x, err)
				}
				bare, err := findItem(ctx, client, "/mail", hint, id, false)
				if err != nil || bare.ID != id || bare.Body != nil || bare.Headers != nil {
					t.Errorf("%s: without data got %+v, %v", state, bare, err)
				}
				if state == "claimed" && (len(x.Body) != ensemble.MaxData || x.Bytes != 2*ensemble.MaxData ||
					len(x.Headers) != ensemble.MaxHeaders || x.Headed != len(headers) || x.Consumer == "") {
					t.Errorf("got %+v, want the first of its body and headers, and its consumer", x)
				}
			}
		}
		if _, err := findItem(ctx, client, "/mail", "dead", none, true); !errors.Is(err, ensemble.ErrNotFound) {
			t.Errorf("got %v, want that there is none", err)
		}
		if _, err := findItem(ctx, client, "/other", "", none, true); !errors.Is(err, queue.ErrNotQueue) {
			t.Errorf("got %v, want that there is no queue", err)
		}
		large := queue.Message{Body: make([]byte, 900<<10), Delay: time.Hour}
		for range listBytes/len(large.Body) + 1 {
			if _, err := q.Put(ctx, large); err != nil {
				t.Fatal(err)
			}
		}
		list, err := firstItems(ctx, client, "/mail", "delayed", 100)
		if !errors.Is(err, ensemble.ErrTooMany) || len(list) < 2 {
			t.Errorf("got %d, %v, want some, and that they are too large", len(list), err)
		}
		for _, read := range []func(client *zk.Client) error{
			func(client *zk.Client) error {
				_, err := findItem(ctx, client, "/mail", "", none, true)
				return err
			},
			func(client *zk.Client) error {
				_, err := firstItems(ctx, client, "/mail", "ready", 9)
				return err
			},
		} {
			slow := srv.Client(t, 40*time.Second)
			if _, err := slow.Session(ctx); err != nil {
				t.Fatal(err)
			}
			srv.Control(func(zktest.Request) zktest.Fault { return zktest.DelayReply(1500 * time.Millisecond) })
			if err := read(slow); !errors.Is(err, ensemble.ErrTooMany) {
				t.Errorf("got %v, want that it takes too long", err)
			}
			srv.Control(nil)
		}
		srv.Cut()
		defer srv.Heal()
		if _, err := findItem(ctx, client, "/mail", "", none, true); !errors.Is(err, zk.ErrNotConnected) {
			t.Errorf("got %v, want that no server answers", err)
		}
	})
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
