package ownserver_test

import (
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
)

func TestServerThatCannotBeExecutedIsReported(t *testing.T) {
	t.Parallel()
	s, err := ownserver.Find(map[string]string{"XDG_STATE_HOME": t.TempDir(), "TZ": "a\x00b"}) // no variable has a NUL
	if err != nil {
		t.Fatal(err)
	}
	s.Started = func() { t.Error("it is said to have started") }
	if err := s.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot start this user's own server") {
		t.Errorf("got %v, want an error that says what failed", err)
	}
}
