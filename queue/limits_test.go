package queue_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestItemThatIsTooLargeIsRefusedWithTheLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		before := w.Traffic().Requests[zktest.OpMulti]
		_, err := q.Put(t.Context(), queue.Message{Body: make([]byte, 1<<20)})
		if !errors.Is(err, queue.ErrTooLarge) || !strings.Contains(err.Error(), "limit is 10") {
			t.Errorf("got %v, want ErrTooLarge with the limit", err)
		}
		_, err = q.PutBatch(t.Context(), []queue.Message{{Body: []byte("a")}, {Body: make([]byte, 1<<20)}})
		large, ok := errors.AsType[*queue.TooLargeError](err)
		if !errors.Is(err, queue.ErrTooLarge) || !ok || large.Message != 1 || large.Size <= large.Limit {
			t.Errorf("got %v, want ErrTooLarge for the second message", err)
		}
		if n := w.Traffic().Requests[zktest.OpMulti] - before; n != 0 {
			t.Errorf("%d transactions were sent", n)
		}
	})
}

// No request and no reply of a queue with small and large items, in every state, exceeds a packet.
//
// Promise: 7
func TestLargeItemsGoThroughEveryState(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxAttempts: 2, Backoff: queue.Backoff{First: time.Second, Max: time.Second}})
		large := bytes.Repeat([]byte{'x'}, 1_030_000)
		var list []queue.Message
		for i := range soak.Pick(4, 12) {
			list = append(list, queue.Message{Body: large})
			if i%3 == 0 {
				list = append(list, queue.Message{Body: []byte("small")})
				list = append(list, queue.Message{Body: large, Delay: 2 * time.Minute})
			}
		}
		ids, err := q.PutBatch(t.Context(), list)
		if err != nil || len(ids) != len(list) {
			t.Fatal(len(ids), err)
		}
		for range 2 * len(list) {
			item := take(t, q)
			if n := len(item.Body()); n != len(large) && n != len("small") {
				t.Fatalf("got a body of %d bytes", n)
			}
			if err := item.Fail(t.Context(), errors.New(strings.Repeat("no", 10_000))); err != nil {
				t.Fatal(err)
			}
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Dead: len(list)})
		if n, err := q.Requeue(t.Context()); n != len(list) || err != nil {
			t.Fatal(n, err)
		}
		for range list {
			done(t, take(t, q))
		}
		wantLen(t, q, queue.Counts{})
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func TestServerThatTakesSmallerPacketsIsNotAskedForEver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		large := queue.Message{Body: make([]byte, 500_000)}
		if _, err := q.Put(t.Context(), large); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("put: got %v, want ErrTooLarge", err)
		}
		put(t, q, "small", queue.Message{})
		item := take(t, q)
		if err := item.Done(t.Context(), zk.CreateOp("/large", make([]byte, 500_000), zk.Persistent)); err == nil {
			t.Error("done with more than the server takes")
		}
		done(t, item)
	}, zktest.With(func(c *server.Config) { c.MaxFrame = 200_000 }))
}

// Promise: 7
func TestLetterThatServersTakeNoMoreIsNotRequeuedForEver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, strings.Repeat("x", 100_000), queue.Message{})
		kill(t, q, 1)
		tries := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpMulti && slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
				return p.Op == zktest.OpDelete && strings.HasPrefix(p.Path, root+"/dead/")
			}) {
				if tries++; tries <= 20 {
					return zktest.CutBefore
				}
			}
			return zktest.Pass
		})
		if n, err := q.Requeue(t.Context()); n != 0 || !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("got %d, %v, want ErrTooLarge", n, err)
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

func TestFullQueueRefusesOrWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{MaxItems: 3})
		putAll(t, q, 0, 3)
		_, err := q.Put(t.Context(), queue.Message{Body: []byte("3")})
		full, ok := errors.AsType[*queue.FullError](err)
		if !errors.Is(err, queue.ErrFull) || !ok || full.Items != 3 || full.MaxItems != 3 {
			t.Fatalf("got %v, want ErrFull", err)
		}
		patient := w.queue(queue.Config{MaxItems: 3, WaitWhenFull: true})
		result := make(chan error)
		go func() {
			_, err := patient.Put(t.Context(), queue.Message{Body: []byte("3")})
			result <- err
		}()
		pass(time.Minute)
		select {
		case err := <-result:
			t.Fatalf("put into a full queue: %v", err)
		default:
		}
		for i := range 4 {
			item := take(t, q)
			wantBody(t, item, strconv.Itoa(i))
			done(t, item)
			if i == 0 {
				if err := <-result; err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestBadArgumentsAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 10*time.Second)
		for _, path := range []string{"", "/", "/zookeeper", "mail", "/mail/"} {
			if _, err := queue.New(client, path, queue.Config{}); err == nil {
				t.Errorf("a queue at %q", path)
			}
		}
		for _, cfg := range []queue.Config{
			{MaxItems: -1},
			{WaitWhenFull: true},
			{MaxPacket: 100},
			{Linger: -1},
			{KeepKeys: -1},
			{Prefetch: 1001},
			{Backoff: queue.Backoff{First: time.Minute, Max: time.Second}},
			{Backoff: queue.Backoff{Max: tenYears + 1}},
			{Backoff: queue.Backoff{First: tenYears + 1}},
		} {
			if _, err := queue.New(client, root, cfg); err == nil {
				t.Errorf("a queue with %+v", cfg)
			}
		}
		if _, err := queue.New(nil, root, queue.Config{}); err == nil {
			t.Error("a queue without a client")
		}
		q := w.queue(queue.Config{})
		for _, o := range []queue.Message{
			{Priority: 101},
			{Priority: -101},
			{Delay: -1},
			{Delay: 100 * 365 * 24 * time.Hour},
			{Group: strings.Repeat("g", 256)},
			{Group: "a\x00b"}, // no program takes that as a variable
		} {
			if _, err := q.Put(t.Context(), o); !errors.Is(err, zk.BadArguments) {
				t.Errorf("put with %+v: got %v, want BadArguments", o, err)
			}
		}
		if err := q.Consume(t.Context(), 0, nil); err == nil {
			t.Error("consumed with no worker")
		}
		if _, err := q.TakeBatch(t.Context(), 0); err == nil {
			t.Error("took a batch of none")
		}
	})
}

func TestForeignNodeIsNotAQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 10*time.Second)
		for _, n := range []struct{ path, data string }{{"/queues", ""}, {root, "10.0.0.1"}} {
			if _, err := sess.Create(t.Context(), n.path, []byte(n.data), zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		q := w.queue(queue.Config{})
		if _, err := q.Put(t.Context(), queue.Message{}); !errors.Is(err, queue.ErrNotQueue) {
			t.Errorf("put: got %v, want ErrNotQueue", err)
		}
		if _, err := q.TryTake(t.Context()); !errors.Is(err, queue.ErrNotQueue) {
			t.Errorf("take: got %v, want ErrNotQueue", err)
		}
		w.NoNodes(t, root)
	})
}

func TestEmptyNodeBecomesAQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 10*time.Second)
		for _, p := range []string{"/queues", root} {
			if _, err := sess.Create(t.Context(), p, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		wantBody(t, take(t, q), "a")
	})
}

func TestForeignChildrenAreLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 2)
		sess := w.Session(t, 10*time.Second)
		foreign := []string{
			"/ready/x", "/ready/p1000/x", "/ready/p1000/s0000000001/x",
			"/claims/x", "/claims/p1000.s0000000001.0000000000.free.1",
			"/consumers/x", "/delayed/x", "/dead/x", "/waiters/x", "/keys/x", "/receipts/x",
		}
		for _, p := range foreign {
			if _, err := sess.Create(t.Context(), root+p, []byte("foreign"), zk.Persistent); err != nil {
				t.Fatal(p, err)
			}
		}
		putAll(t, q, 2, 4)
		wantLen(t, q, queue.Counts{Ready: 5}) // the child of the segment counts: only names tell it from an item
		doneInOrder(t, q, 0, 4)
		wantEmpty(t, q)
		if _, err := q.Peek(t.Context()); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("got %v, want ErrEmpty", err)
		}
		for _, p := range foreign {
			if _, ok, err := sess.Exists(t.Context(), root+p); !ok || err != nil {
				t.Errorf("%s: %v, %v", p, ok, err)
			}
		}
	})
}

