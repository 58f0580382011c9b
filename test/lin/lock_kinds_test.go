//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// holding is a hold of any kind.
type holding struct {
	ctx     context.Context //nolint:containedctx // the hold's
	sess    *zk.Session
	guard   zk.Op
	node    string
	token   int64
	shared  bool
	permits int64
	release func(ctx context.Context, wait bool)
	// change is an upgrade or a downgrade; nil if there is none.
	change func(ctx context.Context, shared bool) (token int64, err error)
	// again acquires a hold nested in it, with lock.Reenter; nil if there is none.
	again func(ctx context.Context, shared bool) (*holding, error)
	lost  func() string // why it ended by itself, as in lincheck.Hold.Lost; nil if it does not matter
	alive *int64        // where its holder records when it was last seen alive
}

// kind is one kind of lock: how a client acquires it, and which checker judges it.
type kind struct {
	name  string
	open  func(client *zk.Client, path string, number int) (take, error)
	judge func(holds []lincheck.Hold, dir string) error
	// disturb does something with the lock other than acquiring it, in one of every often plans; nil if there is
	// nothing. Restore undoes it at the end, so that all can be served, and reports whether it has.
	disturb func(ctx context.Context, c *contender, p plan)
	often   int
	restore func(ctx context.Context, c *contender, place string) bool
	// observe reports the tokens of holders, as seen from outside, until ctx ends; nil if they cannot be observed.
	observe func(ctx context.Context, client *zk.Client, path string, seen func(token int64)) error
}

// take acquires the lock as planned.
type take func(ctx context.Context, p plan) (*holding, error)

var kinds = []kind{
	{name: "mutex", open: openMutex, judge: lincheck.CheckMutex},
	{name: "layouts", open: openLayouts, judge: lincheck.CheckMutex},
	{name: "set", open: openSet, judge: lincheck.CheckMutex},
	{name: "simple", open: openSimple, judge: lincheck.CheckMutex},
	{name: "rw", open: openRW, judge: lincheck.CheckRW},
	{name: "semaphore", open: openSemaphore, judge: judgePermits},
	{name: "watched", open: openWatched, judge: judgePermits, disturb: changeLimit, often: 12, restore: restoreLimit},
	{name: "revoked", open: openRevoked, judge: lincheck.CheckMutex, disturb: revoke, often: 3},
	{name: "revokedrw", open: openRevokedRW, judge: lincheck.CheckRW, disturb: revoke, often: 3},
	{name: "election", open: openElection, judge: lincheck.CheckElection, observe: observeElection},
	{name: "run", open: openRun, judge: lincheck.CheckElection, observe: observeElection},
}

// places are the locks of an epoch, each named after its kind.
var places = []string{
	"mutex-0", "mutex-1", "mutex-slow", "rw-0", "rw-slow", "semaphore-0", "semaphore-slow",
	"election-0", "election-slow",
	"layouts-0", "set-0", "simple-0", "watched-0", "run-0", "revoked-0", "revoked-slow", "revokedrw-0",
}

// permits is the number of permits of each semaphore.
const permits = 5

func judgePermits(holds []lincheck.Hold, dir string) error {
	return errors.Join(lincheck.CheckSemaphore(holds, permits, dir), lincheck.CheckTokens(holds))
}

func kindOf(place string) kind {
	for _, k := range kinds {
		if strings.HasPrefix(place, k.name+"-") {
			return k
		}
	}
	panic("unknown kind of lock: " + place)
}

// patient returns a ctx that ends as p says, if the call is to wait.
func patient(ctx context.Context, p plan) (context.Context, context.CancelFunc) {
	if p.manner == impatient {
		return context.WithTimeout(ctx, p.patience)
	}
	return context.WithCancel(ctx)
}

