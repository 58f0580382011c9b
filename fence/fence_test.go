package fence_test

import (
	"errors"
	"math"
	"testing"

	"github.com/seed-a3166700/turnstile/fence"
)

// Promise: 12
func TestOnlyPlainPositiveNumbersAreTokens(t *testing.T) {
	t.Parallel()
	for _, token := range []fence.Token{1, 4096, math.MaxInt64} {
		if got, err := fence.ParseToken(fence.FormatToken(token)); got != token || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, token)
		}
	}
	for _, s := range []string{
		"", "0", "-1", "+1", "01", " 1", "1 ", "1\n", "0x10", "1_000", "1e3", "9223372036854775808", "١",
	} {
		if got, err := fence.ParseToken(s); !errors.Is(err, fence.ErrBadToken) {
			t.Errorf("parse %q: got %d, %v, want ErrBadToken", s, got, err)
		}
	}
}

// wantStale fails the test unless err is a *StaleError with the two tokens.
func wantStale(t *testing.T, err error, token, newest fence.Token) {
	t.Helper()
	stale, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, fence.ErrStale) || stale.Token != token || stale.Newest != newest {
		t.Errorf("got %v, want token %d refused for %d", err, token, newest)
	}
}
