package lock_test

// The order in which the callers of one process join the line, when they join it late or again.

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// An ordered lock is one whose callers wait for their turn to join the line, which is at dir. It excludes others of its
// kind.
type ordered struct {
	dir string
	of  func(t *testing.T, client *zk.Client, hooks lock.Hooks) takeFunc
}

var orderedKinds = map[string]ordered{
	"writers": {path, func(t *testing.T, client *zk.Client, hooks lock.Hooks) takeFunc {
		return rwmutex(t, client, lock.RWConfig{Hooks: hooks}).Lock
	}},
	"permits": {locksPath, func(t *testing.T, client *zk.Client, hooks lock.Hooks) takeFunc {
		return permits{semaphore(t, client, lock.AgreedLimit(1), lock.SemaphoreConfig{Hooks: hooks}), 1}.Lock
	}},
}

// held returns a hold of another client's, and a client whose callers have to wait.
func (k ordered) held(w *world) (hold *lock.Hold, client *zk.Client) {
	other := k.of(w.t, w.Client(w.t, 20*time.Second), lock.Hooks{})
	return locked(w.t, other), w.Client(w.t, 20*time.Second)
}

// minute returns a context that ends when everything that these tests wait for should long have happened.
func minute(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The creation of the first caller's node is on its way. The second waits for that, and then it waits no more.
func TestCallerBehindOneThatLeavesBeforeItHasJoinedIsServed(t *testing.T) {
	t.Parallel()
	for name, kind := range orderedKinds {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				take := kind.of(t, w.Client(t, 20*time.Second), lock.Hooks{})
				slow, arrives := context.WithCancel(t.Context())
				defer arrives()
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpCreate {
						return zktest.Until(slow)
					}
					return zktest.Pass
				})
				ctx, leave := context.WithCancel(t.Context())
				leaves := waits(ctx, take)
				next := waits(minute(t), take)
				leave()
				if r := <-leaves; !errors.Is(r.err, context.Canceled) {
					t.Errorf("got %v, want context.Canceled", r.err)
				}
				synctest.Wait()
				w.Control(nil)
				arrives()
				unlock(t, got(t, next))
				time.Sleep(time.Second)
				w.empty(kind.dir)
			})
		})
	}
}

// The session ends. The second caller hears of it at once, and the first only when its hook has returned.
func TestCallersJoinAgainInTheirOrderHoweverLateTheFirstOneHearsOfTheLoss(t *testing.T) {
	t.Parallel()
	type slow struct{}
	var told lock.Hooks
	told.Enqueued = func(ctx context.Context, _ lock.Event) {
		if returns, ok := ctx.Value(slow{}).(context.Context); ok {
			<-returns.Done()
		}
	}
	kinds := maps.Clone(orderedKinds)
	kinds["strict"] = ordered{path, func(t *testing.T, client *zk.Client, hooks lock.Hooks) takeFunc {
		m, err := lock.NewMutex(client, path, lock.Config{Hooks: hooks, Handoff: lock.StrictFIFO})
		if err != nil {
			t.Fatal(err)
		}
		return m.Lock
	}}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				hold, client := kind.held(w)
				take := kind.of(t, client, told)
				before := w.nodes(kind.dir)
				late, hears := context.WithCancel(t.Context())
				defer hears()
				first := waits(context.WithValue(minute(t), slow{}, late), take)
				second := waits(minute(t), take)
				w.ExpireSession(session(t, client).ID())
				time.Sleep(time.Second)
				if line := w.nodes(kind.dir); !slices.Equal(line, before) {
					t.Fatalf("got the line %v, want %v: the first caller has not joined again", line, before)
				}
				none(t, "behind another client", first, second)
				hears()
				time.Sleep(time.Second)
				unlock(t, hold)
				hold = got(t, first)
				none(t, "behind the first", second)
				unlock(t, hold)
				unlock(t, got(t, second))
			})
		})
	}
}

// The session goes on, and the nodes of both are deleted. The first one learns of it first. The server refuses its new
// node for a moment, in which the second one learns of it, too.
func TestCallersWhoseNodesAreDeletedJoinAgainInTheirOrder(t *testing.T) {
	t.Parallel()
	for name, kind := range orderedKinds {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				hold, client := kind.held(w)
				take := kind.of(t, client, lock.Hooks{})
				first := waits(minute(t), take)
				between := waits(t.Context(), kind.of(t, w.Client(t, 20*time.Second), lock.Hooks{}))
				second := waits(minute(t), take)
				nodes := w.nodes(kind.dir)
				slices.SortFunc(nodes, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
				operator, n := w.Session(t, 20*time.Second), len(nodes)
				refused := false
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpCreate && !refused {
						refused = true
						return zktest.Answer(zk.ThrottledOp)
					}
					return zktest.Pass
				})
				for _, node := range []string{nodes[n-3], nodes[n-1]} {
					if err := operator.Delete(t.Context(), kind.dir+"/"+node, -1); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				unlock(t, hold)
				hold = got(t, between)
				none(t, "behind another client", first, second)
				unlock(t, hold)
				none(t, "before the first", second)
				hold = got(t, first)
				none(t, "behind the first", second)
				unlock(t, hold)
				unlock(t, got(t, second))
			})
		})
	}
}