// behaviours are the configurations of the clients' mutexes.
var behaviours = []lock.Config{
	{Label: "hands off"},
	{Label: "strict", Handoff: lock.StrictFIFO},
	{Label: "rests", Delay: 30 * time.Millisecond},
	{Label: "ends with its connection", OnSuspend: lock.EndHold},
	{Label: "keeps", Retain: 5 * time.Millisecond},
}

// retries are the clients' retry policies. Half of the clients give up after the loss of their session or their
// connection, and leave their nodes to be removed in the background.
var retries = []lock.Retry{
	{}, lock.Forever(0).Times(0), {}, lock.Exponential(time.Millisecond, 50*time.Millisecond).Times(1),
}

// retryOf returns the retry policy of a client.
func retryOf(number int) lock.Retry { return retries[number%len(retries)] }

// tryingAgain returns cfg with the retry policy of a client.
func tryingAgain(cfg lock.Config, number int) lock.Config {
	cfg.Retry = retryOf(number)
	return cfg
}

func openMutex(client *zk.Client, path string, number int) (take, error) {
	return plain(lock.NewMutex(client, path, tryingAgain(behaviours[number%len(behaviours)], number)))
}

// openLayouts opens mutexes with different layouts.
func openLayouts(client *zk.Client, path string, number int) (take, error) {
	cfg := tryingAgain(behaviours[number%len(behaviours)], number)
	cfg.Layout = lock.Layout(number / 2 % 3)
	return plain(lock.NewMutex(client, path, cfg))
}

// openSet opens sets of the same two paths, in both orders, and mutexes of one of these paths.
func openSet(client *zk.Client, path string, number int) (take, error) {
	paths := []string{path, path + "-too"}
	switch number % 3 {
	case 0:
		return plain(lock.NewSet(client, paths, lock.SetConfig{Retry: retryOf(number)}))
	case 1:
		return plain(lock.NewSet(client, []string{paths[1], paths[0]},
			lock.SetConfig{Layout: lock.Both, Retry: retryOf(number)}))
	default:
		return plain(lock.NewMutex(client, path, lock.Config{}))
	}
}

func openSimple(client *zk.Client, path string, number int) (take, error) {
	return plain(lock.NewSimple(client, path, lock.SimpleConfig{Retry: retryOf(number)}))
}

// plain acquires a lock with one holder.
func plain[T interface {
	Lock(ctx context.Context) (*lock.Hold, error)
	TryLock(ctx context.Context) (*lock.Hold, error)
}](m T, err error) (take, error) {
	if err != nil {
		return nil, err
	}
	again := func(ctx context.Context, _ bool) (*holding, error) { return holdingOf(m.Lock(lock.Reenter(ctx))) }
	return func(ctx context.Context, p plan) (*holding, error) {
		ctx, cancel := patient(ctx, p)
		defer cancel()
		way := m.Lock
		if p.manner == trying {
			way = m.TryLock
		}
		g, err := holdingOf(way(ctx))
		if err == nil {
			g.again = again
		}
		return g, err
	}, nil
}

func openRW(client *zk.Client, path string, number int) (take, error) {
	like := behaviours[number/2%4] // Nobody keeps a read/write lock.
	m, err := lock.NewRWMutex(client, path, lock.RWConfig{
		Label: like.Label, Handoff: like.Handoff, Delay: like.Delay, OnSuspend: like.OnSuspend, Retry: retryOf(number),
	})
	if err != nil {
		return nil, err
	}
	ways := map[bool]map[bool]func(context.Context) (*lock.Hold, error){
		false: {false: m.Lock, true: m.RLock},
		true:  {false: m.TryLock, true: m.TryRLock},
	}
	return func(ctx context.Context, p plan) (*holding, error) {
		ctx, cancel := patient(ctx, p)
		defer cancel()
		h, err := ways[p.manner == trying][p.shared](ctx)
		if err != nil {
			return nil, err
		}
		g, _ := holdingOf(h, nil)
		g.shared = p.shared
		g.again = func(ctx context.Context, shared bool) (*holding, error) {
			return holdingOf(ways[false][shared](lock.Reenter(ctx)))
		}
		g.change = func(ctx context.Context, shared bool) (int64, error) {
			change := m.Upgrade
			if shared {
				change = m.Downgrade
			}
			err := change(ctx, h)
			return int64(h.Token()), err
		}
		return g, nil
	}, nil
}

