package lock_test

// What other programs write, where ours would have a record.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Data that looks like an owner's record is one only in a node of ours. Revoke leaves all others as they are.
func TestJSONOfOtherProgramsIsNoOwnersRecord(t *testing.T) {
	const full = `{"host":"app-7","pid":7,"program":"app","since":"2026-11-28T00:00:00Z"}`
	const broker = `{"jmx_port":-1,"features":{},"host":"kafka-1","timestamp":"1600000000000","port":9092,"version":5}`
	inWorld(t, func(t *testing.T, w *world) {
		sess, client := w.Session(t, 20*time.Second), w.Client(t, 20*time.Second)
		for _, dir := range []string{"/brokers", "/brokers/ids", "/locks", path} {
			if _, err := sess.Create(t.Context(), dir, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct{ lock, node, data string }{
			{"/brokers/ids/1", "/brokers/ids/1", broker},
			{"/brokers/ids/2", "/brokers/ids/2", full},
			{path, path + "/" + theirs["kazoo"], `{"host":"app-7","port":8080}`},
			{path, path + "/" + theirs["kazoo"], full},
			{path, path + "/" + theirs["latch"], full},
			{path, path + "/" + theirs["READ"], full},
			{path, path + "/" + strings.Replace(theirs["latch"], "-469f-", "-869f-", 1), full}, // our candidate's id
		} {
			if _, err := sess.Create(t.Context(), c.node, []byte(c.data), zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
			list, err := lock.Inspect(t.Context(), client, c.lock)
			if err != nil || len(list) != 1 || list[0].Known || string(list[0].Data) != c.data {
				t.Errorf("Inspect %s: %+v, %v", c.node, list, err)
			}
			_, err = lock.Revoke(t.Context(), client, c.lock, lock.RevokeOptions{Grace: time.Second})
			data, _, readErr := sess.Get(t.Context(), c.node)
			candidate := strings.Contains(c.node, "-869f-") && strings.HasPrefix(string(data), c.data)
			if !errors.Is(err, lock.ErrKept) || readErr != nil || string(data) != c.data && !candidate {
				t.Errorf("after Revoke (%v) %s has %q, %v", err, c.node, data, readErr)
			}
			if err := sess.Delete(t.Context(), c.node, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whatever a contender's node has, force ends its hold, and the record of that fits.
func TestContenderWithLargeDataGivesWayToForce(t *testing.T) {
	t.Parallel()
	const record = `{"host":"%s","pid":1,"program":"app","label":"%[1]s","set":["/%[1]s"],` +
		`"since":"2026-11-28T00:00:00Z"}`
	ours := strings.Replace(guid, "-469f-", "-869f-", 1)
	for what, data := range map[string]string{
		"near the limit": fmt.Sprintf(record, strings.Repeat("x", 1<<20/3-300)),
		"escapes":        fmt.Sprintf(record, strings.Repeat("<", 100<<10)),
		"text":           strings.Repeat("<", 1<<20-1000),
	} {
		for _, keep := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					sess := w.Session(t, 20*time.Second)
					node := w.foreign(sess, ours+"-lock-", zk.EphemeralSequential)
					if _, err := sess.Set(t.Context(), node, []byte(data), -1); err != nil {
						t.Fatal(err)
					}
					r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true, Record: keep})
					_, there, err := sess.Exists(t.Context(), node)
					if r.err != nil || there || err != nil || r.list[0].Ending != lock.EndingForced {
						t.Errorf("record %v: got %.300v, still there: %v %v", keep, r.err, there, err)
					}
					if !keep {
						return
					}
					records, err := lock.Revocations(t.Context(), w.Client(t, time.Minute), path)
					if err != nil || len(records) != 1 || len(records[0].Holders) != 1 {
						t.Errorf("recorded %d, %v", len(records), err)
					}
				})
			})
		}
	}
}

// A holder's node goes with the whole path, as by an operator's deleteall.
func TestHolderWhosePathIsDeletedHasReleasedIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{guid + "-lock-", guid + "-__WRIT__"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				sess := w.Session(t, 20*time.Second)
				node := w.foreign(sess, name, zk.EphemeralSequential)
				done := w.revoke(lock.RevokeOptions{Grace: time.Minute})
				time.Sleep(time.Second) // in a bubble
				if _, err := sess.Multi(t.Context(), zk.DeleteOp(node, -1), zk.DeleteOp(path, -1)); err != nil {
					t.Fatal(err)
				}
				if r := <-done; r.err != nil || r.list[0].Ending != lock.EndingReleased {
					t.Errorf("got %+v, %v", r.list, r.err)
				}
			})
		})
	}
}

