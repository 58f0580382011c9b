//go:build unix

package lin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

const counterJob = "counters"

// counterNote is what a worker reports of counters, sequences and values: calls before they are made and after it.
type counterNote struct {
	Client  int
	Session int64
	Call    *lincheck.CounterCall `json:",omitempty"`
	Value   *lincheck.ValueCall   `json:",omitempty"`
	IDs     *lincheck.IDs         `json:",omitempty"`
	Seen    *lincheck.Sighting    `json:",omitempty"` // of a value's watch
}

// counterUser is a goroutine that uses counters, sequences and values, one at a time.
type counterUser struct {
	*worker
	client   *zk.Client
	number   int
	made     int // values, so that no two are alike
	counters map[string]*counter.Counter
	ids      *counter.Sequence
	values   map[string]*counter.Value
	old      map[string]counter.Versioned // what was last known of a value
}

// useCounters starts the goroutines of a client. They share its counters, so that their calls leave as one write.
func useCounters(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	u := counterUser{
		worker: w, client: client, counters: map[string]*counter.Counter{}, values: map[string]*counter.Value{},
	}
	var err error
	for _, place := range []string{hotCounter, slowCounter} {
		if u.counters[place], err = counter.New(client, w.Root+"/"+place, counter.Config{}); err != nil {
			return err
		}
	}
	for _, place := range []string{hotValue, slowValue} {
		if u.values[place], err = counter.NewValue(client, w.Root+"/"+place, counter.ValueConfig{}); err != nil {
			return err
		}
	}
	if u.ids, err = counter.NewSequence(client, w.Root+"/"+sequence, counter.SequenceConfig{Block: 10}); err != nil {
		return err
	}
	for place := range u.values {
		wg.Go(func() { u.watch(ctx, place, w.First+i) })
	}
	for k := range goroutinesPerClient {
		one := u
		one.number, one.old = w.First+i*goroutinesPerClient+k, map[string]counter.Versioned{}
		wg.Go(func() { one.use(ctx, quiet(i)) })
	}
	return nil
}

// use makes calls until ctx ends. Then the faults are over, and a call of each kind must succeed.
func (u *counterUser) use(ctx context.Context, slow bool) {
	rnd := rand.New(rand.NewPCG(u.Seed, uint64(u.number)))
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, 100*time.Millisecond+upTo(rnd, 3*timeout))
		switch n := rnd.IntN(10); {
		case slow && n < 5:
			u.count(call, rnd, slowCounter)
		case slow:
			u.change(call, rnd, slowValue)
		case n < 6:
			u.count(call, rnd, hotCounter)
		case n < 8:
			u.change(call, rnd, hotValue)
		default:
			u.take(call, 1+rnd.IntN(25))
		}
		cancel()
		longest := 50 * time.Millisecond
		if slow {
			longest = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(upTo(rnd, longest)):
		}
	}
	ctx = context.WithoutCancel(ctx)
	for !u.count(ctx, rnd, hotCounter) || !u.take(ctx, 1) || !u.set(ctx, hotValue) {
		continue
	}
}

func (u *counterUser) note(place string, n counterNote) {
	n.Client = u.number
	if sess := u.session(); sess != nil {
		n.Session = sess.ID()
	}
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	u.report(report{Place: place, Recipe: raw})
}

// session returns the live session, or nil if there is none now.
func (u *counterUser) session() *zk.Session {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sess, err := u.client.Session(ctx)
	if err != nil {
		return nil
	}
	return sess
}

// count makes a call of a counter, and reports whether it has succeeded.
func (u *counterUser) count(ctx context.Context, rnd *rand.Rand, place string) bool {
	c := u.counters[place]
	x := lincheck.CounterCall{Client: u.number, Op: lincheck.CounterAdd, N: 1 + rnd.Int64N(50), Asked: clock()}
	switch rnd.IntN(12) {
	case 0:
		x.Op, x.N = lincheck.CounterSet, rnd.Int64N(1000)
	case 1, 2:
		now, err := c.Get(ctx)
		if err != nil {
			return false
		}
		x.Op, x.Other = lincheck.CounterCompare, now
	case 3:
		x.Op, x.Other = lincheck.CounterAddUpTo, 1000+rnd.Int64N(1000)
	}
	x.Asked = clock()
	u.note(place, counterNote{Call: &x})
	var err error
	switch x.Op {
	case lincheck.CounterSet:
		err = c.Set(ctx, x.N)
	case lincheck.CounterCompare:
		x.OK, err = c.CompareAndSet(ctx, x.Other, x.N)
	case lincheck.CounterAddUpTo:
		x.Value, x.OK, err = c.AddUpTo(ctx, x.N, x.Other)
	default:
		x.Value, err = c.Add(ctx, x.N)
	}
	x.Vain, x.Done = finished(err)
	u.note(place, counterNote{Call: &x})
	return err == nil
}

