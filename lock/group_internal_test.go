package lock

// Who comes to a group that the last waiter leaves.

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// The attempt of the group takes a moment to end, and all who wait in it then get the error of its end.
func TestGroupThatIsGivenUpAdmitsNobody(t *testing.T) {
	t.Parallel()
	q := &localQueue{base: new(base)}
	w, _, g := q.enter(nil)
	if joined, _, begun := q.enter(nil); begun != nil || joined.group != g {
		t.Fatal("the second caller has not joined the first")
	}
	attempt, giveUp := context.WithCancel(t.Context())
	g.giveUp = giveUp
	gone, leave := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	leave(why)
	q.cancel(gone, g.waiting[1])
	if attempt.Err() != nil || g.over {
		t.Error("given up although one waits")
	}
	q.cancel(gone, w)
	if a := <-w.answer; !errors.Is(a.err, why) {
		t.Errorf("got %v, want the context's cause", a.err)
	}
	if attempt.Err() == nil {
		t.Error("not given up although no goroutine waits")
	}
	if next, _, begun := q.enter(nil); begun == nil || next.group == g {
		t.Error("the next caller has joined the group that was given up")
	}
}

// The last waiter has left before the group stands in line: a contender would wait for no goroutine.
func TestGroupWithoutWaitersDoesNotStand(t *testing.T) {
	t.Parallel()
	q := &localQueue{base: new(base)}
	q.contend = func(context.Context, *group) func(*zk.Session) (*line.Own, error) {
		t.Fatal("it stands in line")
		return nil
	}
	w, _, g := q.enter(nil)
	gone, leave := context.WithCancel(t.Context())
	leave()
	q.cancel(gone, w)
	g.stand()
	if next, _, begun := q.enter(nil); begun == nil || next.group == g {
		t.Error("the next caller has joined the group that is over")
	}
}