// No permit of a semaphore in kazoo's layout is taken, and one waits: it was stopped while it had the inner lock.
func TestWaiterAtASemaphoreOfKazoosWithoutPermitsIsShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess, client := w.Session(t, 20*time.Second), w.Client(t, 20*time.Second)
		for _, dir := range []string{"/locks", path, path + "-__lock__"} {
			if _, err := sess.Create(t.Context(), dir, []byte("3"), zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"0f8fad5bd9cb469fa16570867728950e__lock__", theirs["kazoo"]} {
			mode := zk.EphemeralSequential
			if name == theirs["kazoo"] {
				mode = zk.Ephemeral
			}
			if _, err := sess.Create(t.Context(), path+"-__lock__/"+name, nil, mode); err != nil {
				t.Fatal(err)
			}
		}
		list, err := lock.Inspect(t.Context(), client, path)
		s, shortErr := lock.Summarize(t.Context(), client, path)
		if err := errors.Join(err, shortErr); err != nil || len(list) != 2 || s.Holding+s.Waiting != 2 {
			t.Errorf("Inspect shows %d contenders, Summarize %+v, %v", len(list), s, err)
		}
		n, err := lock.InspectNumbers(t.Context(), client, path)
		if err != nil || n != s.Numbers || n.Path != path+"-__lock__" {
			t.Errorf("numbers are %+v, and %+v in short, %v", n, s.Numbers, err)
		}
		// A lock whose path has a foreign child with such a name is no semaphore.
		w.foreign(sess, theirs["lock"], zk.Ephemeral)
		w.foreign(sess, "0f8fad5bd9cb469fa16570867728950e", zk.Persistent)
		if n, err := lock.InspectNumbers(t.Context(), client, path); err != nil || n.Path != path {
			t.Errorf("numbers are %+v, %v", n, err)
		}
	})
}

// A client that may write marks, or delete them, decides for how long a lock rests.
func TestMarksThatOthersMayWriteAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := w.Config(20 * time.Second)
		cfg.Auth = []zk.Auth{zk.Digest("ann", "secret")}
		client, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		if _, err := client.CreateNode(t.Context(), zk.Node{Path: "/locks", ACL: zk.CreatorACL()}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Create(t.Context(), lock.DelayPath(path), nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		for _, any := range []bool{false, true} {
			m, err := lock.NewMutex(client, path, lock.Config{ACL: zk.CreatorACL(), AnyACL: any, Delay: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			hold, err := m.Lock(t.Context())
			if any {
				unlock(t, hold)
			}
			if errors.Is(err, lock.ErrWider) == any || !any && !strings.Contains(err.Error(), lock.DelayPath(path)) {
				t.Errorf("AnyACL %v: got %v", any, err)
			}
		}
	})
}

// Another program may have put a record of any size behind that of a revocation under way.
func TestRecordThatCannotBeMadeSmallerEndsNoRevocation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess, client := w.Session(t, 20*time.Second), w.Client(t, time.Minute)
		w.foreign(sess, theirs["lock"], zk.Ephemeral)
		if _, err := sess.Create(t.Context(), lock.RecordsPath(path), []byte("[]"), zk.Persistent); err != nil {
			t.Fatal(err)
		}
		done := w.revoke(lock.RevokeOptions{Grace: time.Minute, Record: true})
		time.Sleep(time.Second) // in a bubble
		data, stat, err := sess.Get(t.Context(), lock.RecordsPath(path))
		if err != nil {
			t.Fatal(err)
		}
		large := fmt.Sprintf(`%s,{"id":"x","request":{"reason":%q},"holders":[]}]`,
			strings.TrimSuffix(string(data), "]"), strings.Repeat("x", 300<<10))
		if _, err := sess.Set(t.Context(), lock.RecordsPath(path), []byte(large), stat.Version); err != nil {
			t.Fatal(err)
		}
		if r := <-done; !errors.Is(r.err, lock.ErrKept) {
			t.Errorf("got %v, want ErrKept", r.err)
		}
		if records, err := lock.Revocations(t.Context(), client, path); err != nil || len(records) != 1 {
			t.Errorf("%d records, %v", len(records), err)
		}
	})
}