func openSemaphore(client *zk.Client, path string, number int) (take, error) {
	limit := lock.AgreedLimit(permits)
	if isSlow(path) {
		limit = lock.StoredLimit(permits)
	}
	return permitted(lock.NewSemaphore(client, path, limit, lock.SemaphoreConfig{Retry: retryOf(number)}))
}

// permitted acquires permits.
func permitted(m *lock.Semaphore, err error) (take, error) {
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p plan) (*holding, error) {
		ctx, cancel := patient(ctx, p)
		defer cancel()
		acquire := m.Acquire
		if p.manner == trying {
			acquire = m.TryAcquire
		}
		g, err := holdingOf(acquire(ctx, int(p.permits)))
		if err != nil {
			return nil, err
		}
		g.permits = p.permits
		return g, nil
	}, nil
}

func holdingOf(h *lock.Hold, err error) (*holding, error) {
	if err != nil {
		return nil, err
	}
	return &holding{
		ctx: h.Context(), sess: h.Session(), guard: h.Guard(), node: h.Path(), token: int64(h.Token()),
		lost: func() string { return lost(h) },
		release: func(ctx context.Context, wait bool) {
			if wait {
				_ = h.UnlockWait(ctx) // whether it was lost before is what its context has told
				return
			}
			_ = h.Unlock()
		},
	}, nil
}

// lost returns why a hold ended that was not released, if neither its session nor its Config is the reason.
func lost(h *lock.Hold) string {
	switch cause := context.Cause(h.Context()); {
	case cause == nil || h.Session().Err() != nil || errors.Is(cause, lock.ErrSuspended):
		return ""
	case errors.Is(cause, lock.ErrRevoked):
		return lincheck.LostRevoked
	case errors.Is(cause, lock.ErrDeleted):
		return lincheck.LostDeleted
	case errors.Is(cause, zk.ErrUncertain):
		return lincheck.LostUncertain
	default:
		return cause.Error()
	}
}

// witness returns the node of a lock's guarded writes.
func witness(path string) string { return path + "-witness" }

// write makes a guarded write and returns its version.
func (g *holding) write(path string) (int32, error) {
	results, err := g.sess.Multi(g.ctx, g.guard, zk.SetOp(witness(path), fmt.Append(nil, g.token), -1))
	if err != nil {
		return 0, err
	}
	return results[1].Stat.Version, nil
}

// lockTrial tries locks of all kinds.
type lockTrial struct {
	names    []string // of the locks
	deaf     bool     // see orders
	unproved bool     // see orders
}

func (l lockTrial) places() []string { return l.names }

func (l lockTrial) prepare(e *epoch, sess *zk.Session) error {
	for _, place := range l.names {
		path := e.root + "/" + place
		if _, err := sess.Create(e.t.Context(), witness(path), nil, zk.Persistent); err != nil {
			return err
		}
		if kindOf(place).name == "watched" {
			first := lincheck.Limit{Permits: permits, Asked: clock()}
			limit, err := counter.New(e.client, limitOf(path), counter.Config{Layout: counter.Int})
			if err != nil {
				return err
			}
			if err := limit.Set(e.t.Context(), permits); err != nil {
				return err
			}
			first.Done = clock()
			e.journal.note(report{Place: place, Limit: &first})
		}
	}
	return nil
}

func (l lockTrial) instruct(o *orders) {
	o.Job, o.Places, o.Deaf, o.Unproved = lockJob, l.names, l.deaf, l.unproved
}

func (l lockTrial) newJournal() journal { return newLockJournal() }

func (l lockTrial) settle(e *epoch, sess *zk.Session) error { return e.noOrphans(e.root) }
