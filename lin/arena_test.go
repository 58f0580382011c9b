//go:build unix

package lin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// clientFaults lets faults come over the clients at their times, and ends those that last at theirs.
func (e *epoch) clientFaults(ctx context.Context, faults []fault) {
	begin := time.Now()
	type end struct {
		at   time.Duration
		heal func()
	}
	var ends []end
	endUntil := func(at time.Duration) bool {
		slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
		for len(ends) > 0 && ends[0].at <= at {
			if !pause(ctx, time.Until(begin.Add(ends[0].at))) {
				return false
			}
			ends[0].heal()
			ends = ends[1:]
		}
		return pause(ctx, time.Until(begin.Add(at)))
	}
	for _, f := range faults {
		if !endUntil(f.at) {
			return
		}
		if heal := e.hit(f); heal != nil {
			ends = append(ends, end{f.at + f.lasts, heal})
		}
	}
	endUntil(math.MaxInt64)
}

// blips are the faults that are aimed at one request.
var blips = map[string]func(f fault) zktest.Fault{
	dropReply:  func(fault) zktest.Fault { return zktest.DropReply },
	refuse:     func(fault) zktest.Fault { return zktest.Refuse },
	cutBefore:  func(fault) zktest.Fault { return zktest.CutBefore },
	cutAfter:   func(fault) zktest.Fault { return zktest.CutAfter },
	delayReply: func(f fault) zktest.Fault { return zktest.DelayReply(f.lasts) },
}

// hit makes f happen, and returns what ends it if it lasts. If two things are wrong with a connection, the end of the first ends both.
func (e *epoch) hit(f fault) (heal func()) {
	whom := f.whom
	if number, held := e.journal.holder(f.place); held {
		if i := slices.Index(e.first, number/numbersPerProcess*numbersPerProcess); i >= 0 { // or it has been killed
			whom = i*clientsPerProcess + number%numbersPerProcess/goroutinesPerClient
		}
	}
	l, i := e.links[whom], whom/clientsPerProcess
	p := e.team[i]
	switch f.what {
	case drop:
		l.Drop()
		return nil
	case dropAll:
		for _, l := range e.links {
			l.Drop()
		}
		return nil
	case killProcess:
		p.kill()
		e.start(i)
		return nil
	case stopProcess:
		p.signal(syscall.SIGSTOP)
		return func() { p.signal(syscall.SIGCONT) }
	case cut:
		l.Cut()
	case halfOpen:
		l.HalfOpen()
	case mute:
		l.Mute()
	case freeze:
		l.Freeze()
	case slow:
		l.Delay(f.lasts / 50)
	default:
		l.Control(func(r zktest.Request) zktest.Fault {
			if r.Seq == f.nth {
				return blips[f.what](f)
			}
			return zktest.Pass
		})
		return nil
	}
	return func() { l.Heal() }
}

// serverFaults lets faults come over the servers, one after the other, until ctx ends. Then all servers serve.
func (e *epoch) serverFaults(ctx context.Context, faults []fault) {
	if e.ensemble == nil {
		<-ctx.Done()
		return
	}
	for _, f := range faults {
		if !pause(ctx, f.at) {
			return
		}
		whom := f.whom
		if f.what == killLeader || f.what == stopLeader {
			if i := e.ensemble.Leader(); i >= 0 {
				whom = i
			}
		}
		switch f.what {
		case killServer, killLeader:
			e.ensemble.Kill(whom)
			pause(ctx, f.lasts)
			e.ensemble.Restart(whom)
		case stopServer, stopLeader:
			e.ensemble.Pause(whom)
			pause(ctx, f.lasts)
			e.ensemble.Resume(whom)
		}
	}
	<-ctx.Done()
}

// pause waits for d, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// calmDown ends all faults, waits until everybody was served once more, and sees that no node is left behind.
func (e *epoch) calmDown(sess *zk.Session) error {
	for _, l := range e.links {
		l.Control(nil)
		l.Heal()
	}
	for _, p := range e.team {
		p.signal(syscall.SIGCONT)
		p.calmDown()
	}
	var trouble []error
	for _, p := range e.team {
		if err := p.awaitCalm(patience); err != nil {
			trouble = append(trouble, err)
			e.keepServers(sess)
			p.dump()
		}
	}
	if len(trouble) == 0 { // the sessions are still there, so what they hold is not gone with them
		if err := e.noOrphans(sess); err != nil {
			trouble = append(trouble, err)
			e.keepServers(sess)
		}
	}
	for _, p := range e.team {
		p.end()
	}
	return errors.Join(trouble...)
}

// keepServers writes down what the servers know of those who have not come to an end.
func (e *epoch) keepServers(sess *zk.Session) {
	var text strings.Builder
	left, err := ephemerals(e.t.Context(), sess, e.root)
	fmt.Fprintf(&text, "left: %v\n%s\n", err, strings.Join(left, "\n"))
	for i := 0; e.ensemble != nil && i < e.ensemble.Len(); i++ {
		for _, word := range []string{"srvr", "cons", "dump", "wchp"} {
			answer, err := e.ensemble.Word(i, word)
			fmt.Fprintf(&text, "\n== server %d, %s (%v)\n%s", i, word, err, answer)
		}
	}
	_ = os.WriteFile(filepath.Join(e.dir, "servers.txt"), []byte(text.String()), 0o600) // the failure itself is told
}

// noOrphans waits until no contender's node is left. Nodes of sessions whose processes were killed, or lost them, go when these expire; what
// is there long after that is an orphan.
func (e *epoch) noOrphans(sess *zk.Session) error {
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	for {
		left, err := ephemerals(ctx, sess, e.root)
		if err == nil && len(left) == 0 {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("orphans: %v after everybody has left: %v (%w)", patience, left, err)
		}
	}
}

// ephemerals returns the ephemeral nodes below a path, with the sessions that they belong to.
func ephemerals(ctx context.Context, sess *zk.Session, path string) ([]string, error) {
	names, _, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		node := path + "/" + name
		stat, ok, err := sess.Exists(ctx, node)
		if err != nil {
			return nil, err
		}
		if ok && stat.EphemeralOwner != 0 {
			found = append(found, fmt.Sprintf("%s of session %#x", node, stat.EphemeralOwner))
			continue
		}
		below, err := ephemerals(ctx, sess, node)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}