// Another program's claim neither fills the memory nor gives one item to two consumers.
//
// Promise: 7
func TestClaimWithAbsurdNumbersDoesNoHarm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data string
		want int // deliveries
	}{
		"last":   {`{"first":9223372036854775800,"last":9223372036854775807,"handed":-1}`, 0},
		"many":   {`{"first":0,"last":1000000,"handed":-1}`, 0},
		"tries":  {`{"first":0,"last":0,"handed":0,"tries":9223372036854775807}`, 0},
		"handed": {`{"first":0,"last":0,"handed":9223372036854775807}`, 1},
		"class":  {`{"first":0,"last":1,"handed":-1,"class":"` + strings.Repeat("x", 1_000_000) + `"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, other := w.queue(queue.Config{Prefetch: -1}), w.queue(queue.Config{Prefetch: -1})
				putAll(t, q, 0, 1)
				sess := w.Session(t, time.Minute)
				if _, err := sess.Set(t.Context(), line0, []byte("1 1"), -1); err != nil { // as if it was claimed
					t.Fatal(err)
				}
				free := root + "/free/p1000.s0000000001.0000000000.free.1"
				if _, err := sess.Create(t.Context(), free, []byte(c.data), zk.Persistent); err != nil {
					t.Fatal(err)
				}
				bounded(t, w, 1000)
				got := 0
				for _, q := range []*queue.Queue{q, other} {
					item, err := q.TryTake(t.Context())
					if err != nil && !errors.Is(err, queue.ErrEmpty) {
						t.Fatal(err)
					}
					if err == nil {
						got++
						if item.Attempt() < 1 {
							t.Errorf("got attempt %d", item.Attempt())
						}
					}
				}
				if got != c.want {
					t.Errorf("the item was delivered %d times, want %d", got, c.want)
				}
			})
		})
	}
}

func TestForeignNodesAmongDelayedItemsAreInNobodysWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{Delay: time.Second})
		sess := w.Session(t, 10*time.Second)
		names := w.children(root + "/delayed")
		if len(names) != 1 {
			t.Fatal(names)
		}
		bucket := root + "/delayed/" + names[0]
		segment := bucket + "/" + w.children(bucket)[0]
		for _, path := range []string{bucket + "/x", segment + "/x", segment + "/0000000777"} {
			if _, err := sess.Create(t.Context(), path, []byte("foreign"), zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		item := take(t, q)
		wantBody(t, item, "a")
		done(t, item)
		pass(time.Minute)
		before := w.Traffic().Replies
		wantEmpty(t, q)
		if n := w.Traffic().Replies - before; n > 20 {
			t.Errorf("%d replies to find nothing", n)
		}
		put(t, q, "b", queue.Message{Delay: 2 * time.Second})
		wantBody(t, take(t, q), "b")
	})
}

// Promise: 7
func TestWhatIsNoItemGoesToTheDeadLetters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		putAll(t, q, 0, 1)
		sess := w.Session(t, 10*time.Second)
		segment := root + "/ready/p1000/s0000000001/"
		if _, err := sess.Create(t.Context(), segment, []byte("junk"), zk.PersistentSequential); err != nil {
			t.Fatal(err)
		}
		putAll(t, q, 1, 2)
		doneInOrder(t, q, 0, 2)
		for letter, err := range q.DeadLetters(t.Context()) {
			if err != nil || string(letter.Body) != "junk" || letter.Reason == "" {
				t.Errorf("got %+v, %v", letter, err)
			}
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}

// Promise: 7
func TestWhatIsNoItemAmongDelayedOnesGoesToTheDeadLetters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var died []string
		hooks := queue.Hooks{Dead: func(_ context.Context, id, _ string) { died = append(died, id) }}
		q := w.queue(queue.Config{Hooks: hooks})
		put(t, q, "a", queue.Message{Delay: time.Second})
		put(t, q, "b", queue.Message{Delay: 30 * time.Minute}) // a bucket that is emptied into others
		for _, name := range w.children(root + "/delayed") {
			bucket := root + "/delayed/" + name
			segment := bucket + "/" + w.children(bucket)[0] + "/"
			_, err := w.Session(t, time.Minute).Create(t.Context(), segment, []byte("junk"), zk.PersistentSequential)
			if err != nil {
				t.Fatal(err)
			}
		}
		wantLen(t, q, queue.Counts{Delayed: 4})
		for _, body := range []string{"a", "b"} {
			item := take(t, q)
			wantBody(t, item, body)
			done(t, item)
		}
		wantEmpty(t, q)
		wantLen(t, q, queue.Counts{Dead: 2})
		w.NoNodes(t, root+"/delayed")
		for letter, err := range q.DeadLetters(t.Context()) {
			if err != nil || string(letter.Body) != "junk" || letter.Reason == "" || !slices.Contains(died, letter.ID) {
				t.Errorf("got %+v, %v, after %v", letter, err, died)
			}
		}
	})
}

// A node that is no item, and so large that no transaction could hold it beside anything else, stays where it is.
func TestForeignNodeThatIsTooLargeToBeMovedIsInNobodysWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, consumer := w.queue(queue.Config{}), w.queue(queue.Config{})
		sess := w.Session(t, time.Minute)
		put(t, producer, "a", queue.Message{})
		segment, large := root+"/ready/p1000/s0000000001/", bytes.Repeat([]byte("z"), 1048480)
		if _, err := sess.Create(t.Context(), segment, large, zk.PersistentSequential); err != nil {
			t.Fatal(err)
		}
		put(t, producer, "b", queue.Message{})
		bounded(t, w, 1000)
		for _, want := range []string{"a", "b"} {
			item := take(t, consumer)
			wantBody(t, item, want)
			done(t, item)
		}
		wantEmpty(t, consumer)
		wantLen(t, producer, queue.Counts{Ready: 1}) // counted, as what is foreign inside a segment is
		w.NoNodes(t, root+"/claims")
	})
}

func TestWhoMayOnlyReadCanLookAtAQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.login(t)
		acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}})
		q, err := queue.New(client, root, queue.Config{ACL: acl})
		if err != nil {
			t.Fatal(err)
		}
		put(t, q, "a", queue.Message{})
		if err := take(t, q).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		put(t, q, "b", queue.Message{})
		put(t, q, "c", queue.Message{Delay: time.Hour})
		reader := w.queue(queue.Config{})
		wantLen(t, reader, queue.Counts{Ready: 1, Delayed: 1, Dead: 1})
		if p, err := reader.Peek(t.Context()); err != nil || string(p.Body) != "b" {
			t.Errorf("peek: %q, %v", p.Body, err)
		}
		if list, err := reader.Consumers(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("consumers: %v, %v, want the one that has taken an item", list, err)
		}
		for x, err := range reader.DeadLetters(t.Context()) {
			if err != nil || string(x.Body) != "a" {
				t.Errorf("dead letters: %q, %v", x.Body, err)
			}
		}
		if _, err := reader.Put(t.Context(), queue.Message{}); !errors.Is(err, zk.NoAuth) {
			t.Errorf("put: got %v, want NoAuth", err)
		}
		if n, err := reader.PurgeDead(t.Context()); n != 0 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("purge dead letters: got %d, %v, want NoAuth", n, err)
		}
		if n, err := reader.Requeue(t.Context()); n != 0 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("requeue: got %d, %v, want NoAuth", n, err)
		}
	})
}

// Each of many puts at the same time makes a receipt. They do not each read those of all others.
func TestManyPutsAtTheSameTimeReadFewReceipts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "first", queue.Message{})
		const n = 600
		read := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, root+"/receipts/") {
				read++
			}
			return zktest.Pass
		})
		w.Delay(time.Millisecond)
		errs := make(chan error)
		for range n {
			go func() {
				_, err := q.Put(t.Context(), queue.Message{})
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		w.Control(nil)
		w.Delay(0)
		if read > n/2 {
			t.Errorf("%d puts have read %d receipts", n, read)
		}
	})
}

// A consumer that may not read its own node goes on, and does not ask for it without end.
func TestConsumerThatMayNotReadItsNodeAsksNowAndThen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		var asked atomic.Int32
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && strings.HasPrefix(r.Path, root+"/consumers/") {
				if asked.Add(1) > 1000 {
					panic("requests are sent without end")
				}
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		})
		put(t, q, "a", queue.Message{})
		item := take(t, q)
		pass(time.Minute)
		done(t, item)
		if n := asked.Load(); n < 10 || n > 100 {
			t.Errorf("it has asked %d times in a minute", n)
		}
	})
}

// What a handler does to a body in place changes nothing of what is stored.
func TestBodyAndHeadersAreTheCallersOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "body", queue.Message{Headers: map[string]string{"k": "v"}})
		check := func(attempt int) *queue.Item {
			item := take(t, q)
			wantBody(t, item, "body")
			if item.Headers()["k"] != "v" || len(item.Headers()) != 1 || item.Attempt() != attempt {
				t.Errorf("got %v, attempt %d, want %d", item.Headers(), item.Attempt(), attempt)
			}
			copy(item.Body(), "XXXX")
			item.Headers()["k2"] = "x"
			return item
		}
		if err := check(1).Fail(t.Context(), errors.New("no")); err != nil {
			t.Fatal(err)
		}
		if err := check(2).Fail(t.Context(), &queue.RetryError{After: time.Second}); err != nil {
			t.Fatal(err)
		}
		if err := check(3).Reject(t.Context(), "bad"); err != nil {
			t.Fatal(err)
		}
		for x, err := range q.DeadLetters(t.Context()) {
			if err != nil || string(x.Body) != "body" || len(x.Headers) != 1 {
				t.Errorf("dead letter: %q %v, %v", x.Body, x.Headers, err)
			}
		}
	})
}
