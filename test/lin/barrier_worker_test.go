//go:build unix

package lin_test

// Clients that use plain and double barriers.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

const barrierJob = "barriers"

// barrierUser is a goroutine that uses barriers, one at a time.
type barrierUser struct {
	*worker
	client *zk.Client
	number int
	rnd    *rand.Rand
}

// useBarriers starts the goroutines of a client, and one more that only waits for plain barriers.
func useBarriers(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	first, waiting := clock(), make(chan struct{})
	for k := range goroutinesPerClient {
		number := w.First + i*goroutinesPerClient + k
		u := &barrierUser{w, client, number, rand.New(rand.NewPCG(w.Seed, uint64(number)))}
		wg.Go(func() {
			u.use(ctx, quiet(i))
			for k == 0 && u.removeAll(context.WithoutCancel(ctx), first, waiting) {
				continue
			}
			u.finish(context.WithoutCancel(ctx))
		})
	}
	number := w.First + i*goroutinesPerClient
	u := &barrierUser{w, client, number, rand.New(rand.NewPCG(w.Seed+1, uint64(number)))}
	wg.Go(func() {
		defer close(waiting)
		for ctx.Err() == nil {
			u.wait(ctx, u.plainOf(quiet(i)))
		}
	})
	return nil
}

// use uses barriers at random until ctx ends.
func (u *barrierUser) use(ctx context.Context, slow bool) {
	for ctx.Err() == nil {
		switch n := u.rnd.IntN(10); {
		case n < 2:
			u.plain(ctx, u.plainOf(slow))
		case slow && n < 6:
			u.double(ctx, slowDouble)
		case slow:
			u.rounds(ctx, slowRounds)
		case n < 6:
			u.double(ctx, hotDouble)
		case n < 8:
			u.rounds(ctx, failRounds)
		default:
			u.rounds(ctx, goOnRounds)
		}
		pause(ctx, upTo(u.rnd, 10*time.Millisecond))
	}
}

// finish meets all other goroutines that are there after the faults, which must succeed.
func (u *barrierUser) finish(ctx context.Context) {
	u.enter(ctx, allDouble, "", func() {})
	u.passOne(ctx)
	u.passAlone(ctx)
}

func (u *barrierUser) note(place string, n barrierNote) {
	n.Client = u.number
	if sess := u.session(); sess != nil {
		n.Session = sess.ID()
	}
	u.report(barrierReport(place, n))
}

// session returns the live session, or nil if there is none now.
func (u *barrierUser) session() *zk.Session {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sess, err := u.client.Session(ctx)
	if err != nil {
		return nil
	}
	return sess
}

// during returns the path that a place has at a time.
func during(at int64, length time.Duration) string { return fmt.Sprintf("/%d", at/int64(length)) }

// abort ends the worker: what has happened must not.
func abort(what string, err error) {
	fmt.Fprintf(os.Stderr, "worker: %s: %v\n", what, err)
	os.Exit(1)
}

// limited returns a context that ends with ctx, or soon.
func (u *barrierUser) limited(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	if u.rnd.IntN(4) == 0 {
		longest = 50 * time.Millisecond
	}
	return context.WithTimeout(ctx, upTo(u.rnd, longest))
}

func (u *barrierUser) plainOf(slow bool) string {
	if slow {
		return slowPlain
	}
	return hotPlain
}

func (u *barrierUser) at(place, path string) *barrier.Barrier {
	b, err := barrier.NewBarrier(u.client, u.Root+"/"+place+path, barrier.Config{})
	if err != nil {
		abort("open "+place, err)
	}
	return b
}

// call makes a call of a plain barrier, and reports whether it succeeded.
func (u *barrierUser) call(
	ctx context.Context, place, path, op string, do func(*barrier.Barrier, context.Context) error,
) bool {
	before := u.session()
	var changed <-chan struct{}
	if before != nil {
		_, changed = before.State()
	}
	c := lincheck.BarrierCall{Client: u.number, Op: op, Asked: clock()}
	if op != lincheck.BarrierWait { // which does nothing
		u.note(place, barrierNote{Path: path, Call: &c})
	}
	if err := do(u.at(place, path), ctx); err != nil {
		return false
	}
	c.Done = clock()
	c.Torn = before == nil || before != u.session()
	select {
	case <-changed:
		c.Torn = true
	default:
	}
	u.note(place, barrierNote{Path: path, Call: &c})
	return true
}

