package elect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/elect"
)

func TestTryCampaignWinsWhereNobodyStandsAndIsRefusedAtOnceElsewhere(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.candidate("a", elect.Config{Layout: layout}), w.candidate("b", elect.Config{Layout: layout})
				l, err := a.TryCampaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range []*elect.Candidate{a, b} {
					if _, err := c.TryCampaign(t.Context()); !errors.Is(err, elect.ErrLed) {
						t.Errorf("%s, beside a leader: got %v, want elect.ErrLed", c.ID(), err)
					}
				}
				list, err := b.Participants(t.Context())
				if err != nil || len(list) != 1 {
					t.Errorf("got %v, %v in line after refusals, want the leader alone", list, err)
				}
				if err := l.ResignWait(t.Context()); err != nil {
					t.Fatal(err)
				}
				next, err := b.TryCampaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if next.Token() <= l.Token() {
					t.Errorf("token %d after %d", next.Token(), l.Token())
				}
			})
		})
	}
}

// Of several that try at the same time at most one leads, and the others leave no node in the line.
//
// Promise: 1
func TestOfManyWhoTryAtOnceAtMostOneLeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		won := make(chan string, 10)
		for i := range cap(won) {
			c := w.candidate(string(rune('a'+i)), elect.Config{})
			go func() {
				if _, err := c.TryCampaign(t.Context()); err == nil {
					won <- c.ID()
				} else if !errors.Is(err, elect.ErrLed) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		close(won)
		var leaders []string
		for id := range won {
			leaders = append(leaders, id)
		}
		if ids := w.ids(); len(leaders) > 1 || !slices.Equal(ids, append([]string{}, leaders...)) {
			t.Errorf("leaders %v, in line %v", leaders, ids)
		}
	})
}

func TestTryCampaignEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if _, err := w.candidate("a", elect.Config{}).TryCampaign(ctx); !errors.Is(err, gone) {
			t.Errorf("got %v, want the context's cause", err)
		}
	})
}
