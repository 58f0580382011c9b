package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
)

func putOnce(t *testing.T, q *queue.Queue, key string) (id string, added bool) {
	t.Helper()
	id, added, err := q.PutOnce(t.Context(), key, []byte(key), queue.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return id, added
}

// A put that has nothing to put needs no room.
func TestKeyThatIsInIsFoundInAFullQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id, _ := putOnce(t, w.queue(queue.Config{}), "k")
		for _, cfg := range []queue.Config{{MaxItems: 1}, {MaxItems: 1, WaitWhenFull: true}} {
			q := w.queue(cfg)
			if got, added := putOnce(t, q, "k"); added || got != id {
				t.Errorf("with %+v: got %s, %v, want %s, false", cfg, got, added, id)
			}
			wantLen(t, q, queue.Counts{Ready: 1})
		}
		if _, _, err := w.queue(queue.Config{MaxItems: 1}).PutOnce(t.Context(), "other", nil, queue.PutOptions{}); !errors.Is(err, queue.ErrFull) {
			t.Errorf("another key: got %v, want ErrFull", err)
		}
	})
}

// Who waits for room with a key is told when somebody else has put it meanwhile.
func TestKeyThatComesInWhileItsPutWaitsForRoomEndsTheWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		put(t, q, "a", queue.PutOptions{})
		type answer struct {
			id    string
			added bool
			err   error
		}
		answers := make(chan answer)
		patient := w.queue(queue.Config{MaxItems: 1, WaitWhenFull: true})
		go func() {
			id, added, err := patient.PutOnce(t.Context(), "k", nil, queue.PutOptions{})
			answers <- answer{id, added, err}
		}()
		pass(time.Minute)
		id, _ := putOnce(t, q, "k")
		if got := <-answers; got.err != nil || got.added || got.id != id {
			t.Errorf("got %+v, want %s", got, id)
		}
	})
}

// A key that has had its time does not keep a full queue from saying so.
func TestKeyThatIsForgottenNeedsRoom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		putOnce(t, w.queue(queue.Config{KeepKeys: time.Minute}), "k")
		pass(time.Hour)
		q := w.queue(queue.Config{MaxItems: 1, KeepKeys: time.Minute})
		if _, _, err := q.PutOnce(t.Context(), "k", nil, queue.PutOptions{}); !errors.Is(err, queue.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	})
}
