package classic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

var errFails = errors.New("it fails")

func TestConsumeDoesWithFailedItemsWhatTheModeSays(t *testing.T) {
	t.Parallel()
	for mode, want := range map[classic.ErrorMode]string{
		classic.Requeue: "bad good bad",
		classic.Drop:    "bad good",
		classic.Release: "bad bad good",
	} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := open(t, w, classic.NewCurator, classic.Config{LockPath: locks, OnError: mode})
				must(t, q.Put(t.Context(), []byte("bad")))
				must(t, q.Put(t.Context(), []byte("good")))
				ctx, cancel := context.WithCancel(t.Context())
				var got []string
				ended := make(chan error)
				go func() {
					ended <- q.Consume(ctx, func(_ context.Context, body []byte) error {
						got = append(got, string(body))
						if string(body) == "bad" && !slices.Contains(got[:len(got)-1], "bad") {
							return errFails
						}
						return nil
					})
				}()
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil {
					t.Errorf("got %v, want nil", err)
				}
				if got := strings.Join(got, " "); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				wantBodies(t, w.names(path))
				wantBodies(t, w.names(locks))
			})
		})
	}
}

func TestConsumeWithoutLocksTellsOfTheItemThatFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewCurator, classic.Config{})
		must(t, q.PutMulti(t.Context(), []byte("a"), []byte("b")))
		calls := 0
		err := q.Consume(t.Context(), func(context.Context, []byte) error {
			if calls++; calls == 2 {
				return errFails
			}
			return nil
		})
		if !errors.Is(err, errFails) || calls != 2 {
			t.Errorf("got %v after %d calls, want the error of the second", err, calls)
		}
	})
}

// Promise: 7
func TestConsumeGoesOnWhenALockIsLostAndItsFunctionIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, timeout)
		q, err := classic.NewCurator(client, path, classic.Config{LockPath: locks})
		must(t, err)
		must(t, q.Put(t.Context(), []byte("body")))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		err = q.Consume(ctx, func(ctx context.Context, _ []byte) error {
			if calls++; calls > 1 {
				cancel()
				return nil
			}
			sess, err := client.Session(ctx)
			must(t, err)
			w.ExpireSession(sess.ID())
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), zk.ErrExpired) {
				t.Errorf("got cause %v, want zk.ErrExpired", context.Cause(ctx))
			}
			return nil
		})
		if calls != 2 || err != nil {
			t.Errorf("got %d calls and %v, want the item delivered again", calls, err)
		}
		wantBodies(t, w.names(path))
	})
}

// Promise: 7
func TestConsumeThatIsStoppedLeavesWhatFailedInItsPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := open(t, w, classic.NewCurator, classic.Config{LockPath: locks, OnError: classic.Drop})
		must(t, q.Put(t.Context(), []byte("body")))
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Consume(ctx, func(ctx context.Context, _ []byte) error {
			cancel()
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
		wantBodies(t, w.names(path), "queue-0000000000")
		wantBodies(t, w.names(locks))
	})
}
