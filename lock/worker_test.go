package lock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// workerEnv carries a worker's orders: with it set, the test binary is a worker and no test.
const workerEnv = "TURNSTILE_LOCK_WORKER"

// orders say what a worker process does: several clients, each with a session of its own, take one lock again and
// again.
type orders struct {
	Servers string
	Path    string
	First   int // number of the first client
	Clients int
	Timeout time.Duration
	Seed    uint64
}

const goroutinesPerClient = 2

// behaviours are what the workers' mutexes are like.
var behaviours = []lock.Config{
	{Label: "hands off"},
	{Label: "strict", Handoff: lock.StrictFIFO},
	{Label: "keeps", Retain: 5 * time.Millisecond},
}

func TestMain(m *testing.M) {
	if o := os.Getenv(workerEnv); o != "" {
		if err := work(o); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if left := leftRunning(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines of ours have outlived the tests:\n\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leftRunning returns the stacks of goroutines of ours that are left when all tests are over. In a bubble a test fails
// for them; what runs in real time is seen here.
func leftRunning() string {
	var left string
	for range 100 {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		var ours []string
		for _, stack := range strings.Split(string(stacks), "\n\n")[1:] { // the first is this one's
			if strings.Contains(stack, "/turnstile/") {
				ours = append(ours, stack)
			}
		}
		if left = strings.Join(ours, "\n\n"); left == "" {
			break
		}
		time.Sleep(100 * time.Millisecond) // those that end with a client or a session may be about to
	}
	return left
}

// work runs a worker. It prints one line of JSON for every hold when it begins and again when it ends. When its
// standard input says so it stops taking locks and prints "{}"; when the input ends, it closes its sessions and is
// done.
func work(encoded string) error {
	var o orders
	if err := json.Unmarshal([]byte(encoded), &o); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var out sync.Mutex
	report := func(h lincheck.Hold) {
		line, _ := json.Marshal(h)
		out.Lock()
		defer out.Unlock()
		fmt.Println(string(line))
	}
	var clients []*zk.Client
	var wg sync.WaitGroup
	for i := range o.Clients {
		client, err := zk.Open(ctx, zk.Config{Servers: o.Servers, Timeout: o.Timeout})
		if err != nil {
			return err
		}
		clients = append(clients, client)
		m, err := lock.NewMutex(client, o.Path, behaviours[(o.First+i)%len(behaviours)])
		if err != nil {
			return err
		}
		for k := range goroutinesPerClient {
			number := (o.First+i)*goroutinesPerClient + k
			wg.Go(func() { contend(ctx, m, number, rand.New(rand.NewPCG(o.Seed, uint64(number))), report) })
		}
	}
	in := bufio.NewReader(os.Stdin)
	_, err := in.ReadString('\n')
	stop()
	wg.Wait()
	fmt.Println("{}")
	if err == nil {
		_, _ = io.Copy(io.Discard, in)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	return nil
}

// contend takes the lock until ctx ends: mostly waiting as long as it takes, sometimes giving up early, sometimes only
// trying.
func contend(ctx context.Context, m *lock.Mutex, client int, rnd *rand.Rand, report func(lincheck.Hold)) {
	for ctx.Err() == nil {
		hold, err := take(ctx, m, rnd)
		if err != nil {
			continue
		}
		// A moment counts as held if the context is still alive after the clock was read.
		got := time.Now().UnixNano()
		if hold.Context().Err() != nil { // over before it was seen
			_ = hold.Unlock()
			continue
		}
		h := lincheck.Hold{Client: client, Node: hold.Path(), Token: int64(hold.Token()), Got: got, Alive: got}
		report(h)
		for range rnd.IntN(4) { // work: a hold is used as long as its context lives
			select {
			case <-hold.Context().Done():
			case <-time.After(time.Millisecond):
			}
			now := time.Now().UnixNano()
			if hold.Context().Err() != nil {
				break
			}
			h.Alive = now
		}
		now := time.Now().UnixNano()
		if hold.Context().Err() == nil {
			h.Alive = now
		}
		_ = hold.Unlock()
		h.Ended = time.Now().UnixNano()
		report(h)
	}
}

func take(ctx context.Context, m *lock.Mutex, rnd *rand.Rand) (*lock.Hold, error) {
	switch rnd.IntN(10) {
	case 0:
		hold, err := m.TryLock(ctx)
		if errors.Is(err, lock.ErrHeld) {
			time.Sleep(time.Millisecond) // others' turn
		}
		return hold, err
	case 1:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(rnd.IntN(20))*time.Millisecond)
		defer cancel()
		return m.Lock(ctx)
	default:
		return m.Lock(ctx)
	}
}

// worker is a worker process, seen from the test.
type worker struct {
	orders
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stopped chan struct{} // closed when it has stopped taking locks, or is gone
	ended   chan struct{} // closed when its output has ended

	mu    sync.Mutex // guards holds
	holds map[int64]lincheck.Hold
}

func startWorker(t *testing.T, o orders) *worker {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{orders: o, stopped: make(chan struct{}), ended: make(chan struct{}), holds: map[int64]lincheck.Hold{}}
	w.cmd = exec.Command(exe)
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(encoded))
	w.cmd.Stderr = os.Stderr
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go w.read(out)
	return w
}

func (w *worker) read(out io.Reader) {
	defer close(w.ended)
	var once sync.Once
	stopped := func() { once.Do(func() { close(w.stopped) }) }
	defer stopped()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var h lincheck.Hold
		if json.Unmarshal(lines.Bytes(), &h) != nil {
			continue // the last line of a killed worker
		}
		if h.Token == 0 {
			stopped()
			continue
		}
		w.mu.Lock()
		w.holds[h.Token] = h
		w.mu.Unlock()
	}
}

// stop makes the worker take no more locks, and waits until it has let go of them all.
func (w *worker) stop() {
	fmt.Fprintln(w.stdin, "stop")
	<-w.stopped
}

// end waits for the process, which closes its sessions when its input has ended.
func (w *worker) end() {
	<-w.ended
	_ = w.cmd.Wait()
}

// kill ends the worker as kill -9 does.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.cmd.Wait()
}
