//go:build unix

package lock_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	workers          = 10
	clientsPerWorker = 5
	enoughHolds      = 200             // a shorter history proves little
	workerTimeout    = 2 * time.Second // of the workers' sessions
)

// arena is where the workers contend: servers behind a link with faults, and the faults that only these servers can
// have.
type arena struct {
	link   *zktest.Link
	faults []func(*rand.Rand)
}

// TestOneHolderAtATime contends on the embedded server, and in soaks on Apache ZooKeeper, too; package lin contends
// there in every run.
//
// Promise: 1, 4
func TestOneHolderAtATime(t *testing.T) {
	all := []func(t *testing.T){onTheEmbeddedServer, onAStandaloneZooKeeper, onAnEnsemble}
	for i, contend := range soak.Pick(all[:1], all) {
		t.Run([]string{"embedded", "standalone", "ensemble"}[i], contend)
	}
}

func onTheEmbeddedServer(t *testing.T) {
	t.Helper()
	srv := zktest.Run(t, zktest.Durable(), zktest.SessionTimeouts(time.Second, time.Minute),
		zktest.Tick(200*time.Millisecond))
	contention(t, arena{link: srv.Link, faults: []func(*rand.Rand){func(*rand.Rand) { srv.Restart() }}})
}

func onAStandaloneZooKeeper(t *testing.T) {
	t.Helper()
	zoo := peer.ZooKeeper(t, peer.Options{})
	link := zktest.Proxy(t, zoo.ConnectString())
	contention(t, arena{link: link, faults: []func(*rand.Rand){func(*rand.Rand) { zoo.Restart(0) }}})
}

func onAnEnsemble(t *testing.T) {
	t.Helper()
	zoo := peer.Ensemble(t, 3, peer.Options{})
	link := zktest.Proxy(t, zoo.ConnectString())
	contention(t, arena{link: link, faults: []func(*rand.Rand){
		func(*rand.Rand) { // kill -9 of the leader
			if i := zoo.Leader(); i >= 0 {
				zoo.Restart(i)
			}
		},
		func(rnd *rand.Rand) { // a server that stands still for a while, maybe the leader
			i := rnd.IntN(zoo.Len())
			zoo.Pause(i)
			time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond) // how long it stands still
			zoo.Resume(i)
		},
	}})
}

// contention lets fifty clients in ten processes fight for one lock while faults rain on them, and judges what they
// saw.
//
// Sessions expire here as they do in life: because no server hears of them for too long. One that is closed behind its
// owner's back, as zktest's ExpireSession does, is another matter: no client can know of that before the next one has
// the lock.
func contention(t *testing.T, a arena) {
	t.Helper()
	if testing.Short() {
		t.Skip("many processes for many seconds: not in short mode")
	}
	seed := seedOf(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	start := func(first int) *worker {
		return startWorker(t, orders{
			Servers: a.link.Addr(), Path: path, First: first, Clients: clientsPerWorker, Timeout: workerTimeout,
			Seed: seed,
		})
	}
	var gone []*worker
	team := make([]*worker, workers)
	for i := range team {
		team[i] = start(i * clientsPerWorker)
	}
	// Blips come all the time. A stall stops the line until it is over or a session has expired, so only a few fit into
	// a run.
	blips := []func(*rand.Rand){
		func(rnd *rand.Rand) { a.link.Drop(anyone(a.link, rnd)) },
		func(rnd *rand.Rand) { drop(a.link, rnd, zktest.DropReply) },
		func(rnd *rand.Rand) { drop(a.link, rnd, zktest.Refuse) },
	}
	stalls := append([]func(*rand.Rand){
		func(*rand.Rand) { a.link.Drop() },
		func(rnd *rand.Rand) { // a session that is silent for less or more than its timeout
			id := anyone(a.link, rnd)
			a.link.HalfOpen(id)
			time.AfterFunc(time.Duration(rnd.Int64N(int64(3*workerTimeout/2))), func() { a.link.Heal(id) })
		},
		func(rnd *rand.Rand) { // a process that stands still, shorter or longer than its sessions' timeout
			p := team[rnd.IntN(len(team))].cmd.Process
			_ = p.Signal(syscall.SIGSTOP)
			time.AfterFunc(time.Duration(rnd.Int64N(int64(3*workerTimeout/2))),
				func() { _ = p.Signal(syscall.SIGCONT) })
		},
		func(rnd *rand.Rand) { // kill -9 of a process; another takes its place
			i := rnd.IntN(len(team))
			team[i].kill()
			gone = append(gone, team[i])
			team[i] = start((len(team) + len(gone)) * clientsPerWorker)
		},
	}, a.faults...)
	end := time.Now().Add(lengthOf(t))
	blip, stall := time.NewTicker(40*time.Millisecond), time.NewTicker(workerTimeout/2)
	defer blip.Stop()
	defer stall.Stop()
	for time.Now().Before(end) || len(holdsOf(append(gone, team...))) < enoughHolds {
		select {
		case <-blip.C:
			blips[rnd.IntN(len(blips))](rnd)
		case <-stall.C:
			stalls[rnd.IntN(len(stalls))](rnd)
		case <-t.Context().Done():
			t.Fatal("the test's time is up")
		}
	}
	a.link.Control(nil)
	a.link.Heal()
	for _, w := range team {
		_ = w.cmd.Process.Signal(syscall.SIGCONT)
	}
	for _, w := range team {
		w.stop()
	}
	noOrphans(t, a.link)
	for _, w := range team {
		_ = w.stdin.Close()
	}
	for _, w := range team {
		w.end()
	}
	judge(t, append(gone, team...))
}

// seedOf is the seed of a random run: new every time, or the one that TURNSTILE_SEED repeats.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("TURNSTILE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("TURNSTILE_SEED: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with TURNSTILE_SEED=%d", seed)
		}
	})
	return seed
}

