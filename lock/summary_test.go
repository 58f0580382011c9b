package lock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// wantSummary checks that Summarize tells the same as Inspect.
func (w *world) wantSummary(what string) {
	w.t.Helper()
	s, err := lock.Summarize(w.t.Context(), w.Client(w.t, 20*time.Second), path)
	if err != nil {
		w.t.Fatal(err)
	}
	listed, err := w.list()
	if err == nil {
		again, err := lock.SummarizeListed(w.t.Context(), w.Client(w.t, 20*time.Second), path, listed)
		if err != nil || !reflect.DeepEqual(again, s) {
			w.t.Errorf("%s: of a list got %+v, %v, want %+v", what, again, err, s)
		}
	} else if !errors.Is(err, zk.NoNode) {
		w.t.Fatal(err)
	}
	var holders, waiters []string
	groups := 0
	for _, c := range w.line() {
		groups = max(groups, c.Group+1)
		if c.Holder {
			holders = append(holders, c.Path)
		} else {
			waiters = append(waiters, c.Path)
		}
	}
	var described []string
	for _, c := range s.Holders {
		if !c.Holder {
			w.t.Errorf("%s: %s is among the holders, and does not hold", what, c.Path)
		}
		described = append(described, c.Path)
	}
	if !slices.Equal(described, holders[:min(len(holders), 8)]) {
		w.t.Errorf("%s: got the holders %q, want %q", what, described, holders)
	}
	if s.Holding != len(holders) || s.Waiting != len(waiters) || s.Groups != groups {
		w.t.Errorf("%s: %d hold and %d wait in %d groups, want %d, %d, %d",
			what, s.Holding, s.Waiting, s.Groups, len(holders), len(waiters), groups)
	}
	first := ""
	if s.First != nil {
		first = s.First.Path
	}
	if want := append(waiters, "")[0]; first != want {
		w.t.Errorf("%s: %q is the first in line, want %q", what, first, want)
	}
}

// list lists the children of the lock.
func (w *world) list() (listed zk.Children, err error) {
	listed.Names, listed.Stat, err = w.Session(w.t, 20*time.Second).Children(w.t.Context(), path)
	return listed, err
}

// requests returns how many there have been.
func (w *world) requests() (n int) {
	for _, count := range w.Traffic().Requests {
		n += count
	}
	return n
}

func TestSummaryOfEachKindIsThatOfInspect(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.wantRoles("no such path", "")
		sem := w.another(2, 1)
		a, b := locked(t, sem.Lock), locked(t, sem.Lock)
		third := waits(t.Context(), sem.Lock)
		w.wantRoles("a semaphore", "SS-")
		unlock(t, a)
		unlock(t, got(t, third))
		unlock(t, b)
		w.wantRoles("a free semaphore", "")
	})
}

func TestSummaryAtTheRoot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		made := func(path string) {
			t.Helper()
			node := zk.Node{Path: path, Mode: zk.EphemeralSequential}
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		made("/leases/" + guid + "-lease-")
		client := w.Client(t, 20*time.Second)
		for _, holding := range []int{1, 2} { // a permit; with a lock beside it
			s, err := lock.Summarize(t.Context(), client, "/")
			if err != nil || s.Holding != holding {
				t.Errorf("%d hold, want %d: %v", s.Holding, holding, err)
			}
			line, err := lock.Inspect(t.Context(), client, "/")
			if err != nil || len(line) != holding {
				t.Errorf("%d in line, want %d: %v", len(line), holding, err)
			}
			made("/" + guid + "-lock-")
		}
	})
}

// Others have such names, too, of many and large nodes.
func TestSummaryDoesNotReadNodesThatAreNoPermits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		for i := range 300 {
			node := zk.Node{Path: fmt.Sprintf("%s/%032x", path, i), Data: make([]byte, 1000)}
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		client := w.Client(t, 20*time.Second)
		before := w.requests()
		s, err := lock.Summarize(t.Context(), client, path)
		if err != nil || s.Holding+s.Waiting != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if n := w.requests() - before; n > 110 { // 100 looks
			t.Errorf("it took %d requests", n)
		}
	})
}

func TestSummaryOfASimpleLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := locked(t, w.simple().Lock)
		w.wantRoles("held", "H")
		unlock(t, h)
	})
}

// However many hold and wait, the summary costs the same.
func TestSummaryReadsOnlyThoseInFront(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		for range 20 {
			w.foreign(sess, guid+"-__READ__", zk.EphemeralSequential)
		}
		for range 200 {
			w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		}
		client := w.Client(t, 20*time.Second)
		before := w.requests()
		s, err := lock.Summarize(t.Context(), client, path)
		if err != nil || len(s.Holders) != 8 || s.Holding != 20 || s.Waiting != 200 {
			t.Fatalf("%d of %d holders, %d wait, %v", len(s.Holders), s.Holding, s.Waiting, err)
		}
		if n := w.requests() - before; n > 11 { // the session, one list, eight holders and a waiter
			t.Errorf("it took %d requests", n)
		}
		if s.Numbers.Path != path || s.Numbers.Left < 1<<30 {
			t.Errorf("numbers: %+v", s.Numbers)
		}
	})
}

// Nodes of no session among permits and their waiters hide none of them.
func TestSummaryOfASemaphoreWithDirectories(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sem := w.another(1, 1)
		held, waiter := locked(t, sem.Lock), waits(t.Context(), sem.Lock)
		synctest.Wait()
		sess := w.Session(t, 20*time.Second)
		dirs := []string{"/leases/" + guid + "-lease-0000000000", "/locks/a-lock-0000000000"}
		for _, dir := range dirs {
			if _, err := sess.CreateAll(t.Context(), zk.Node{Path: path + dir + "/below"}, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		w.wantRoles("a permit and a waiter", "S-")
		for _, dir := range dirs { // which programs respect, as they look at names alone
			if _, err := sess.DeleteAll(t.Context(), path+dir); err != nil {
				t.Fatal(err)
			}
		}
		unlock(t, held)
		unlock(t, got(t, waiter))
	})
}

// What was listed is not listed again, unless it has changed since.
func TestSummaryOfWhatWasListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess, client := w.Session(t, 20*time.Second), w.Client(t, 20*time.Second)
		var nodes []string
		for range 3 {
			nodes = append(nodes, w.foreign(sess, guid+"-lock-", zk.EphemeralSequential))
		}
		listed, err := w.list()
		if err != nil {
			t.Fatal(err)
		}
		for i, requests := range []int{3, 5, 4} { // the session and two looks; two looks, a list, those who are left
			before := w.requests()
			s, err := lock.SummarizeListed(t.Context(), client, path, listed)
			if err != nil || s.Holding != 1 || s.Holders[0].Path != nodes[i] || s.Waiting != 2-i {
				t.Fatalf("%d are gone: %+v, %v", i, s, err)
			}
			if n := w.requests() - before; n > requests {
				t.Errorf("%d are gone: it took %d requests", i, n)
			}
			if err := sess.Delete(t.Context(), nodes[i], -1); err != nil {
				t.Fatal(err)
			}
		}
		if err := sess.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		if s, err := lock.SummarizeListed(t.Context(), client, path, listed); err != nil || s.Holding+s.Waiting > 0 {
			t.Errorf("the lock is gone: %+v, %v", s, err)
		}
	})
}

// The lock changes hands all the time: the summary shows one holder at most, and is no error.
func TestSummaryOfALockThatChangesHands(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		for range 4 {
			m := w.mutex(lock.Config{})
			go func() {
				defer func() { ended <- struct{}{} }()
				for ctx.Err() == nil {
					h, err := m.Lock(ctx)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond) // in a bubble
					h.Unlock()
				}
			}()
		}
		client := w.Client(t, 20*time.Second)
		for range 200 {
			s, err := lock.Summarize(t.Context(), client, path)
			if err != nil || s.Holding > 1 || s.Holding == 0 && s.Waiting > 0 {
				t.Fatalf("%d hold, %d wait, %v", s.Holding, s.Waiting, err)
			}
			time.Sleep(100 * time.Microsecond) // in a bubble
		}
		stop()
		for range 4 {
			<-ended
		}
	})
}
