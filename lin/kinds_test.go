//go:build unix

package lin_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// grip is something that is held, whatever it is.
type grip struct {
	ctx     context.Context //nolint:containedctx // the hold's
	sess    *zk.Session
	guard   zk.Op
	node    string
	token   int64
	shared  bool
	permits int64
	release func(ctx context.Context, wait bool)
}

// kind is one sort of lock: how a client takes it, and who judges what its holders saw.
type kind struct {
	name  string
	open  func(client *zk.Client, path string, number int) (take, error)
	judge func(holds []lincheck.Hold, dir string) error
}

// take asks for the lock as planned.
type take func(ctx context.Context, p plan) (*grip, error)

var kinds = []kind{
	{"mutex", openMutex, lincheck.CheckMutex},
}

// places are the locks of an epoch: each of its kind, named after it. Two of a kind are more than twice one, because a client's
// requests for both share its connection.
var places = []string{"mutex-0", "mutex-1", "mutex-slow"}

// permits is how many each semaphore has.
const permits = 5

func kindOf(place string) kind {
	for _, k := range kinds {
		if strings.HasPrefix(place, k.name+"-") {
			return k
		}
	}
	panic("no kind of lock is called " + place)
}

// patient ends ctx as p says, if the lock is to be waited for.
func patient(ctx context.Context, p plan) (context.Context, context.CancelFunc) {
	if p.manner == impatient {
		return context.WithTimeout(ctx, p.patience)
	}
	return context.WithCancel(ctx)
}

// behaviours are what the clients' mutexes are like.
var behaviours = []lock.Config{
	{Label: "hands off"},
	{Label: "strict", Handoff: lock.StrictFIFO},
	{Label: "keeps", Retain: 5 * time.Millisecond},
}

func openMutex(client *zk.Client, path string, number int) (take, error) {
	m, err := lock.NewMutex(client, path, behaviours[number%len(behaviours)])
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p plan) (*grip, error) {
		ctx, cancel := patient(ctx, p)
		defer cancel()
		if p.manner == trying {
			return gripOf(m.TryLock(ctx))
		}
		return gripOf(m.Lock(ctx))
	}, nil
}

func gripOf(h *lock.Hold, err error) (*grip, error) {
	if err != nil {
		return nil, err
	}
	return &grip{
		ctx: h.Context(), sess: h.Session(), guard: h.Guard(), node: h.Path(), token: int64(h.Token()),
		release: func(ctx context.Context, wait bool) {
			if wait {
				_ = h.UnlockWait(ctx) // whether it was lost before is what its context has told
				return
			}
			_ = h.Unlock(ctx)
		},
	}, nil
}

// witness is the node to which holders of a lock write, guarded.
func witness(path string) string { return path + "-witness" }

// write makes a guarded write and returns the version that it made.
func (g *grip) write(path string) (int32, error) {
	results, err := g.sess.Multi(g.ctx, g.guard, zk.SetData(witness(path), fmt.Append(nil, g.token), -1))
	if err != nil {
		return 0, err
	}
	return results[1].Stat.Version, nil
}
