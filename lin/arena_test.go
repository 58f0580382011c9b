//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
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

// arena is where workers are at work: servers, their way to these, and what goes wrong there.
type arena struct {
	ensemble *peer.Cluster // nil if the servers stay as they are
	servers  string        // a connect string
	exe      string        // the workers' program
	dir      string        // what is kept of a failure
	trial    trial
	length   time.Duration // of an epoch
	plan     func(rnd *rand.Rand, length time.Duration, places []string) schedule
	patience time.Duration // until everybody must have been served once the faults are over, and all nodes be gone
}

// epoch is some seconds of an arena: a seed, new paths, new processes.
type epoch struct {
	arena
	t       *testing.T
	seed    uint64
	root    string
	dir     string
	links   []*zktest.Link // one for each client, so that faults hit who is meant
	client  *zk.Client     // the test's own
	journal journal
	team    []*process  // while the faults last, their goroutine's
	first   []int       // the first number of each
	started int         // processes so far
	broken  error       // why there could not be another
	faults  sync.Mutex  // held while what happens is written down
	quiet   atomic.Bool // nothing happens to clients
}

// run runs an epoch and judges it. It fails t if something is broken that the epoch is not about.
func (a arena) run(t *testing.T, seed uint64, length time.Duration) error {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := a.plan(rnd, epochLength, a.trial.places()) // whatever is cut off, so that a seed has one schedule
	e := &epoch{
		arena: a, t: t, seed: seed, root: fmt.Sprintf("/lin-%d", seed), journal: a.trial.newJournal(),
		dir: filepath.Join(a.dir, fmt.Sprintf("seed-%d", seed)),
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
				p.kill()
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
			t.Logf("void, because ZooKeeper's servers differ (docs/bugs.md); server %d gets the others' data: %v\n%s",
				i, trouble, said)
			return nil
		}
	}
	return errors.Join(trouble, e.journal.judge(e.dir))
}

// keep writes down what is going to go wrong.
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

// prepare makes what must be there, under a session that no fault hits on its way.
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

// start starts a process in the place of process i, with numbers that none had before.
func (e *epoch) start(i int) {
	o := orders{Root: e.root, Index: i, First: e.started * numbersPerProcess, Seed: e.seed}
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