// plain puts a barrier up for a while.
func (u *barrierUser) plain(ctx context.Context, place string) {
	path := during(clock(), plainLength)
	one, cancel := u.limited(ctx, timeout)
	defer cancel()
	if u.call(one, place, path, lincheck.BarrierSet, (*barrier.Barrier).Set) {
		pause(one, upTo(u.rnd, plainLength/2))
	}
	// Others may wait for it without a limit.
	one, cancel = u.limited(ctx, 2*timeout)
	defer cancel()
	u.call(one, place, path, lincheck.BarrierRemove, (*barrier.Barrier).Remove)
}

// wait waits for a barrier, often without a limit.
func (u *barrierUser) wait(ctx context.Context, place string) {
	path := during(clock(), plainLength)
	if u.rnd.IntN(4) == 0 {
		u.call(context.WithoutCancel(ctx), place, path, lincheck.BarrierWait, (*barrier.Barrier).Wait)
	} else {
		one, cancel := u.limited(ctx, plainLength)
		u.call(one, place, path, lincheck.BarrierWait, (*barrier.Barrier).Wait)
		cancel()
	}
	pause(ctx, upTo(u.rnd, 20*time.Millisecond))
}

// removeAll removes all plain barriers that this client may wait for, after the faults. It reports whether it waits
// still: a barrier may be put up again by a call that was on its way.
func (u *barrierUser) removeAll(ctx context.Context, since int64, waiting <-chan struct{}) bool {
	for at := since / int64(plainLength); at <= clock()/int64(plainLength); at++ {
		for _, place := range []string{hotPlain, slowPlain} {
			path := during(at*int64(plainLength), plainLength)
			if !u.call(ctx, place, path, lincheck.BarrierRemove, (*barrier.Barrier).Remove) {
				abort("remove", context.Cause(ctx))
			}
		}
	}
	select {
	case <-waiting:
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

// double enters a double barrier, stays for a while and leaves.
func (u *barrierUser) double(ctx context.Context, place string) {
	one, cancel := u.limited(ctx, doubleLength)
	defer cancel()
	longest := 20 * time.Millisecond
	switch {
	case isSlow(place):
		longest = timeout
	case u.rnd.IntN(4) == 0: // long after others began to leave
		longest = 200 * time.Millisecond
	}
	u.enter(one, place, during(clock(), doubleLength), func() { pause(ctx, upTo(u.rnd, longest)) })
}

// enter enters a double barrier, and leaves it after what is done inside. Leaving must come to an end after the faults,
// but is sometimes given up.
func (u *barrierUser) enter(ctx context.Context, place, path string, inside func()) {
	d, err := barrier.NewDouble(u.client, u.Root+"/"+place+path, doublesOf[place], barrier.Config{})
	if err != nil {
		abort("open "+place, err)
	}
	p := lincheck.DoubleParty{Client: u.number, Asked: clock()}
	tell := func() { u.note(place, barrierNote{Path: path, Double: &p}) }
	tell()
	m, err := d.Enter(ctx)
	if err != nil {
		if ctx.Err() == nil {
			abort("enter "+place, err)
		}
		return
	}
	p.Entered = clock()
	tell()
	inside()
	p.Leaving = clock()
	tell()
	leave := context.WithoutCancel(ctx)
	if u.rnd.IntN(8) == 0 && place != allDouble {
		limited, cancel := context.WithTimeout(leave, upTo(u.rnd, 100*time.Millisecond))
		defer cancel()
		leave = limited
	}
	if err := m.Leave(leave); err == nil {
		p.Left = clock()
	}
	tell()
}
