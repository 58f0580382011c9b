package otel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/otel"
	"github.com/seed-a3166700/turnstile/zk"
)

const lockPath, acquireSpan, holdSpan = "/jobs/import-42", "lock acquire /jobs/import-*", "lock hold /jobs/import-*"

// mutex returns a mutex of its own client, with spans.
func (w *world) mutex(cfg lock.Config) *lock.Mutex {
	w.t.Helper()
	cfg.Hooks = w.tracing.Lock()
	return must[*lock.Mutex](w.t)(lock.NewMutex(w.client(), lockPath, cfg))
}

// other returns a mutex of its own client, without spans.
func (w *world) other() *lock.Mutex {
	w.t.Helper()
	return must[*lock.Mutex](w.t)(lock.NewMutex(w.client(), lockPath, lock.Config{}))
}

func TestAcquisitionAndHoldAreSpansOfTheCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		hold := must[*lock.Hold](t)(w.mutex(lock.Config{}).Lock(ctx))
		pass(3 * time.Second)
		_ = hold.Unlock()
		acquire, held := w.one(acquireSpan), w.one(holdSpan)
		wants(t, acquire, caller, "", 0, "turnstile.lock.path=/jobs/import-42", "turnstile.lock.kind=exclusive",
			"turnstile.lock.outcome=acquired", "turnstile.lock.how=server",
			fmt.Sprintf("turnstile.lock.token=%d", hold.Token()))
		wantEvents(t, acquire)
		wants(t, held, caller, "", 3*time.Second, "turnstile.lock.end=released", "turnstile.lock.path=/jobs/import-42")
		wantLinks(t, held, acquire)
		if acquire.SpanKind().String() != "client" || held.SpanKind().String() != "internal" {
			t.Errorf("the kinds are %v and %v", acquire.SpanKind(), held.SpanKind())
		}
	})
}

func TestWaitingIsPartOfTheSpan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		other := must[*lock.Hold](t)(w.other().Lock(t.Context()))
		m := w.mutex(lock.Config{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if hold, err := m.Lock(ctx); err != nil {
				t.Error(err)
			} else {
				_ = hold.Unlock()
			}
		}()
		pass(2 * time.Second)
		if n := w.tracing.Open(); n != 1 {
			t.Errorf("%d spans are open while one waits", n)
		}
		_ = other.Unlock()
		<-done
		acquire := w.one(acquireSpan)
		wants(t, acquire, caller, "", 2*time.Second, "turnstile.lock.outcome=acquired", "turnstile.lock.how=server")
		wantEvents(t, acquire, "enqueued 0s", "first 2s")
	})
}

func TestHandOffAndRetentionAreNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{Retain: time.Minute})
		first := must[*lock.Hold](t)(m.Lock(t.Context()))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if hold, err := m.Lock(t.Context()); err != nil {
				t.Error(err)
			} else {
				_ = hold.Unlock()
			}
		}()
		pass(time.Second)
		_ = first.Unlock()
		<-done
		_ = must[*lock.Hold](t)(m.Lock(t.Context())).Unlock()
		acquired := w.ended(acquireSpan)
		if len(acquired) != 3 {
			t.Fatalf("got %d spans", len(acquired))
		}
		wants(t, acquired[0], nil, "", 0, "turnstile.lock.how=server")
		wants(t, acquired[1], nil, "", time.Second, "turnstile.lock.how=handoff")
		wantEvents(t, acquired[1], "enqueued 0s")
		wants(t, acquired[2], nil, "", 0, "turnstile.lock.how=retained")
		for i, held := range w.ended(holdSpan) {
			wantLinks(t, held, acquired[i])
		}
	})
}

func TestFailedAcquisitionsSayWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{})
		other := must[*lock.Hold](t)(w.other().Lock(t.Context()))
		if _, err := m.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Fatal(err)
		}
		wants(t, w.one(acquireSpan), nil, "", 0, "turnstile.lock.outcome=held")
		w.recorder.Reset()

		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wants(t, w.one(acquireSpan), nil, "canceled", time.Minute, "turnstile.lock.outcome=canceled")
		wantEvents(t, w.one(acquireSpan), "enqueued 0s")
		w.recorder.Reset()
		_ = other.Unlock()

		client := w.client()
		_ = client.Close()
		closed := must[*lock.Mutex](t)(lock.NewMutex(client, lockPath, lock.Config{Hooks: w.tracing.Lock()}))
		if _, err := closed.Lock(t.Context()); !errors.Is(err, zk.ErrClosed) {
			t.Fatal(err)
		}
		wants(t, w.one(acquireSpan), nil, "error", 0, "turnstile.lock.outcome=error")
		if len(w.ended(holdSpan)) > 0 {
			t.Error("there is a hold")
		}
	})
}

func TestDeadlockIsAnEventAndAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m := w.mutex(lock.Config{OnDeadlock: lock.FailWait})
		hold := must[*lock.Hold](t)(m.Lock(t.Context()))
		w.recorder.Reset()
		if _, err := m.Lock(hold.Context()); !errors.Is(err, lock.ErrDeadlock) {
			t.Fatal(err)
		}
		acquire := w.one(acquireSpan)
		wants(t, acquire, nil, "deadlock", acquire.EndTime().Sub(acquire.StartTime()),
			"turnstile.lock.outcome=deadlock")
		if n := len(acquire.Events()); n != 2 || acquire.Events()[1].Name != "deadlock" {
			t.Errorf("got %v", acquire.Events())
		}
		_ = hold.Unlock()
	})
}

func TestLossAndRequestsToStopAreShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		hold := must[*lock.Hold](t)(w.mutex(lock.Config{}).Lock(ctx))
		pass(time.Second)
		w.ExpireSession(hold.Session().ID())
		<-hold.Context().Done()
		held := w.one(holdSpan)
		wants(t, held, caller, "expired", held.EndTime().Sub(held.StartTime()), "turnstile.lock.end=lost")
		_ = hold.Unlock()
		if len(w.ended(holdSpan)) != 1 {
			t.Error("the hold has ended twice")
		}
		w.recorder.Reset()

		hold = must[*lock.Hold](t)(w.mutex(lock.Config{}).Lock(ctx))
		client := w.client()
		go func() {
			_, _ = lock.Revoke(t.Context(), client, lockPath, lock.RevokeOptions{Reason: "upgrade", Grace: time.Hour})
		}()
		<-hold.Context().Done()
		pass(4 * time.Second)
		_ = hold.Unlock()
		held = w.one(holdSpan)
		lasted := held.EndTime().Sub(held.StartTime())
		wants(t, held, caller, "", lasted, "turnstile.lock.end=revoked")
		wantEvents(t, held, "revoked "+(lasted-4*time.Second).String())
		w.recorder.Reset()

		hold = must[*lock.Hold](t)(w.mutex(lock.Config{OnSuspend: lock.EndHold}).Lock(ctx))
		pass(time.Second)
		w.Drop(hold.Session().ID())
		<-hold.Context().Done()
		pass(4 * time.Second)
		_ = hold.Unlock()
		held = w.one(holdSpan)
		lasted = held.EndTime().Sub(held.StartTime())
		wants(t, held, caller, "", lasted, "turnstile.lock.end=suspended")
		wantEvents(t, held, "suspended "+(lasted-4*time.Second).String())
	})
}

// Of what is not sampled nothing is kept, and nothing is recorded.
func TestUnsampledSpansAreNotKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()), sdk.WithSpanProcessor(w.recorder))
		w.tracing = otel.New(otel.Config{TracerProvider: provider})
		other := must[*lock.Hold](t)(w.other().Lock(t.Context()))
		m := w.mutex(lock.Config{})
		got := make(chan *lock.Hold)
		go func() {
			hold, err := m.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- hold
		}()
		synctest.Wait()
		if n := w.tracing.Open(); n != 0 {
			t.Errorf("%d spans are kept while one waits", n)
		}
		_ = other.Unlock()
		hold := <-got
		if n := w.tracing.Open(); n != 0 {
			t.Errorf("%d spans are kept while one holds", n)
		}
		_ = hold.Unlock()
		if n := len(w.recorder.Ended()); n != 0 {
			t.Errorf("%d spans were recorded", n)
		}
	})
}

// The hooks join with others.
func TestHooksJoinWithOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		told := 0
		own := lock.Hooks{Acquired: func(context.Context, lock.Event) { told++ }}
		names := otel.New(otel.Config{
			TracerProvider: w.provider, Names: func(string) string { return "mine" },
		})
		m := must[*lock.Mutex](t)(lock.NewMutex(w.client(), lockPath, lock.Config{
			Hooks: own.And(w.tracing.Lock()).And(names.Lock()),
		}))
		_ = must[*lock.Hold](t)(m.Lock(t.Context())).Unlock()
		w.one(acquireSpan)
		w.one("lock acquire mine")
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}
