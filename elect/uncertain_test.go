package elect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A leader whose server answers, but has no quorum, is told. The next one leads when the leader has had the margin to
// stop.
//
// Promise: 2
func TestUncertainLeaderIsToldAndFollowed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leader := win(t, w.candidate("a", elect.Config{}))
		next := campaign(t.Context(), w.candidate("b", elect.Config{}))
		time.Sleep(2 * timeout) // in a bubble: no time passes
		w.Control(zktest.WithoutQuorum(leader.Session().ID()))
		isolated := time.Now()
		<-leader.Context().Done()
		told := time.Now()
		if cause := context.Cause(leader.Context()); !errors.Is(cause, zk.ErrUncertain) ||
			told.Sub(isolated) > timeout/2 {
			t.Errorf("told %v after %v, want zk.ErrUncertain", cause, told.Sub(isolated))
		}
		w.Control(nil)
		waits(t, next)
		l := won(t, next)
		if after := time.Since(told); after < timeout/4 || after > timeout/2 {
			t.Errorf("the next one led %v after the leader was told", after)
		}
		if err := leader.Resign(); !errors.Is(err, zk.ErrUncertain) {
			t.Errorf("Resign: %v, want zk.ErrUncertain", err)
		}
		if leader.Session().Err() != nil || l.Token() <= leader.Token() {
			t.Errorf("session: %v; tokens %d, then %d", leader.Session().Err(), leader.Token(), l.Token())
		}
		resign(t, l)
	})
}
