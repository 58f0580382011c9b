package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// roles says of each contender in line whether it holds (H), holds with others or could (S), may hold (?), or none of
// these (-).
func (w *world) roles() string {
	var b strings.Builder
	for _, c := range w.line() {
		switch {
		case c.Holder && (c.Kind == lock.Permit || c.Kind == lock.Reader):
			b.WriteString("S")
		case c.Holder:
			b.WriteString("H")
		case c.MayHold:
			b.WriteString("?")
		default:
			b.WriteString("-")
		}
	}
	return b.String()
}

func (w *world) wantRoles(what, want string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.roles(); got != want {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
	w.wantSummary(what)
}

func TestInspectShowsAllWhoHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r1, r2 := locked(t, w.rw(lock.RWConfig{}).RLock), locked(t, w.rw(lock.RWConfig{}).RLock)
		writer := waits(t.Context(), w.rw(lock.RWConfig{}).Lock)
		synctest.Wait()
		reader := waits(t.Context(), w.rw(lock.RWConfig{}).RLock)
		w.wantRoles("two readers, a writer and a reader behind", "SS--")
		unlock(t, r1)
		unlock(t, r2)
		hold := got(t, writer)
		w.wantRoles("a writer, a reader behind", "H-")
		unlock(t, hold)
		unlock(t, got(t, reader))

		set, second := locked(t, w.set(path, pathA).Lock), lockInBackground(t.Context(), w.mutex(lock.Config{}))
		w.wantRoles("a set and a mutex", "H-")
		unlock(t, set)
		unlock(t, got(t, second))

		sess := w.Session(t, 20*time.Second)
		w.foreign(sess, guid+"-__READ__", zk.EphemeralSequential)
		w.foreign(sess, "0f8fad5bd9cb469fa16570867728950e__rlock__", zk.EphemeralSequential)
		w.foreign(sess, "1f8fad5bd9cb469fa16570867728950e__lock__", zk.EphemeralSequential)
		w.wantRoles("Curator's reader, kazoo's, and kazoo's Lock or WriteLock", "SS?")
	})
}

// A lock whose path ends as the names of contenders do is no contender of a lock at its parent.
func TestDirectoryWithAContendersNameIsNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		inner := zk.Node{Path: path + "/order-lock-1764500000/idle"}
		if _, err := sess.CreateAll(t.Context(), inner, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		w.wantRoles("a directory", "")
		r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true})
		if len(r.list) != 0 {
			t.Errorf("got %+v, want nothing to revoke", r)
		}
		if _, there, err := sess.Exists(t.Context(), path+"/order-lock-1764500000"); !there || err != nil {
			t.Errorf("the directory has gone: %v", err)
		}
		for range 3 {
			w.foreign(sess, guid+"-lock-", zk.EphemeralSequential)
		}
		if roles := w.roles(); roles != "H--" {
			t.Errorf("a directory behind three: got %q", roles)
		}
		if _, err := sess.DeleteAll(t.Context(), path+"/order-lock-1764500000"); err != nil {
			t.Fatal(err)
		}
		early := zk.Node{Path: path + "/order-lock-0000000000/idle"}
		if _, err := sess.CreateAll(t.Context(), early, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		w.wantRoles("a directory before three, which all wait for", "---")
		for _, c := range w.line() {
			if c.Behind != path+"/order-lock-0000000000" {
				t.Errorf("got %q behind %q, want the directory", c.Path, c.Behind)
			}
		}
	})
}

// Promise: 9
func TestWaiterBehindANodeOfNoSessionIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stray := w.foreign(w.Session(t, 20*time.Second), guid+"-lock-", zk.PersistentSequential)
		for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
			var told []string
			hooks := lock.Hooks{Stray: func(e lock.Event) { told = append(told, e.Path+" "+e.Node) }}
			ctx, cancel := context.WithCancel(t.Context())
			waiter := waits(ctx, w.mutex(lock.Config{Layout: layout, Hooks: hooks}).Lock)
			w.wantRoles("one behind a node of no session", "-")
			if !slices.Equal(told, []string{path + " " + stray}) {
				t.Errorf("%v: got %q, want to be told of %s once", layout, told, stray)
			}
			cancel()
			if r := <-waiter; !errors.Is(r.err, context.Canceled) {
				t.Error(r.err)
			}
		}
	})
}

