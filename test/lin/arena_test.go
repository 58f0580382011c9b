//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	servers             = 3
	processes           = 4
	clientsPerProcess   = 3
	clients             = processes * clientsPerProcess
	goroutinesPerClient = 2
	numbersPerProcess   = clientsPerProcess * goroutinesPerClient
	timeout             = 2 * time.Second // of the sessions
)

// arena is where workers run: their servers, and what goes wrong.
type arena struct {
	ensemble *peer.Cluster             // nil if the servers have no faults
	restart  func(limit time.Duration) // restarts the one server with another limit on session timeouts; or nil
	servers  string                    // a connect string
	exe      string                    // the workers' program
	dir      string                    // for what is kept of a failure
	trial    trial
	length   time.Duration // of an epoch
	plan     func(rnd *rand.Rand, length time.Duration, places []string) schedule
	patience time.Duration // until all must be served and all nodes gone after the faults
	tally    *tally        // of all epochs
}

// epoch is a few seconds in an arena, with its own seed, paths and processes.
type epoch struct {
	arena
	t       *testing.T
	seed    uint64
	root    string
	dir     string
	links   []*zktest.Link // one for each client, so that a fault hits only its target
	client  *zk.Client     // of the test itself
	journal journal
	team    []*process  // owned by the faults' goroutine while faults last
	first   []int       // the first number of each process
	started int         // processes started so far
	broken  error       // why a process could not be started again
	failed  []error     // of workers that have ended otherwise than they should, or have a data race
	faults  sync.Mutex  // held while a fault is recorded
	quiet   atomic.Bool // no faults for clients
}

// run runs an epoch and returns what its judge found. It fails t if something else is broken.
func (a arena) run(t *testing.T, seed uint64, length time.Duration) error {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := a.plan(rnd, epochLength, a.trial.places()) // the same whatever is cut off, so that a seed has one schedule
	e := &epoch{
		arena: a, t: t, seed: seed, journal: a.trial.newJournal(),
		root: fmt.Sprintf("/%s-%d", filepath.Base(a.dir), seed),
		dir:  filepath.Join(a.dir, fmt.Sprintf("seed-%d", seed)),
	}
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e.keep(s)
	sess := e.prepare()
	for range clients {
		e.links = append(e.links, zktest.Proxy(t, a.servers))
	}
	e.team, e.first = make([]*process, processes), make([]int, processes)
	t.Cleanup(func() {
		for _, p := range e.team {
			if p != nil {
				_ = p.kill()
			}
		}
	})
	for i := range e.team {
		if e.start(i); e.broken != nil {
			t.Fatal(e.broken)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { e.clientFaults(ctx, s.clients) })
	e.serverFaults(ctx, s.servers)
	wg.Wait()
	if e.broken != nil {
		t.Fatal(e.broken)
	}
	trouble := e.calmDown(sess)
	t.Logf("seed %d, %d processes; %s", seed, e.started, e.journal.count())
	if e.ensemble != nil {
		if i, said := e.ensemble.Odd(); i >= 0 {
			e.ensemble.Renew(i)
			t.Logf("void, because ZooKeeper's servers differ; server %d copies the others' data: %v\n%s",
				i, trouble, said)
			return errors.Join(slices.DeleteFunc(e.failed, func(err error) bool { return !errors.Is(err, errRace) })...)
		}
	}
	return errors.Join(errors.Join(e.failed...), trouble, e.journal.judge(e.dir))
}

// keep writes the schedule of faults to a file.
func (e *epoch) keep(s schedule) {
	var text strings.Builder
	for _, f := range s.clients {
		fmt.Fprintln(&text, f)
	}
	for _, f := range s.servers {
		fmt.Fprintln(&text, "then after", f)
	}
	if err := os.WriteFile(filepath.Join(e.dir, "faults.txt"), []byte(text.String()), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// prepare creates the nodes that workers need, in a session without faults.
func (e *epoch) prepare() *zk.Session {
	e.t.Helper()
	client, err := zk.Open(e.t.Context(), zk.Config{Servers: e.arena.servers, Timeout: 30 * time.Second})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = client.Close() })
	e.client = client
	sess, err := client.Session(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := sess.Create(e.t.Context(), e.root, nil, zk.Persistent); err != nil {
		e.t.Fatal(err)
	}
	if err := e.trial.prepare(e, sess); err != nil {
		e.t.Fatal(err)
	}
	return sess
}

// start starts a process in place of process i, with new numbers.
func (e *epoch) start(i int) {
	o := orders{
		Root: e.root, Index: i, First: e.started * numbersPerProcess, Seed: e.seed, Patience: e.patience * 2 / 3,
	}
	e.trial.instruct(&o)
	for _, l := range e.links[i*clientsPerProcess:][:clientsPerProcess] {
		o.Servers = append(o.Servers, l.Addr())
	}
	e.started++
	p, err := startProcess(e.exe, o, e.journal, e.dir)
	if err != nil {
		e.broken = fmt.Errorf("start a worker: %w", err)
		return
	}
	e.team[i], e.first[i] = p, o.First
}
