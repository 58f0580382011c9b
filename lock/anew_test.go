package lock_test

// Nodes that others delete, and make anew under the same name.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// An operator deletes the node before it is watched, and another client has made the next one by then.
func TestSimpleHoldIsNotTakenForTheOneThatCameAfterIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.simple().Lock)
		waiting := waits(t.Context(), w.simple().Lock)
		if err := w.Session(t, 20*time.Second).Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
		next := got(t, waiting)
		letHoldsAge()
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrDeleted) {
			t.Errorf("the context of the hold whose node is gone: got %v, want lock.ErrDeleted", cause)
		}
		if err := hold.Unlock(); !errors.Is(err, lock.ErrDeleted) {
			t.Errorf("Unlock: got %v, want lock.ErrDeleted", err)
		}
		letHoldsAge()
		if err := next.Context().Err(); err != nil {
			t.Errorf("the next hold has ended: %v", context.Cause(next.Context()))
		}
		unlock(t, next)
		w.free()
	})
}

// A set that has waited looks at the nodes that it has had all the while. One of them is another's by now, and so would
// be what the set holds at that path.
func TestSetDoesNotHoldByANodeThatAnotherHasMadeAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := locked(t, w.set(pathB).Lock)
		waiting := waits(t.Context(), w.set(pathA, pathB).Lock)
		node, sess := pathA+"/"+w.nodes(pathA)[0], w.Session(t, 20*time.Second)
		if err := sess.Delete(t.Context(), node, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), node, nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		unlock(t, hold)
		if hold = got(t, waiting); hold.Path() == node {
			t.Errorf("the set holds %s by %s, which is another client's node", pathA, node)
		}
		unlock(t, hold)
		w.empty(pathA, pathB)
	})
}