// A thread of Curator's that holds a lock for writing may take it for reading, too.
func TestReaderOfAWritersSessionMayHold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess, other := w.Session(t, 20*time.Second), w.Session(t, 20*time.Second)
		w.foreign(sess, guid+"-__WRIT__", zk.EphemeralSequential)
		w.foreign(sess, guid+"-__READ__", zk.EphemeralSequential)
		last := w.foreign(other, guid+"-__READ__", zk.EphemeralSequential)
		if got := w.roles(); got != "H?-" {
			t.Errorf("got %q, want H?-", got)
		}
		s, err := lock.Summarize(t.Context(), w.Client(t, 20*time.Second), path)
		if err != nil || s.First == nil || s.First.Path != last || s.Waiting != 2 || s.MayHold != 1 || s.Groups != 1 {
			t.Errorf("got %+v %v, want that %s is the first to wait", s, err, last)
		}
	})
}

// Who excludes whom is in docs/interop.md. Two that do not exclude each other are never shown as a holder and one
// that waits.
//
// Promise: 9
func TestInspectTellsThoseApartWhoDoNotExcludeEachOther(t *testing.T) {
	t.Parallel()
	const curators, kazoos, latch = guid + "-lock-", "0f8fad5bd9cb469fa16570867728950e__lock__", guid + "-latch-"
	const ours = "_c_1f8fad5b-d9cb-869f-a165-70867728950e" // by its version
	const selector, election = ours + "-lock-", ours + "-__lock__"
	for _, test := range []struct {
		name   string
		nodes  []string // one after the other; "" is one of ours, in the layout
		layout lock.Layout
		roles  string
		groups string
	}{
		{"Curator and kazoo", []string{curators, kazoos}, 0, "H?", "01"},
		{"kazoo and Curator", []string{kazoos, curators}, 0, "H?", "01"},
		{"kazoo, Curator, kazoo", []string{kazoos, curators, kazoos}, 0, "H?-", "010"},
		{"Curator and Curator", []string{curators, curators}, 0, "H-", "00"},
		{"kazoo and kazoo", []string{kazoos, kazoos}, 0, "H-", "00"},
		{"ours and kazoo", []string{"", kazoos}, lock.Curator, "H?", "01"},
		{"kazoo and ours", []string{kazoos, ""}, lock.Curator, "H-", "01"},
		{"ours for kazoo, and kazoo", []string{"", kazoos}, lock.Kazoo, "H-", "00"},
		{"ours for kazoo, and Curator", []string{"", curators}, lock.Kazoo, "H?", "01"},
		{"ours for both, and both", []string{"", curators, kazoos}, lock.Both, "H--", "000"},
		{
			"Curator's readers and writer",
			[]string{guid + "-__READ__", guid + "-__READ__", guid + "-__WRIT__"},
			0, "SS-", "000",
		},
		{"ours and Curator's writer", []string{"", guid + "-__WRIT__"}, lock.Curator, "H?", "01"},
		{"kazoo's Lock, and its readers", []string{kazoos, "1f8fad5bd9cb469fa16570867728950e__rlock__"}, 0, "H-", "00"},
		{"kazoo and our candidate", []string{kazoos, selector}, 0, "H-", "01"},
		{"our candidate and kazoo", []string{selector, kazoos}, 0, "H?", "01"},
		{"Curator and our candidate for kazoo", []string{curators, election}, 0, "H-", "01"},
		{"kazoo and our candidate for both", []string{kazoos, selector, election}, 0, "H-", "00"},
		{"our candidate for both, and both", []string{selector, election, curators, kazoos}, 0, "H--", "000"},
		{"an election and a lock", []string{latch, "", latch}, lock.Curator, "HH-", "010"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				sess := w.Session(t, 20*time.Second)
				ctx, leave := context.WithCancel(t.Context())
				var mine <-chan result
				for _, name := range test.nodes {
					if name == "" {
						mine = waits(ctx, w.mutex(lock.Config{Layout: test.layout}).Lock)
					} else {
						w.foreign(sess, name, zk.EphemeralSequential)
					}
				}
				w.wantRoles(test.name, test.roles)
				var groups strings.Builder
				for _, c := range w.line() {
					groups.WriteByte('0' + byte(c.Group))
				}
				if got := groups.String(); got != test.groups {
					t.Errorf("got groups %s, want %s", got, test.groups)
				}
				leave()
				if mine == nil {
					return
				}
				if r := <-mine; r.hold != nil {
					unlock(t, r.hold)
				}
			})
		})
	}
}

