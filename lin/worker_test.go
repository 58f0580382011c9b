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

// workerEnv carries a worker's orders: with it set, the test binary is a worker and no test.
const workerEnv = "TURNSTILE_LIN_WORKER"

// orders say what a worker process does: several clients, each with a session and a way to the servers of its own, use locks or queues.
type orders struct {
	Job     string
	Servers []string // one connect string for each client
	Root    string   // where the locks or queues are
	Places  []string // their names
	Index   int      // which of the processes this is, or has taken the place of
	First   int      // number of the first goroutine
	Seed    uint64
	Deaf    bool // holders go on whatever their hold's context says; producers know of no bound

	Unproved bool // sessions count their certainty from any answer: see zk.Config.NoCertificates
}

// quiet reports whether the client of a process sees to the slow places, and to nothing else. It keeps none of the
// others waiting; and it writes so seldom that it does not notice when its server is cut off from the others: a write
// that waits for them would tell it.
func quiet(i int) bool { return i == 0 }

// report is a line of a worker's output. One that names no place says that the worker holds nothing and takes nothing any more. It is in the
// pipe when report returns, and so survives the worker.
type report struct {
	Place string             `json:",omitempty"`
	Hold  *lincheck.Hold     `json:",omitempty"` // when it begins, while it lasts, and when it ends
	Write *lincheck.Write    `json:",omitempty"`
	Seen  *lincheck.Sighting `json:",omitempty"`

	Failed     bool                 `json:",omitempty"` // an acquisition gave up by itself, for good
	Limit      *lincheck.Limit      `json:",omitempty"` // before it is written, and when that is answered
	Revocation *lincheck.Revocation `json:",omitempty"` // before the holder is asked, and when it has given the lock up

	Put      *lincheck.Put      `json:",omitempty"` // before it is asked, and when it is answered
	Delivery *lincheck.Delivery `json:",omitempty"` // when it begins, while it lasts, before it is finished, and when that is answered
	Purge    *lincheck.Purge    `json:",omitempty"` // before it is asked, and when it is answered
	Requeue  *lincheck.Requeue  `json:",omitempty"` // likewise
	Life     bool               `json:",omitempty"` // a consumer has begun a session
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

// work runs a worker until its standard input ends. After the first line of that, every goroutine comes to rest.
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
		return nil // whoever started this has gone, and so does this
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

// worker is a worker process, seen from within.
type worker struct {
	orders
	mu  sync.Mutex // guards out
	out encoder
}

// encoder is where reports go: a *json.Encoder, unless they do not leave the process.
type encoder interface{ Encode(v any) error }

func (w *worker) report(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(r) // if nobody listens any more, the input has ended, too
}

// stay returns when something that was got at a time has been held for so long, or when ctx has ended. Until then it books at which time ctx was
// alive last, and tells of it now and then, so that it is known if this process is killed.
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
