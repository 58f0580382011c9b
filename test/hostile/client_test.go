//go:build linux

package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// polite is a program that behaves: it has two sessions, locks, writes, reads, and watches what it has written.
type polite struct {
	t              *testing.T
	mutex          *lock.Mutex
	writer, reader *zk.Session

	mu   sync.Mutex // guards took
	took []time.Duration

	disconnects atomic.Int64 // that it has noticed
	ended       chan struct{}
	stop        chan struct{}
}

const politeNode = "/polite"

func behave(t *testing.T, addr string) *polite {
	t.Helper()
	p := &polite{t: t, ended: make(chan struct{}), stop: make(chan struct{})}
	open := func() *zk.Client {
		client, err := zk.Open(t.Context(), zk.Config{Servers: addr, Timeout: 40 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	session := func(client *zk.Client) *zk.Session {
		s, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	writes, reads := open(), open()
	p.writer, p.reader = session(writes), session(reads)
	var err error
	if p.mutex, err = lock.NewMutex(writes, politeNode+"-lock", lock.Config{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.writer.Create(t.Context(), politeNode, nil, zk.Persistent); err != nil {
		t.Fatal(err)
	}
	go p.run()
	t.Cleanup(p.end)
	return p
}

// end stops the client, once.
func (p *polite) end() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	<-p.ended
}

func (p *polite) run() {
	defer close(p.ended)
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-p.stop:
			return
		case <-pace.C:
		}
		err := p.round(n)
		if lost := errors.Join(p.writer.Context().Err(), p.reader.Context().Err()); lost != nil {
			p.t.Errorf("the client that behaves, round %d: a session is lost: %v (%v)", n, lost, err)
			return
		}
		switch {
		case err == nil:
		case p.t.Context().Err() == nil && errors.Is(err, zk.ErrConnectionLost):
			p.disconnects.Add(1) // its time is counted, and the next round tries again
		default:
			p.t.Errorf("the client that behaves, round %d: %v", n, err)
			return
		}
	}
}

// round does one thing of each kind.
func (p *polite) round(n int) error {
	ctx := p.t.Context()
	if err := p.time(func() error { return p.locked(ctx) }); err != nil {
		return err
	}
	_, _, watch, err := p.reader.GetW(ctx, politeNode)
	if err != nil {
		return err
	}
	defer watch.Close()
	value := fmt.Append(nil, n)
	err = p.time(func() error { // until the other session has heard of it
		if _, err := p.writer.Set(ctx, politeNode, value, -1); err != nil {
			return err
		}
		_, err := watch.Next(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return p.time(func() error {
		data, _, err := p.reader.Get(ctx, politeNode)
		if err == nil && string(data) != string(value) {
			err = fmt.Errorf("got %q after the event, want %q", data, value)
		}
		return err
	})
}

func (p *polite) locked(ctx context.Context) error {
	hold, err := p.mutex.Lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(hold.Context().Err(), hold.Unlock())
}

// time notes how long f takes.
func (p *polite) time(f func() error) error {
	start := time.Now()
	err := f()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, time.Since(start))
	return err
}

// taken returns how long everything has taken since the last call.
func (p *polite) taken() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.took
	p.took = nil
	return took
}

// p99 returns the 99th percentile of the times that operations took.
func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(took))[len(took)*99/100]
}
