package queue_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	stdpath "path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func putOnce(t *testing.T, q *queue.Queue, key string) (id string, added bool) {
	t.Helper()
	id, added, err := q.PutOnce(t.Context(), key, queue.Message{Body: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return id, added
}

func TestEmptyKeyIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, _, err := w.queue(queue.Config{}).PutOnce(t.Context(), "", queue.Message{})
		if !errors.Is(err, zk.BadArguments) || !strings.Contains(err.Error(), "the key is empty") {
			t.Errorf("got %v", err)
		}
	})
}

// A put that has nothing to put needs no room.
//
// Promise: 7
func TestKeyThatIsInIsFoundInAFullQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id, _ := putOnce(t, w.queue(queue.Config{}), "k")
		for _, cfg := range []queue.Config{{MaxItems: 1}, {MaxItems: 1, WaitWhenFull: true}} {
			q := w.queue(cfg)
			if got, added := putOnce(t, q, "k"); added || got != id {
				t.Errorf("with %+v: got %s, %v, want %s, false", cfg, got, added, id)
			}
			wantLen(t, q, queue.Counts{Ready: 1})
		}
		_, _, err := w.queue(queue.Config{MaxItems: 1}).PutOnce(t.Context(), "other", queue.Message{})
		if !errors.Is(err, queue.ErrFull) {
			t.Errorf("another key: got %v, want ErrFull", err)
		}
	})
}

// A caller that waits for room with a key gets the item's id when another client has put it meanwhile.
//
// Promise: 7
func TestKeyThatComesInWhileItsPutWaitsForRoomEndsTheWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		type answer struct {
			id    string
			added bool
			err   error
		}
		answers := make(chan answer)
		patient := w.queue(queue.Config{MaxItems: 1, WaitWhenFull: true})
		go func() {
			id, added, err := patient.PutOnce(t.Context(), "k", queue.Message{})
			answers <- answer{id, added, err}
		}()
		pass(time.Minute)
		id, _ := putOnce(t, q, "k")
		if got := <-answers; got.err != nil || got.added || got.id != id {
			t.Errorf("got %+v, want %s", got, id)
		}
	})
}

// A key that has had its time does not keep a full queue from saying so.
//
// Promise: 7
func TestKeyThatIsForgottenNeedsRoom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		putOnce(t, w.queue(queue.Config{KeepKeys: time.Minute}), "k")
		pass(10 * time.Minute)
		q := w.queue(queue.Config{MaxItems: 1, KeepKeys: time.Minute})
		if _, _, err := q.PutOnce(t.Context(), "k", queue.Message{}); !errors.Is(err, queue.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	})
}

// partOf returns so many keys that lie in the same node as key.
func partOf(key string, n int) []string {
	part := func(key string) byte { return sha256.Sum256([]byte(key))[0] }
	var keys []string
	for i := 0; len(keys) < n; i++ {
		if k := fmt.Sprintf("%s-%d", key, i); part(k) == part(key) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Promise: 7
func TestKeyCountsForAsLongAsItsProducerSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long, short := queue.Config{KeepKeys: 24 * time.Hour}, queue.Config{KeepKeys: time.Hour}
		id, _ := putOnce(t, w.queue(long), "k")
		brief, _ := putOnce(t, w.queue(short), "brief")
		pass(2 * time.Hour)
		keys := partOf("k", 3)
		for _, key := range keys {
			putOnce(t, w.queue(short), key) // the first of a Queue sweeps
		}
		synctest.Wait()
		for _, cfg := range []queue.Config{short, long} {
			if got, added := putOnce(t, w.queue(cfg), "k"); added || got != id {
				t.Errorf("with KeepKeys %v: got %s, %v, want %s", cfg.KeepKeys, got, added, id)
			}
		}
		if got, added := putOnce(t, w.queue(long), "brief"); !added || got == brief {
			t.Errorf("got %s, %v: a key of an hour counts after two", got, added)
		}
	})
}

