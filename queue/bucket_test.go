package queue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A consumer that has read what is due in a bucket, and is slow to move it, moves nothing of the bucket of that name
// that was made after another consumer had emptied and removed the first one.
func TestSlowConsumerMovesNothingOfABucketThatWasMadeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		producer, slow, quick := w.queue(queue.Config{}), w.queue(queue.Config{}), w.queue(queue.Config{})
		pass(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		put(t, producer, "first", queue.Message{Delay: 2 * time.Second})
		if _, err := slow.TryTake(t.Context()); !errors.Is(err, queue.ErrEmpty) {
			t.Fatal(err)
		}
		pass(2*time.Second + 50*time.Millisecond)
		held := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpMulti || !strings.HasPrefix(r.Parts[0].Path, root+"/delayed/") || held > 0 {
				return zktest.Pass
			}
			held++
			return zktest.Delay(300 * time.Millisecond)
		})
		answer := make(chan error)
		go func() {
			item, err := slow.TryTake(t.Context())
			if err == nil {
				err = item.Done(t.Context())
			}
			answer <- err
		}()
		pass(50 * time.Millisecond)
		item := take(t, quick)
		wantBody(t, item, "first")
		done(t, item)
		put(t, producer, "second", queue.Message{Delay: 600 * time.Millisecond}) // due in the same second
		if err := <-answer; !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("the slow consumer got %v, want ErrEmpty", err)
		}
		w.Control(nil)
		if held != 1 {
			t.Errorf("%d moves were held up, want 1", held)
		}
		pass(5 * time.Second)
		var bodies []string
		takeAll(t, quick, func(item *queue.Item) { bodies = append(bodies, string(item.Body())) })
		if !slices.Equal(bodies, []string{"second"}) {
			t.Errorf("then came %q, want the second alone", bodies)
		}
	})
}
