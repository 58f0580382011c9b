package lock

import (
	"context"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A session that ends tells its state before its context, and a listener to the state must not be quicker than the
// cause.
func TestEndOfTheSessionIsNotTakenForALostConnection(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		m, err := NewMutex(srv.Client(t, 20*time.Second), "/locks/report", Config{})
		if err != nil {
			t.Fatal(err)
		}
		hold, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := srv.Client(t, 20*time.Second)
		ended, err := other.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		changed := make(chan struct{})
		close(changed)
		for _, row := range []struct {
			sess *zk.Session
			want error
		}{{ended, nil}, {hold.Session(), ErrSuspended}} {
			suspended(hold.grant.Ownership, row.sess, zk.Connected, changed)
			if cause := context.Cause(hold.Context()); cause != row.want { //nolint:errorlint // the very error
				t.Errorf("got cause %v, want %v", cause, row.want)
			}
		}
		if err := hold.Unlock(); err != nil {
			t.Error(err)
		}
	})
}