// The nodes are those of Curator's InterProcessSemaphoreV2.
func TestPermitsAreInspectedAndRevokedOneByOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		var leases []string
		for _, node := range []zk.Node{
			{Path: "/locks"},
			{Path: path},
			{Path: path + "/leases"},
			{Path: path + "/locks"},
			{Path: path + "/leases/" + guid + "-lease-", Mode: zk.EphemeralSequential},
			{Path: path + "/leases/" + guid + "-lease-", Mode: zk.EphemeralSequential},
			{Path: path + "/locks/" + guid + "-lock-", Mode: zk.EphemeralSequential},
		} {
			c, err := sess.CreateNode(t.Context(), node)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, c.Path)
		}
		w.wantRoles("two permits and one who waits", "SS-")
		other := w.foreign(sess, guid+"-lock-", zk.EphemeralSequential)
		for i, c := range w.line() { // a lock's contender has nothing to do with the permits
			if own := c.Path == other; own != (i == 3) || own != (c.Group == 1) || own && !c.Holder {
				t.Errorf("%d: got %+v", i, c)
			}
		}
		if err := sess.Delete(t.Context(), other, -1); err != nil {
			t.Fatal(err)
		}
		chosen := leases[5]
		r := <-w.revoke(lock.RevokeOptions{
			Grace: time.Second, Force: true, Holder: func(c lock.Contender) bool { return c.Path == chosen },
		})
		if r.err != nil || len(r.list) != 1 || r.list[0].Ending != lock.EndingForced {
			t.Fatalf("got %+v", r)
		}
		w.wantRoles("one permit and one who waits", "S-")
	})
}

// Curator's client makes the permit's node when it is first in line, and waits then.
//
// Promise: 9
func TestPermitThatIsWaitedForIsNotHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess, waiter := w.Session(t, 20*time.Second), w.Session(t, 20*time.Second)
		create := func(sess *zk.Session, dir, name string, mode zk.Mode) {
			t.Helper()
			if _, err := sess.Create(t.Context(), path+dir+name, nil, mode); err != nil {
				t.Fatal(err)
			}
		}
		unlock(t, locked(t, w.mutex(lock.Config{Layout: lock.Kazoo}).Lock)) // makes the path, for good
		create(sess, "/leases", "", zk.Persistent)
		create(sess, "/locks", "", zk.Persistent)
		for held := 1; held < 12; held++ {
			create(sess, "/leases/", guid+"-lease-", zk.EphemeralSequential)
			if held == 1 {
				create(waiter, "/locks/", guid+"-lock-", zk.EphemeralSequential)
				create(sess, "/locks/", guid+"-lock-", zk.EphemeralSequential) // another thread
			}
			all := strings.Repeat("S", held)
			w.wantRoles("the first has made no permit yet", all+"--")
			lease, err := waiter.Create(t.Context(), path+"/leases/"+guid+"-lease-", nil, zk.EphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			w.wantRoles("it waits for the permit that it has made", all+"--")
			if err := waiter.Delete(t.Context(), lease.Path, -1); err != nil {
				t.Fatal(err)
			}
		}
		create(waiter, "/leases/", guid+"-lease-", zk.EphemeralSequential)
		r := <-w.revoke(lock.RevokeOptions{Grace: time.Second, Force: true})
		if r.err != nil || len(r.list) != 11 {
			t.Errorf("got %+v, want the eleven that hold", r)
		}
		w.wantRoles("all who held have lost it", "--")
	})
}

func TestHolderOfPermitsIsToldWhoRevokesThem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s, err := lock.NewSemaphore(w.Client(t, 20*time.Second), path, lock.AgreedLimit(3), lock.SemaphoreConfig{})
		if err != nil {
			t.Fatal(err)
		}
		hold, err := s.Acquire(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		letHoldsAge()
		w.wantRoles("two permits", "SS")
		done := w.revoke(lock.RevokeOptions{Reason: "drain"})
		<-hold.Context().Done()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
			t.Errorf("got %v, want lock.ErrRevoked", cause)
		}
		unlock(t, hold)
		if r := <-done; r.err != nil || len(r.list) != 2 {
			t.Errorf("got %+v, want two permits that were released", r)
		}
	})
}
