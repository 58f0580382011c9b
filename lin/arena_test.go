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
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/lock"
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
	timeout             = 2 * time.Second  // of the sessions
	patience            = 60 * time.Second // until everybody must have been served once the faults are over, and all nodes be gone
)

// arena is where workers contend: servers, their way to these, and what goes wrong there.
type arena struct {
	ensemble *peer.Cluster // nil if the servers stay as they are
	servers  string        // a connect string
	exe      string        // the workers' program
	dir      string        // what is kept of a failure
	deaf     bool          // see orders
	places   []string
}

// epoch is some seconds of an arena: a seed, new paths, new processes.
type epoch struct {
	arena
	t       *testing.T
	seed    uint64
	root    string
	dir     string
	links   []*zktest.Link // one for each client, so that faults hit who is meant
	journal *journal
	team    []*process // while the faults last, their goroutine's
	first   []int      // the first number of each
	started int        // processes so far
	broken  error      // why there could not be another
}

// run runs an epoch and judges it. It fails t if something is broken that the epoch is not about.
func (a arena) run(t *testing.T, seed uint64, length time.Duration) error {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := newSchedule(rnd, epochLength, a.places) // whatever is cut off, so that a seed has one schedule
	e := &epoch{
		arena: a, t: t, seed: seed, root: fmt.Sprintf("/lin-%d", seed), journal: newJournal(),
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

// prepare makes the nodes that holders write to, under a session that no fault hits on its way.
func (e *epoch) prepare() *zk.Session {
	e.t.Helper()
	client, err := zk.Open(e.t.Context(), zk.Config{Servers: e.arena.servers, Timeout: 30 * time.Second})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = client.Close() })
	sess, err := client.Session(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	nodes := []string{e.root}
	for _, place := range e.places {
		nodes = append(nodes, witness(e.root+"/"+place))
	}
	for _, node := range nodes {
		if _, err := sess.Create(e.t.Context(), node, nil, zk.Persistent); err != nil {
			e.t.Fatal(err)
		}
	}
	for _, place := range e.places {
		if kindOf(place).name == "watched" {
			if err := lock.SetLimit(e.t.Context(), client, limitOf(e.root+"/"+place), permits); err != nil {
				e.t.Fatal(err)
			}
		}
	}
	return sess
}

// start starts a process in the place of process i, with numbers that none had before.
func (e *epoch) start(i int) {
	o := orders{Root: e.root, Places: e.places, First: e.started * numbersPerProcess, Seed: e.seed, Deaf: e.deaf}
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