// A key that says nothing of how long it counts is from before keys did.
//
// Promise: 7
func TestKeyWithoutATimeCountsForAsLongAsTheAskersOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id, _ := putOnce(t, w.queue(queue.Config{}), "k")
		sum := sha256.Sum256([]byte("k"))
		path := root + "/keys/" + hex.EncodeToString(sum[:1]) + "/" + hex.EncodeToString(sum[1:17])
		if _, err := w.Session(t, time.Minute).Set(t.Context(), path, []byte(id), -1); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if got, added := putOnce(t, w.queue(queue.Config{KeepKeys: 2 * time.Hour}), "k"); added || got != id {
			t.Errorf("got %s, %v, want %s", got, added, id)
		}
		if got, added := putOnce(t, w.queue(queue.Config{KeepKeys: time.Minute}), "k"); !added || got == id {
			t.Errorf("got %s, %v, want a new one", got, added)
		}
	})
}

// A sweeper that is slow does not remove a key that was put anew since it has looked, whether another has swept the
// old one or not.
//
// Promise: 7
func TestSlowSweepLeavesAKeyThatWasPutAnew(t *testing.T) {
	t.Parallel()
	for name, swept := range map[string]bool{"in place": false, "swept before": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				cfg := queue.Config{KeepKeys: time.Minute}
				putOnce(t, w.queue(cfg), "k")
				pass(2 * time.Minute)
				keys := partOf("k", 2)
				slow := true
				w.Control(func(r zktest.Request) zktest.Fault {
					sweeps := r.Op == zktest.OpDelete ||
						r.Op == zktest.OpMulti && slices.ContainsFunc(r.Parts, func(p zktest.Part) bool {
							return p.Op == zktest.OpDelete && strings.HasPrefix(p.Path, root+"/keys/")
						})
					if slow && sweeps {
						slow = false
						return zktest.Delay(5 * time.Second)
					}
					return zktest.Pass
				})
				putOnce(t, w.queue(cfg), keys[0])
				synctest.Wait()
				if slow {
					t.Fatal("nothing is swept")
				}
				if swept {
					putOnce(t, w.queue(cfg), keys[1])
					synctest.Wait()
				}
				id, added := putOnce(t, w.queue(cfg), "k")
				pass(10 * time.Second)
				if got, again := putOnce(t, w.queue(cfg), "k"); !added || again || got != id {
					t.Errorf("got %s, %v, want %s", got, again, id)
				}
			})
		})
	}
}

func (w *world) children(path string) []string {
	w.t.Helper()
	names, _, err := w.Session(w.t, time.Minute).Children(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// A program that closes its queue right after its only call sweeps all the same.
//
// Promise: 7
func TestCloseWaitsForSweepsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const n = 20
		cfg := queue.Config{KeepKeys: time.Hour}.WithSegment(5)
		keys := partOf("k", n)
		q := w.queue(cfg)
		for _, key := range keys[1:] {
			putOnce(t, q, key)
			if err := take(t, q).Reject(t.Context(), "no"); err != nil {
				t.Fatal(err)
			}
		}
		pass(2 * time.Hour)
		brief := w.queue(cfg)
		putOnce(t, brief, keys[0])
		if err := brief.Close(t.Context()); err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256([]byte(keys[0]))
		if names := w.children(root + "/keys/" + hex.EncodeToString(sum[:1])); len(names) != 1 {
			t.Errorf("%d keys are left, want 1", len(names))
		}
		brief = w.queue(cfg)
		if got, err := brief.PurgeDead(t.Context()); got != n-1 || err != nil {
			t.Fatal(got, err)
		}
		if err := brief.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if names := w.children(root + "/dead"); len(names) != 1 {
			t.Errorf("segments are left: %v", names)
		}
	})
}

// Receipts are left to later sweeps if the session has ended, whatever the caller's context.
func TestCloseDoesNotWaitForAServer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.Message{})
		w.Cut()
		pass(time.Hour)
		began := time.Now()
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second { // of the bubble's time
			t.Errorf("it took %v", took)
		}
		w.Heal()
	})
}

