// Package verify checks what an ensemble and the recipes on it promise: several clients count with counters and hold a
// lock, and package lincheck judges what they saw. A page shows the verdict, the history and how long calls took.
package verify

// A run from its beginning to its end.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Config says how to run.
type Config struct {
	Path string        // of a node that must not exist, and whose parent must; everything happens below it
	For  time.Duration // how long the calls go on
	Rate float64       // of calls in a second, of all clients together
	ACL  []zk.ACL      // of the nodes; open to everyone if nil

	_ struct{}
}

const (
	roundCalls = 500              // in a round, about: the effort of judging grows faster than the history
	longRound  = 10 * time.Second // a round lasts no longer
	shortRound = 200 * time.Millisecond
	judgeTime  = 20 * time.Second // for one history
	cleanTime  = 15 * time.Second
	maxKept    = 5 // so many refused histories are kept
)

// ErrExists is the error if there is a node at the path.
var ErrExists = errors.New("there is a node already")

// run is a run.
type run struct {
	cfg     Config
	clients []*zk.Client
	pace    pace
	report  *Report
	before  []lincheck.Hold // the last hold of earlier rounds

	mu    sync.Mutex // guards what follows and the report while clients work
	calls []lincheck.CounterCall
	holds []lincheck.Hold
}

// Run makes a run with so many clients, each with its own session. It ends before its time if ctx ends, and Stopped is
// the cause then. It returns an error, and no report, if it could not begin: ErrExists, or the client's. It closes all
// clients but the first.
func Run(ctx context.Context, clients []*zk.Client, cfg Config) (*Report, error) {
	if err := begin(ctx, clients[0], cfg); err != nil {
		return nil, err
	}
	r := &run{
		cfg: cfg, clients: clients, pace: pace{every: time.Duration(float64(time.Second) / cfg.Rate)},
		report: newReport(cfg, len(clients)),
	}
	length := min(longRound, max(shortRound, time.Duration(float64(time.Second)*roundCalls/cfg.Rate)))
	for n := 1; ctx.Err() == nil; n++ {
		left := cfg.For - time.Duration(r.report.since())
		if left <= 0 || n > 1 && left < max(shortRound, r.pace.every) {
			break // nobody would come to its turn
		}
		r.round(ctx, n, time.Now().Add(min(length, left)))
	}
	r.report.Ran = time.Duration(r.report.since())
	if ctx.Err() != nil {
		r.report.Stopped = context.Cause(ctx)
	}
	r.report.Left = r.clean(context.WithoutCancel(ctx))
	return r.report, nil
}

// begin creates the run's node. Its data tells it from others' after a lost reply. So it is not taken for one of
// theirs, and is not left behind if begin fails.
func begin(ctx context.Context, client *zk.Client, cfg Config) error {
	stamp := rand.Text()
	_, err := attempt.Run(ctx, client, func(sess *zk.Session) (none struct{}, err error) {
		_, err = sess.CreateNode(ctx, zk.Node{Path: cfg.Path, Data: []byte(stamp), ACL: cfg.ACL})
		if !errors.Is(err, zk.NodeExists) {
			return none, err
		}
		data, _, err := sess.Get(ctx, cfg.Path)
		if err == nil && string(data) != stamp {
			err = fmt.Errorf("%s: %w", cfg.Path, ErrExists)
		}
		return none, err
	})
	if err == nil || errors.Is(err, ErrExists) {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	if data, stat, e := client.Get(last, cfg.Path); e == nil && string(data) == stamp {
		_ = client.Delete(last, cfg.Path, stat.Version) // err says more
	}
	return err
}

// round lets the clients work, and judges what they saw.
func (r *run) round(ctx context.Context, n int, until time.Time) {
	began := r.report.since()
	path := r.cfg.Path + "/counter-" + strconv.Itoa(n)
	var group sync.WaitGroup
	for i, client := range r.clients {
		group.Go(func() {
			if w, err := r.worker(client, i+1, path); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.failed(ctx, "begin", err)
			} else {
				w.work(ctx, until)
			}
		})
	}
	group.Wait()
	done := Round{
		Number: n, Began: time.Duration(began), Ended: time.Duration(r.report.since()),
		Calls: len(r.calls), Holds: len(r.holds),
	}
	var calls []lincheck.CounterCall
	var holds []lincheck.Hold
	done.Counter, calls = lincheck.JudgeCounter(r.calls, judgeTime)
	done.Lock, holds = lincheck.JudgeMutex(slices.Concat(r.before, r.holds), judgeTime)
	r.report.add(done, calls, holds)
	if len(r.calls)+len(r.holds) > 0 {
		r.report.lastCalls, r.report.lastHolds = r.calls, r.holds
	}
	if len(r.holds) > 0 {
		last := slices.MaxFunc(r.holds, func(a, b lincheck.Hold) int { return cmp.Compare(a.Token, b.Token) })
		r.before = []lincheck.Hold{last}
	}
	r.calls, r.holds = nil, nil
	if ctx.Err() == nil {
		_, _ = r.clients[0].DeleteAll(ctx, path) // what stays is deleted at the end
	}
}

// clean deletes all nodes. First it closes the other clients, which may have requests on their way that create some.
func (r *run) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	var group sync.WaitGroup
	for _, client := range r.clients[1:] {
		group.Go(func() { _ = client.Close() }) // if it fails, the session ends by itself
	}
	closed := make(chan struct{})
	go func() {
		group.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	if _, err := r.clients[0].DeleteAll(ctx, r.cfg.Path); err != nil && !errors.Is(err, zk.NoNode) {
		return err
	}
	return nil
}

// failed notes a call that has failed, unless it was given up because the run was ended. The caller holds r.mu.
func (r *run) failed(ctx context.Context, what string, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) { // callTime ends it with another error
		r.report.failed(what, err)
	}
}

// pace says when the next call may begin.
type pace struct {
	every time.Duration

	mu   sync.Mutex // guards next
	next time.Time
}

// turn waits for the caller's turn. It reports false if that is not before a time, or if ctx ends.
func (p *pace) turn(ctx context.Context, until time.Time) bool {
	p.mu.Lock()
	at := time.Now()
	if at.Before(p.next) {
		at = p.next
	}
	if at.After(until) {
		p.mu.Unlock()
		return false
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// worker returns what a client needs for a round.
func (r *run) worker(client *zk.Client, number int, path string) (*worker, error) {
	c, err := counter.New(client, path, counter.Config{ACL: r.cfg.ACL})
	if err != nil {
		return nil, err
	}
	m, err := lock.NewMutex(client, r.cfg.Path+"/lock", lock.Config{Label: "verify", ACL: r.cfg.ACL})
	if err != nil {
		return nil, err
	}
	return &worker{run: r, number: number, client: client, counter: c, mutex: m}, nil
}
