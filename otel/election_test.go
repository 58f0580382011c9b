package otel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
)

const electionPath, campaignSpan, leadSpan = "/leader/shard-7", "elect campaign /leader/shard-*",
	"elect lead /leader/shard-*"

func (w *world) candidate() *elect.Candidate {
	w.t.Helper()
	return must[*elect.Candidate](w.t)(
		elect.NewCandidate(w.client(), electionPath, "me", elect.Config{Hooks: w.tracing.Elect()}))
}

func TestCampaignsAndLeadershipsAreSpansOfTheCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		c, other := w.candidate(), w.candidate()
		leads := must[*elect.Leadership](t)(c.Campaign(ctx))
		campaign := w.one(campaignSpan)
		wants(t, campaign, caller, "", 0, "turnstile.election.path=/leader/shard-7",
			"turnstile.election.outcome=elected")
		w.recorder.Reset()

		if _, err := other.TryCampaign(ctx); !errors.Is(err, elect.ErrLed) {
			t.Fatal(err)
		}
		wants(t, w.one(campaignSpan), caller, "", 0, "turnstile.election.outcome=led")
		w.recorder.Reset()

		limited, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if _, err := other.Campaign(limited); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wants(t, w.one(campaignSpan), caller, "canceled", time.Minute, "turnstile.election.outcome=canceled")
		w.recorder.Reset()

		_ = leads.Resign()
		lead := w.one(leadSpan)
		wants(t, lead, caller, "", time.Minute, "turnstile.election.end=released")
		wantLinks(t, lead, campaign)
		if w.recorder.Reset(); len(w.ended(leadSpan)) != 0 {
			t.Error("the leadership has ended twice")
		}
	})
}

func TestLostAndRevokedLeadershipsAreShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, caller := w.caller()
		leads := must[*elect.Leadership](t)(w.candidate().Campaign(ctx))
		pass(time.Second)
		w.ExpireSession(leads.Session().ID())
		<-leads.Context().Done()
		lead := w.one(leadSpan)
		wants(t, lead, caller, "expired", lead.EndTime().Sub(lead.StartTime()), "turnstile.election.end=lost")
		_ = leads.Resign()
		w.recorder.Reset()

		leads = must[*elect.Leadership](t)(w.candidate().Campaign(ctx))
		client := w.client()
		go func() {
			_, _ = lock.Revoke(t.Context(), client, electionPath, lock.RevokeOptions{Grace: time.Hour})
		}()
		<-leads.Context().Done()
		pass(4 * time.Second)
		_ = leads.Resign()
		lead = w.one(leadSpan)
		lasted := lead.EndTime().Sub(lead.StartTime())
		wants(t, lead, caller, "", lasted, "turnstile.election.end=revoked")
		wantEvents(t, lead, "revoked "+(lasted-4*time.Second).String())
	})
}

func TestDeadlockOfACampaignIsAnEventAndAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := must[*elect.Candidate](t)(elect.NewCandidate(w.client(), electionPath, "me", elect.Config{
			Hooks: w.tracing.Elect(), OnDeadlock: lock.FailWait,
		}))
		leads := must[*elect.Leadership](t)(c.Campaign(t.Context()))
		w.recorder.Reset()
		if _, err := c.Campaign(leads.Context()); !errors.Is(err, lock.ErrDeadlock) {
			t.Fatal(err)
		}
		campaign := w.one(campaignSpan)
		wants(t, campaign, nil, "deadlock", campaign.EndTime().Sub(campaign.StartTime()),
			"turnstile.election.outcome=deadlock")
		if events := campaign.Events(); len(events) != 1 || events[0].Name != "deadlock" {
			t.Errorf("got %v", events)
		}
		_ = leads.Resign()
	})
}