// finished returns whether a call was in vain that returned err, and when it returned; 0 if its outcome is unknown.
func finished(err error) (vain bool, done int64) {
	if errors.Is(err, counter.ErrUnresolved) {
		return false, 0
	}
	return err != nil, clock()
}

// take takes n ids.
func (u *counterUser) take(ctx context.Context, n int) bool {
	got := lincheck.IDs{Client: u.number}
	for range n {
		id, err := u.ids.Next(ctx)
		if err != nil {
			break
		}
		got.IDs = append(got.IDs, id)
	}
	u.note(sequence, counterNote{IDs: &got})
	return len(got.IDs) > 0
}

// change sets a value, or sets it if it is what it was a while ago, or deletes its node as an operator would.
func (u *counterUser) change(ctx context.Context, rnd *rand.Rand, place string) {
	switch rnd.IntN(6) {
	case 0:
		u.set(ctx, place)
	case 1:
		u.remove(ctx, place)
	case 2:
		if now, err := u.values[place].Get(ctx); err == nil {
			u.old[place] = now
		}
	default:
		u.compare(ctx, place)
	}
}

// data returns data that no other call sets.
func (u *counterUser) data() string {
	u.made++
	return fmt.Sprintf("%d-%d", u.number, u.made)
}

func (u *counterUser) set(ctx context.Context, place string) bool {
	x := lincheck.ValueCall{Client: u.number, Data: u.data(), Asked: clock()}
	u.note(place, counterNote{Value: &x})
	err := u.values[place].Set(ctx, []byte(x.Data))
	x.Vain, x.Done = finished(err)
	u.note(place, counterNote{Value: &x})
	return err == nil
}

func (u *counterUser) compare(ctx context.Context, place string) {
	old := u.old[place]
	x := lincheck.ValueCall{Client: u.number, If: true, Old: string(old.Data), Data: u.data(), Asked: clock()}
	u.note(place, counterNote{Value: &x})
	now, done, err := u.values[place].CompareAndSet(ctx, old, []byte(x.Data))
	if errors.Is(err, counter.ErrRecreated) { // it was set, whatever the value was
		x.If, err, done = false, nil, true
	} else if err == nil {
		u.old[place] = now
	}
	x.Vain, x.Done = finished(err)
	x.Vain = x.Vain || err == nil && !done
	u.note(place, counterNote{Value: &x})
}

// remove deletes a value's node, at most once: DeleteAll might delete one that was set meanwhile. What is below it, the
// receipts, goes first.
func (u *counterUser) remove(ctx context.Context, place string) {
	sess, node := u.session(), u.Root+"/"+place
	if sess == nil {
		return
	}
	if _, err := sess.DeleteAll(ctx, attempt.Join(node, attempt.Mark("receipts"))); err != nil {
		return
	}
	x := lincheck.ValueCall{Client: u.number, Asked: clock()}
	u.note(place, counterNote{Value: &x})
	err := sess.Delete(ctx, node, -1)
	if zk.OutcomeOf(err) != zk.Unknown || err == nil {
		x.Vain, x.Done = err != nil, clock()
	}
	u.note(place, counterNote{Value: &x})
}

// watch reports what a value's watch yields.
func (u *counterUser) watch(ctx context.Context, place string, observer int) {
	for now, err := range u.values[place].Watch(ctx) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(os.Stderr, "worker: watch %s: %v\n", place, err)
			os.Exit(1)
		case now.Exists:
			u.note(place, counterNote{Seen: &lincheck.Sighting{Observer: observer, Token: now.Mzxid, At: clock()}})
		}
	}
}