// A sweep that gets no answer does not keep Close for longer than it says, and is no error.
//
// Promise: 7
func TestCloseDoesNotWaitLongForASweep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetChildren && strings.HasPrefix(r.Path, root+"/keys/") {
				return zktest.DelayReply(5 * time.Second)
			}
			return zktest.Pass
		})
		putOnce(t, q, "k")
		synctest.Wait()
		w.Control(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := q.Close(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Two producers find that a key has had its time, and put under it at the same time.
func TestKeyThatHasHadItsTimeIsPutAnewOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := queue.Config{KeepKeys: time.Minute}
		putOnce(t, w.queue(cfg), "k")
		pass(2 * time.Minute)
		slow, quick := w.queue(cfg), w.queue(cfg)
		stopped, proceed := context.WithCancel(t.Context())
		defer proceed()
		replacements := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			for _, part := range r.Parts {
				if part.Op == zktest.OpSetData && strings.HasPrefix(part.Path, root+"/keys/") {
					if replacements++; replacements == 1 {
						return zktest.Until(stopped)
					}
				}
			}
			return zktest.Pass
		})
		type answer struct {
			id    string
			added bool
		}
		late := make(chan answer)
		go func() {
			id, added := putOnce(t, slow, "k")
			late <- answer{id, added}
		}()
		synctest.Wait()
		id, added := putOnce(t, quick, "k")
		proceed()
		if got := <-late; replacements != 2 || !added || got != (answer{id, false}) {
			t.Errorf("the slow one got %v, the quick one %s, %v, after %d attempts", got, id, added, replacements)
		}
	})
}

// An item that was removed does not block its key.
//
// Promise: 7
func TestKeyOfARemovedItemIsForgotten(t *testing.T) {
	t.Parallel()
	message := func(m queue.Message) queue.Message {
		m.Body = []byte("x")
		return m
	}
	purge := func(t *testing.T, q *queue.Queue, _ string) error {
		n, err := q.Purge(t.Context())
		if err == nil && n != 1 {
			err = fmt.Errorf("%d items were purged, want 1", n)
		}
		return err
	}
	for name, row := range map[string]struct {
		m      queue.Message
		before func(t *testing.T, q *queue.Queue)
		remove func(t *testing.T, q *queue.Queue, id string) error
	}{
		"ready":           {remove: purge},
		"delayed":         {m: queue.Message{Delay: time.Hour}, remove: purge},
		"head of a group": {m: queue.Message{Group: "g"}, remove: purge},
		"waiting": {m: queue.Message{Group: "g"}, before: func(t *testing.T, q *queue.Queue) {
			put(t, q, "head", queue.Message{Group: "g"})
			take(t, q)
		}, remove: purge},
		"removed": {remove: func(t *testing.T, q *queue.Queue, id string) error { return q.Remove(t.Context(), id) }},
		"dead letter": {remove: func(t *testing.T, q *queue.Queue, _ string) error {
			kill(t, q, 1)
			_, err := q.PurgeDead(t.Context())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				if row.before != nil {
					row.before(t, q)
				}
				id, added, err := q.PutOnce(t.Context(), "key", message(row.m))
				if err != nil || !added {
					t.Fatalf("got %t, %v, want it added", added, err)
				}
				if err := row.remove(t, q, id); err != nil {
					t.Fatal(err)
				}
				for _, want := range []bool{true, false} {
					_, added, err := w.queue(queue.Config{}).PutOnce(t.Context(), "key", message(row.m))
					if err != nil || added != want {
						t.Errorf("got %t, %v, want %t: added anew, once", added, err, want)
					}
				}
			})
		})
	}
}

// A key that may not be written keeps its letter where it is, and the purge does not go on without end.
//
// Promise: 7
func TestPurgeOfALetterWhoseKeyMayNotBeWrittenIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		id, _ := putOnce(t, q, "k")
		kill(t, q, 1)
		path := root + "/keys"
		for range 2 { // its part, and the key
			path = stdpath.Join(path, w.children(path)[0])
		}
		sess, anyone := w.Session(t, time.Minute), zk.ID{Scheme: "world", ID: "anyone"}
		if _, err := sess.SetACL(t.Context(), path, []zk.ACL{{Perms: zk.PermRead, ID: anyone}}, -1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		endAfter(w, 5000, cancel)
		if n, err := q.PurgeDead(ctx); n != 0 || !errors.Is(err, zk.NoAuth) {
			t.Errorf("purge: got %d, %v, want NoAuth", n, err)
		}
		if err := q.Remove(ctx, id); !errors.Is(err, zk.NoAuth) {
			t.Errorf("remove: got %v, want NoAuth", err)
		}
		wantLen(t, q, queue.Counts{Dead: 1})
	})
}
