//go:build unix

package lin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// workerEnv carries a worker's orders. If it is set, the test binary is a worker.
const workerEnv = "TURNSTILE_LIN_WORKER"

// orders tell a worker process what to do: several clients, each with its own session and connection, use locks or
// queues.
type orders struct {
	Job     string
	Servers []string // one connect string for each client
	Root    string   // above the locks or queues
	Places  []string // their names
	Index   int      // the number of the process, or of the process that it replaces
	First   int      // the number of its first goroutine
	Seed    uint64
	Deaf    bool // holders ignore the end of their holds; producers ignore the bound

	Unproved bool // sessions count their certainty from any answer: see zk.Config.NoCertificates

	Patience time.Duration // for what must come true after the faults; before the epoch's own ends
}

// quiet reports whether this client of a process uses the slow places, and nothing else. It keeps no other client
// waiting. It writes so seldom that it does not notice that its server is cut off, which a write that waits for the
// other servers would show.
func quiet(i int) bool { return i == 0 }

// report is a line of a worker's output. A report without a place says that the worker holds nothing and takes
// nothing any more. It is in the pipe when report returns, and so survives the worker.
type report struct {
	Place string             `json:",omitempty"`
	Hold  *lincheck.Hold     `json:",omitempty"` // at its beginning, now and then, and at its end
	Write *lincheck.Write    `json:",omitempty"`
	Seen  *lincheck.Sighting `json:",omitempty"`

	Failed     bool                 `json:",omitempty"` // an acquisition failed by itself
	Limit      *lincheck.Limit      `json:",omitempty"` // before the write and after its reply
	Revocation *lincheck.Revocation `json:",omitempty"` // before the request and after the release

	Put      *lincheck.Put      `json:",omitempty"` // before the call and after it
	Delivery *lincheck.Delivery `json:",omitempty"` // at its beginning, now and then, before and after its finish
	Purge    *lincheck.Purge    `json:",omitempty"` // before the call and after it
	Requeue  *lincheck.Requeue  `json:",omitempty"` // before the call and after it

	Pause *lincheck.PauseState `json:",omitempty"` // after a pause, and after a resume
	Life  bool                 `json:",omitempty"` // a consumer has begun a session

	Rate     *lincheck.RateState   `json:",omitempty"` // after deliveries of a queue with a rate
	Periodic *lincheck.PeriodicPut `json:",omitempty"` // after the put

	Recipe json.RawMessage `json:",omitempty"` // of a trial other than locks and queues, in its own form
}

func TestMain(m *testing.M) {
	if o := os.Getenv(workerEnv); o != "" {
		if err := work(o); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work runs a worker until its standard input ends. After the first line of input every goroutine finishes.
func work(encoded string) error {
	w := worker{out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal([]byte(encoded), &w.orders); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var clients []*zk.Client
	var wg sync.WaitGroup
	for i, servers := range w.Servers {
		client, err := zk.Open(ctx, zk.Config{Servers: servers, Timeout: timeout, NoCertificates: w.Unproved})
		if err != nil {
			return err
		}
		clients = append(clients, client)
		if err := jobs[w.Job](ctx, &w, &wg, client, i); err != nil {
			return err
		}
	}
	in := bufio.NewReader(os.Stdin)
	_, err := in.ReadString('\n')
	if err != nil {
		return nil // the process that started this one has ended
	}
	stop()
	wg.Wait()
	w.report(report{})
	_, _ = io.Copy(io.Discard, in)
	for _, c := range clients {
		_ = c.Close()
	}
	return nil
}

// worker is a worker process, as it sees itself.
type worker struct {
	orders
	mu  sync.Mutex // guards out
	out encoder
}

// encoder receives reports: a *json.Encoder, unless they stay in the process.
type encoder interface{ Encode(v any) error }

func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r) // if it fails the reader is gone, and the input has ended, too
}

// stay returns when something that was acquired at a time has been held for the given length, or when ctx has ended.
// Until then it records when ctx was last alive, and reports it now and then, for the case that the process is
// killed.
func stay(ctx context.Context, got int64, length time.Duration, alive *int64, tell func()) {
	told := got
	for {
		now := clock()
		if ctx.Err() != nil {
			return
		}
		*alive = now
		left := length - time.Duration(now-got)
		if left <= 0 {
			return
		}
		if now-told > int64(20*time.Millisecond) {
			told = now
			tell()
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(left, time.Millisecond)):
		}
	}
}
