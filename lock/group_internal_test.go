package lock

// Who comes to a group that the last waiter leaves.

import (
	"context"
	"errors"
	"testing"
)

// The attempt of the group takes a moment to end, and all who wait in it then get the error of its end.
func TestGroupThatIsGivenUpAdmitsNobody(t *testing.T) {
	t.Parallel()
	q := &localQueue{base: new(base)}
	w, _, g := q.enter()
	if joined, _, begun := q.enter(); begun != nil || joined.group != g {
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
		t.Error("not given up although nobody waits")
	}
	if next, _, begun := q.enter(); begun == nil || next.group == g {
		t.Error("the next caller has joined the group that was given up")
	}
}
