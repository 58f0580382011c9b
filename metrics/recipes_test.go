package metrics_test

// The metrics of elections, queues and clients.

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const electionPath, queuePath = "/elections/report", "/queues/mail"

func (w *world) candidate(client *zk.Client, id string, hooks elect.Hooks) *elect.Candidate {
	w.t.Helper()
	return must[*elect.Candidate](w.t)(elect.NewCandidate(client, electionPath, id, elect.Config{Hooks: hooks}))
}

func TestLeadershipsAreCountedAndMeasured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.client()
		c := w.candidate(client, "a", w.metrics.Elect())
		other := must[*elect.Leadership](t)(w.candidate(w.client(), "b", elect.Hooks{}).Campaign(t.Context()))
		if _, err := c.TryCampaign(t.Context()); !errors.Is(err, elect.ErrLed) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := c.Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		w.want(map[string]float64{
			"election_leading{election=/elections/report}":     0,
			"election_terms_total{election=/elections/report}": 0,
		})
		_ = other.Resign()

		l := must[*elect.Leadership](t)(c.Campaign(t.Context()))
		w.want(map[string]float64{"election_leading{election=/elections/report}": 1})
		time.Sleep(3 * time.Second)
		_ = l.Resign()
		w.want(map[string]float64{"election_leading{election=/elections/report}": 0})

		l = must[*elect.Leadership](t)(c.Campaign(t.Context()))
		time.Sleep(time.Second)
		w.ExpireSession(l.Session().ID())
		<-l.Context().Done()
		w.want(map[string]float64{"election_leading{election=/elections/report}": 0})
		_ = l.Resign()

		l = must[*elect.Leadership](t)(c.Campaign(t.Context()))
		go func() {
			<-l.Context().Done()
			_ = l.Resign()
		}()
		if _, err := lock.Revoke(t.Context(), w.client(), electionPath, lock.RevokeOptions{}); err != nil {
			t.Error(err)
		}
		w.want(map[string]float64{
			"election_leading{election=/elections/report}":                                 0,
			"election_terms_total{election=/elections/report}":                             3,
			"election_campaign_seconds_count{election=/elections/report,outcome=elected}":  3,
			"election_campaign_seconds_count{election=/elections/report,outcome=led}":      1,
			"election_campaign_seconds_count{election=/elections/report,outcome=canceled}": 1,
			"election_campaign_seconds_sum{election=/elections/report,outcome=canceled}":   2,
			"election_term_seconds_count{election=/elections/report,end=resigned}":         1,
			"election_term_seconds_sum{election=/elections/report,end=resigned}":           3,
			"election_term_seconds_count{election=/elections/report,end=lost}":             1,
			"election_term_seconds_count{election=/elections/report,end=revoked}":          1,
		})
	})
}

func TestDeliveriesAreCountedAndMeasured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.client()
		q := must[*queue.Queue](t)(queue.New(client, queuePath, queue.Config{Hooks: w.metrics.Queue()}))
		defer q.Close(t.Context())
		batch := make([]queue.Message, 4)
		if _, err := q.PutBatch(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		var items []*queue.Item
		for range batch {
			items = append(items, must[*queue.Item](t)(q.Take(t.Context())))
		}
		time.Sleep(2 * time.Second)
		w.want(map[string]float64{
			"queue_puts_total{queue=/queues/mail}":               4,
			"queue_in_flight{queue=/queues/mail}":                4,
			"queue_delay_seconds_count{queue=/queues/mail}":      4,
			"queue_delay_seconds_sum{queue=/queues/mail}":        20,
			"queue_items_total{queue=/queues/mail,result=done}":  0,
			"queue_processing_seconds_count{queue=/queues/mail}": 0,
		})
		for i, finish := range []func(context.Context) error{
			func(ctx context.Context) error { return items[0].Done(ctx) },
			func(ctx context.Context) error { return items[1].Return(ctx, time.Hour) },
			func(ctx context.Context) error { return items[2].Reject(ctx, "bad") },
		} {
			if err := finish(t.Context()); err != nil {
				t.Errorf("item %d: %v", i, err)
			}
		}
		w.want(map[string]float64{"queue_in_flight{queue=/queues/mail}": 1})
		w.ExpireSession(items[3].Session().ID())
		<-items[3].Context().Done()
		w.want(map[string]float64{
			"queue_in_flight{queue=/queues/mail}":                  0,
			"queue_items_total{queue=/queues/mail,result=done}":    1,
			"queue_items_total{queue=/queues/mail,result=retried}": 1,
			"queue_items_total{queue=/queues/mail,result=dead}":    1,
			"queue_items_total{queue=/queues/mail,result=lost}":    1,
			"queue_processing_seconds_count{queue=/queues/mail}":   4,
		})
	})
}

func TestRequestsConnectionsAndSessionsAreCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.client()
		s := must[*zk.Session](t)(client.Session(t.Context()))
		w.want(map[string]float64{
			"client_connected{}":                               1,
			"client_session_timeout_seconds{which=requested}":  16,
			"client_session_timeout_seconds{which=negotiated}": 16,
			"client_certain_seconds{}":                         -1,
		})
		if _, err := s.Create(t.Context(), "/a", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Get(t.Context(), "/none"); !errors.Is(err, zk.NoNode) {
			t.Fatal(err)
		}
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op == zktest.OpGetData && r.Nth == 1 {
				return zktest.DropReply
			}
			return zktest.Pass
		})
		if _, _, err := client.Get(t.Context(), "/a"); err != nil { // it asks again
			t.Fatal(err)
		}
		w.Control(nil)
		time.Sleep(time.Second)
		w.want(map[string]float64{
			"client_connected{}":                                     1,
			"client_requests_total{code=ok,op=create}":               1,
			"client_request_seconds_count{op=create}":                1,
			"client_requests_total{code=connection_lost,op=getData}": 1,
			"client_requests_total{code=ok,op=getData}":              1,
			"client_disconnects_total{reason=network}":               1,
			"client_requests_total{code=no_node,op=getData}":         1,
			"client_sessions_total{end=expired}":                     0,
		})
		w.ExpireSession(s.ID())
		<-s.Context().Done()
		time.Sleep(time.Second)
		w.want(map[string]float64{
			"client_connected{}":                 1,
			"client_sessions_total{end=expired}": 1,
		})
		_ = client.Close()
		w.want(map[string]float64{
			"client_connected{}":                      0,
			"client_sessions_total{end=closed}":       1,
			"client_disconnects_total{reason=closed}": 1,
		})
	})
}

func TestCertaintyIsShownWhileSomethingIsOwned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.told(lock.Config{}), mutex(t, w.client(), "/locks/second", lock.Config{})
		certain := func() float64 {
			synctest.Wait()
			v, ok := values(t, w.reg)["turnstile_client_certain_seconds{}"]
			if !ok {
				return -1
			}
			return v
		}
		holds := []*lock.Hold{locked(t, first.Lock), locked(t, second.Lock)}
		time.Sleep(time.Minute)
		if got := certain(); got < 4 || got > 16 {
			t.Errorf("certain for %v s, want a part of %v", got, sessionTimeout)
		}
		if got := values(t, w.reg)["turnstile_client_proofs_total{result=ok}"]; got < 30 {
			t.Errorf("%v proofs in a minute", got)
		}
		w.Cut(holds[0].Session().ID())
		time.Sleep(5 * time.Second)
		if got := certain(); got < 1 || got > 11 {
			t.Errorf("certain for %v s, want what is left to the one without a connection", got)
		}
		w.Heal()
		time.Sleep(5 * time.Second)
		_ = holds[0].Unlock()
		time.Sleep(5 * time.Second)
		if got := certain(); got < 4 || got > 16 {
			t.Errorf("certain for %v s, want a part of %v", got, sessionTimeout)
		}
		_ = holds[1].Unlock()
		time.Sleep(5 * time.Second)
		if got := certain(); got >= 0 {
			t.Errorf("certain for %v s, want nothing after the last unlock", got)
		}

		h := locked(t, first.Lock)
		time.Sleep(5 * time.Second)
		w.ExpireSession(h.Session().ID())
		time.Sleep(5 * time.Second)
		if got := certain(); got >= 0 {
			t.Errorf("certain for %v s, want nothing after the session's end", got)
		}
	})
}

// useAll uses everything that has metrics.
func useAll(w *world) {
	w.t.Helper()
	ctx, client := w.t.Context(), w.client()
	m := mutex(w.t, client, lockPath, lock.Config{Hooks: w.metrics.Lock()})
	h := locked(w.t, m.Lock)
	if _, err := m.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
		w.t.Error(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if next, err := m.Lock(ctx); err == nil {
			_ = next.Unlock()
		}
	})
	synctest.Wait()
	_ = h.Unlock()
	wg.Wait()
	l := must[*elect.Leadership](w.t)(w.candidate(client, "a", w.metrics.Elect()).Campaign(ctx))
	_ = l.Resign()
	_ = must[*elect.Leadership](w.t)(w.candidate(client, "a", w.metrics.Elect()).Campaign(ctx))
	q := must[*queue.Queue](w.t)(queue.New(client, queuePath, queue.Config{Hooks: w.metrics.Queue()}))
	if _, err := q.Put(ctx, queue.Message{}); err != nil {
		w.t.Error(err)
	}
	if err := must[*queue.Item](w.t)(q.Take(ctx)).Done(ctx); err != nil {
		w.t.Error(err)
	}
	w.Drop()
	time.Sleep(5 * time.Second)
	if err := q.Close(ctx); err != nil {
		w.t.Error(err)
	}
}
