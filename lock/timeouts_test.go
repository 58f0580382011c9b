package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A restart is a server that starts again and grants timeouts up to a limit.
type restart struct {
	limit time.Duration
	lost  bool // the replies to the holder's handshakes are lost until the next restart
}

// The holder asks for 30 s. After the last restart it reaches the server no more.
//
// Promise: 2
func TestHoldersDoNotOverlapWhereAServerHasOtherLimitsAfterARestart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first    time.Duration
		restarts []restart
	}{
		"shrink": {30 * time.Second, []restart{{4 * time.Second, true}}},
		"shrink and another restart": {
			30 * time.Second, []restart{{4 * time.Second, true}, {2 * time.Second, false}},
		},
		"grow": {8 * time.Second, []restart{{30 * time.Second, false}, {30 * time.Second, false}}},
		"grow, and the reply is lost": {
			8 * time.Second, []restart{{30 * time.Second, true}, {4 * time.Second, false}},
		},
		"grow and shrink": {8 * time.Second, []restart{{30 * time.Second, false}, {4 * time.Second, true}}},
		"as before":       {8 * time.Second, []restart{{8 * time.Second, false}}},
		"as before, but replies are lost": {
			8 * time.Second, []restart{{8 * time.Second, true}, {8 * time.Second, false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, certificates := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					overlap(t, test.first, test.restarts, certificates)
				})
			}
		})
	}
}

func overlap(t *testing.T, first time.Duration, restarts []restart, certificates bool) {
	t.Helper()
	var net zktest.Net
	srv := zktest.Run(t, zktest.On(&net), zktest.Durable(), zktest.Tick(time.Second),
		zktest.SessionTimeouts(time.Second, first))
	cfg := srv.Config(30 * time.Second)
	cfg.NoCertificates = !certificates
	holder, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	hold, err := lockMutex(t.Context(), holder, lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan time.Time, 1)
	context.AfterFunc(hold.Context(), func() { told <- time.Now() })
	session, other := hold.Session().ID(), srv.Client(t, 2*time.Second)
	acquired := make(chan time.Time, 1)
	go func() {
		for {
			h, err := lockMutex(t.Context(), other, lock.Config{})
			if err == nil {
				acquired <- time.Now()
				_ = h.UnlockWait(t.Context())
				return
			}
			if t.Context().Err() != nil {
				return
			}
		}
	}()
	for _, r := range restarts {
		time.Sleep(3*time.Second + 100*time.Millisecond)
		srv.Control(func(q zktest.Request) zktest.Fault {
			if q.Op == zktest.OpConnect && q.Session == session && r.lost {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		srv.Restart(zktest.SessionTimeouts(time.Second, r.limit))
		time.Sleep(time.Second)
	}
	srv.Cut(session)
	if at, ended := <-acquired, <-told; at.Before(ended) {
		t.Errorf("with certificates %t: both hold for %v", certificates, ended.Sub(at))
	}
}

// Limits that are as before end no hold, however often the server is restarted.
//
// Promise: 2
func TestRestartsDoNotEndAHoldWhereLimitsAreEqual(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		limits := zktest.SessionTimeouts(time.Second, 8*time.Second)
		srv := zktest.Run(t, zktest.On(&net), zktest.Durable(), limits)
		hold, err := lockMutex(t.Context(), srv.Client(t, 30*time.Second), lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(time.Second)
			srv.Restart(limits)
		}
		if err := hold.Context().Err(); err != nil {
			t.Errorf("got %v, want the hold to last", err)
		}
	})
}
