package barrier

import (
	"errors"
	"testing"
)

// Promise: 13
func TestOutcomesSinceThe256thLastRoundWithLossesAreKept(t *testing.T) {
	t.Parallel()
	r := newRecord(RoundsConfig{Parties: 2})
	play := func(lost int) { r = r.next(Outcome{Round: r.Round, Lost: lost}, r.Behind) }
	want := func(round int64, want Outcome, wantErr error) {
		t.Helper()
		if o, err := r.outcome(round); o != want || !errors.Is(err, wantErr) {
			t.Errorf("round %d: got %v, %v, want %v, %v", round, o, err, want, wantErr)
		}
	}
	play(1)
	play(0)
	for range maxOutcomes - 1 {
		play(2)
	}
	want(1, Outcome{Round: 1, Lost: 1}, nil)
	want(2, Outcome{Round: 2}, nil)
	play(2)
	want(1, Outcome{}, ErrForgotten)
	want(2, Outcome{Round: 2}, nil)
	want(3, Outcome{Round: 3, Lost: 2}, nil)
	play(2)
	want(3, Outcome{}, ErrForgotten)
	want(4, Outcome{Round: 4, Lost: 2}, nil)
}