// lengthOf is how long a random run lasts: a few seconds, or what TURNSTILE_CONTENTION says.
func lengthOf(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("TURNSTILE_CONTENTION")
	if text == "" {
		return soak.Pick(6*time.Second, 12*time.Second)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("TURNSTILE_CONTENTION: %v", err)
	}
	return d
}

// drop makes the link lose one of the next requests in a way of its own.
func drop(l *zktest.Link, rnd *rand.Rand, fault zktest.Fault) {
	nth := 1 + rnd.IntN(20)
	l.Control(func(r zktest.Request) zktest.Fault {
		if r.Seq == nth {
			return fault
		}
		return zktest.Pass
	})
}

// anyone is one of the sessions that are connected, 0 if none is.
func anyone(l *zktest.Link, rnd *rand.Rand) int64 {
	ids := l.Connected()
	if len(ids) == 0 {
		return 0
	}
	return ids[rnd.IntN(len(ids))]
}

// noOrphans waits until the lock's directory is empty, while the sessions of those who used it are still there. Nodes
// of sessions whose processes were killed go when these expire; what is there long after that is an orphan.
func noOrphans(t *testing.T, l *zktest.Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*workerTimeout)
	defer cancel()
	sess := session(t, l.Client(t, time.Minute))
	for {
		names, _, watch, err := sess.ChildrenW(ctx, path)
		switch {
		case errors.Is(err, zk.NoNode) || err == nil && len(names) == 0:
			return
		case err == nil:
			if _, err = watch.Next(ctx); err == nil {
				watch.Close()
				continue
			}
		case errors.Is(err, zk.ErrConnectionLost):
			continue
		}
		t.Fatalf("orphans: %v are left: %v", names, err)
	}
}

// holdsOf is what the workers have reported so far.
func holdsOf(team []*worker) []lincheck.Hold {
	var holds []lincheck.Hold
	for _, w := range team {
		w.mu.Lock()
		holds = slices.AppendSeq(holds, maps.Values(w.holds))
		w.mu.Unlock()
	}
	return holds
}

// judge puts together what the workers saw, and fails the test unless it is what one lock does.
func judge(t *testing.T, team []*worker) {
	t.Helper()
	holds := holdsOf(team)
	t.Logf("%d holds", len(holds))
	dir := t.ArtifactDir()
	if err := lincheck.CheckMutex(holds, dir); err != nil {
		raw, _ := json.Marshal(holds)
		_ = os.WriteFile(filepath.Join(dir, "holds.json"), raw, 0o600)
		t.Error(err)
	}
}
