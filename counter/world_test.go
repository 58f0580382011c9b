package counter_test

// What the tests of this package share.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	path    = "/counters/visits"
	timeout = 20 * time.Second
)

// world is a server, and time, that belong to one test: nothing here takes real time, and what waits is known to wait.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, &world{srv, t})
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// counter returns a counter with a client of its own, as another process would have.
func (w *world) counter(cfg counter.Config) *counter.Counter {
	w.t.Helper()
	return w.counterOf(w.Client(w.t, timeout), cfg)
}

func (w *world) counterOf(client *zk.Client, cfg counter.Config) *counter.Counter {
	w.t.Helper()
	c, err := counter.New(client, path, cfg)
	must(w.t, err)
	return c
}

func (w *world) value(client *zk.Client) *counter.Value {
	w.t.Helper()
	v, err := counter.NewValue(client, path, counter.ValueConfig{})
	must(w.t, err)
	return v
}

// write makes the node hold data, as another program would.
func (w *world) write(data []byte) {
	w.t.Helper()
	sess := w.Session(w.t, timeout)
	for _, n := range []zk.Node{{Path: "/counters"}, {Path: path}} {
		_, err := sess.CreateNode(w.t.Context(), n)
		if !errors.Is(err, zk.NodeExists) {
			must(w.t, err)
		}
	}
	_, err := sess.Set(w.t.Context(), path, data, -1)
	must(w.t, err)
}

// data returns what the node holds.
func (w *world) data() []byte {
	w.t.Helper()
	data, _, err := w.Session(w.t, timeout).Get(w.t.Context(), path)
	must(w.t, err)
	return data
}

// remove deletes the node and what is below, as an operator would.
func (w *world) remove() {
	w.t.Helper()
	_, err := w.Session(w.t, timeout).DeleteAll(w.t.Context(), path)
	must(w.t, err)
}

func wantValue(t *testing.T, c *counter.Counter, want int64) {
	t.Helper()
	got, err := c.Get(t.Context())
	must(t, err)
	if got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func add(t *testing.T, c *counter.Counter, n int64) int64 {
	t.Helper()
	v, err := c.Add(t.Context(), n)
	must(t, err)
	return v
}

// isWrite reports whether a request writes to the node.
func isWrite(r zktest.Request) bool {
	for _, p := range r.Parts {
		if p.Path == path && r.Op == zktest.OpMulti && p.Op != zktest.OpCheck {
			return true
		}
	}
	return false
}

var faults = map[string]zktest.Fault{
	"the request is lost":           zktest.Refuse,
	"the connection is cut":         zktest.CutBefore,
	"the reply is lost":             zktest.DropReply,
	"the connection ends behind it": zktest.CutAfter,
}

// atEveryStep runs do with a fault at its first request, again with one at its second, and so on until it has no
// further one.
func (w *world) atEveryStep(do func(fault string, step int)) {
	for name, fault := range faults {
		for step := 1; ; step++ {
			reached := false
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Seq != step {
					return zktest.Pass
				}
				reached = true
				return fault
			})
			do(name, step)
			w.Control(nil)
			if !reached {
				break
			}
		}
	}
}

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
