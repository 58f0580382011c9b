package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// silences are the ways in which a server can become silent for a session.
var silences = map[string]func(ctx context.Context, srv *zktest.Server, session int64){
	"Cut":      func(_ context.Context, srv *zktest.Server, session int64) { srv.Cut(session) },
	"HalfOpen": func(_ context.Context, srv *zktest.Server, session int64) { srv.HalfOpen(session) },
	"Mute":     func(_ context.Context, srv *zktest.Server, session int64) { srv.Mute(session) },
	"Frozen":   func(_ context.Context, srv *zktest.Server, session int64) { srv.Freeze(session) },
	"Slow":     func(_ context.Context, srv *zktest.Server, session int64) { srv.Delay(time.Hour, session) },
	"Flapping": func(ctx context.Context, srv *zktest.Server, session int64) {
		flap := time.NewTicker(100 * time.Millisecond)
		go func() {
			defer flap.Stop()
			for ctx.Err() == nil {
				srv.Drop(session)
				srv.HalfOpen(session)
				select {
				case <-flap.C:
				case <-ctx.Done():
				}
			}
		}()
	},
}

func TestSessionEndsHereBeforeItEndsAtTheServer(t *testing.T) {
	t.Parallel()
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range soak.Pick[uint64](16, 40) {
				synctest.Test(t, func(t *testing.T) { endFirst(t, rand.New(rand.NewPCG(seed, 0)), silence) })
			}
		})
	}
}

// endFirst silences the server at a random time for a busy client with a random session timeout, and compares when
// each side considers the session ended.
func endFirst(t *testing.T, random *rand.Rand, silence func(context.Context, *zktest.Server, int64)) {
	t.Helper()
	ctx := t.Context()
	tick := time.Duration(10+random.IntN(2000)) * time.Millisecond
	timeout := 2*tick + time.Duration(random.IntN(20_000))*time.Millisecond
	var n zktest.Net
	srv := zktest.Run(t, zktest.On(&n), zktest.Tick(tick), zktest.SessionTimeouts(2*tick, time.Hour))
	srv.Delay(time.Duration(random.IntN(20)) * time.Millisecond / 10)

	observer, s := srv.Session(t, time.Hour), srv.Session(t, timeout)
	if got := s.Timeout(); got != timeout {
		t.Fatalf("got timeout %v, want %v", got, timeout)
	}
	if _, err := s.Create(ctx, "/mine", nil, zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	_, _, w, err := observer.GetW(ctx, "/mine")
	if err != nil {
		t.Fatal(err)
	}

	for range random.IntN(10) {
		<-time.After(time.Duration(random.Int64N(int64(timeout))))
		if _, _, err := s.Get(ctx, "/mine"); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Duration(random.Int64N(int64(2 * timeout))))
	if s.Context().Err() != nil {
		t.Fatalf("idle session ended: %v", context.Cause(s.Context()))
	}
	silence(ctx, srv, s.ID())
	silent := time.Now()
	<-s.Context().Done()
	here := time.Now()
	if cause := context.Cause(s.Context()); !errors.Is(cause, zk.ErrLost) {
		t.Errorf("got cause %v, want %v", cause, zk.ErrLost)
	}
	if limit := silent.Add(timeout); here.After(limit) {
		t.Errorf("client noticed the loss after %v of silence, want at most %v", here.Sub(silent), timeout)
	}
	if _, err := w.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if there := time.Now(); !here.Before(there) {
		t.Errorf("timeout %v, tick %v: server expired the session %v before the client gave it up",
			timeout, tick, here.Sub(there))
	}
}

func TestSessionThatIsReachedOnceInAWhileLives(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		s := srv.Session(t, 10*time.Second)
		if _, err := s.Create(t.Context(), "/mine", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		for i := range 50 { // four seconds of silence; the timeout allows seven and a half
			srv.HalfOpen()
			<-time.After(4 * time.Second)
			srv.Heal()
			<-time.After(2 * time.Second)
			if s.Context().Err() != nil {
				t.Fatalf("round %d: session ended: %v", i, context.Cause(s.Context()))
			}
		}
		if _, _, err := s.Get(t.Context(), "/mine"); err != nil {
			t.Error(err)
		}
	})
}

func TestNothingOfAnEndedSessionIsDoneUnderTheNext(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var n zktest.Net
			srv := zktest.Run(t, zktest.On(&n))
			judge, client := srv.Session(t, time.Hour), srv.Client(t, 5*time.Second)
			for round := range 10 {
				s, err := client.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				srv.HalfOpen(s.ID())
				var futures []*zk.Future[zk.Created]
				for i := range 10 { // some are sent, some wait for a connection
					b := s.Batch()
					futures = append(futures, b.Create(fmt.Sprintf("/%d-%d", round, i), nil, zk.Ephemeral))
					b.Send()
					<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
				}
				if random.IntN(2) == 0 {
					srv.ExpireSession(s.ID())
				}
				srv.Heal()
				<-time.After(10 * time.Second)
				for i, f := range futures {
					_, err := f.Get(t.Context())
					stat, found, checkErr := judge.Exists(t.Context(), fmt.Sprintf("/%d-%d", round, i))
					switch {
					case checkErr != nil:
						t.Fatal(checkErr)
					case found && stat.EphemeralOwner != s.ID():
						t.Errorf("got owner %x of a node that session %x created", stat.EphemeralOwner, s.ID())
					case found && err != nil && zk.OutcomeOf(err) != zk.Unknown,
						!found && err == nil && s.Context().Err() == nil:
						t.Errorf("node exists: %t; client's error: %v", found, err)
					}
				}
			}
		})
	}
}
