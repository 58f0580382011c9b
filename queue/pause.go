package queue

// Pausing a queue.

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Pause says that a queue is paused, by which process, when and why.
type Pause struct {
	At      time.Time // by the server's clock
	Host    string
	PID     int
	Program string
	Reason  string
}

// pauseRecord is the data of the pause node while the queue is paused. It is empty while the queue runs.
type pauseRecord struct {
	processInfo
	Reason string `json:"reason,omitempty"`
}

// thisProcess describes this process to people.
func thisProcess() processInfo {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // people read this, no program does
	}
	return processInfo{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0])}
}

// Pause makes all consumers of the queue, in all processes, take no more items until Resume. Items in hand are not
// affected: they can be finished as usual. Puts go on. If the queue is paused already, it stays as it is.
//
// After Pause has returned nil no consumer claims another item. What one has claimed ahead it may hand out until it has
// heard of the pause, which takes a connected one as long as an event from its server; then it gives the rest back. The
// pause outlives all sessions. If ctx ends first, the queue may be paused all the same.
func (q *Queue) Pause(ctx context.Context, reason string) error {
	data, err := json.Marshal(pauseRecord{thisProcess(), reason})
	if err == nil {
		err = q.producer.setPause(ctx, data)
	}
	if err != nil {
		return q.failed("pause", err)
	}
	return nil
}

// Resume ends a pause. If the queue is not paused, it does nothing. It fails as Pause does.
func (q *Queue) Resume(ctx context.Context) error {
	if err := q.producer.setPause(ctx, nil); err != nil {
		return q.failed("resume", err)
	}
	return nil
}

// Paused returns who has paused the queue, nil if it is not paused.
func (q *Queue) Paused(ctx context.Context) (*Pause, error) {
	data, stat, err := q.reader.pause(ctx)
	if err != nil {
		return nil, q.failed("look at", err)
	}
	if len(data) == 0 {
		return nil, nil //nolint:nilnil // it is not paused
	}
	var p pauseRecord
	if json.Unmarshal(data, &p) != nil {
		p = pauseRecord{Reason: string(data)} // another program has paused it
	}
	return &Pause{time.UnixMilli(stat.Mtime), p.Host, p.PID, p.Program, p.Reason}, nil
}

// pause reads the pause node.
func (r reader) pause(ctx context.Context) (data []byte, stat zk.Stat, err error) {
	err = r.retryRead(ctx, func(sess *zk.Session) (err error) {
		b := sess.Batch()
		b.Sync(r.layout.path(dirPause))
		get := b.Get(r.layout.path(dirPause))
		b.Send()
		node, err := get.Get(ctx)
		data, stat = node.Data, node.Stat
		return err
	})
	return data, stat, err
}

// setPause writes the pause node, unless it says the same. It writes on condition of the version that it has seen, so
// that it does not undo what another client does meanwhile.
func (p *producer) setPause(ctx context.Context, data []byte) error {
	for {
		old, stat, err := p.pause(ctx)
		if err != nil || (len(old) > 0) == (len(data) > 0) {
			return err
		}
		err = p.apply(ctx, zk.SetOp(p.layout.path(dirPause), data, stat.Version))
		switch {
		case err == nil:
			return nil
		case zk.OutcomeOf(err) == zk.Unknown:
			return err
		case !errors.Is(err, zk.BadVersion) && !p.missing(err):
			return err
		}
	}
}

// pauseState is what a consumer knows of the pause node. It is part of the watches.
type pauseState struct {
	pause   *watch // on the pause node
	paused  bool
	version int32 // of the pause node: claims are made on condition of it; -1: of any
}

// lookAtPause reports whether the queue is paused, as far as this consumer's server has told it. It asks only if the
// pause node may have changed.
func (f *fetcher) lookAtPause(ctx context.Context) (paused bool, err error) {
	d := f.co.d
	d.mu.Lock()
	known, paused := !f.co.pause.hasFired(), f.co.paused
	d.mu.Unlock()
	if known {
		return paused, nil
	}
	data, stat, w, err := f.co.sess.GetW(ctx, d.layout.path(dirPause))
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f.co.pauseState = pauseState{&watch{w: w}, len(data) > 0, stat.Version}
	return f.co.paused, nil
}

// forgetPause makes the consumer look at the pause node again: a claim was refused because the node has changed. The
// watch tells, too, but perhaps later.
func (f *fetcher) forgetPause() {
	f.co.d.mu.Lock()
	w := f.co.pause
	f.co.pause = nil
	f.co.d.mu.Unlock()
	if w != nil {
		w.w.Close()
	}
}

// stayPaused does the next thing for the takers while the queue is paused: it gives back what was claimed ahead,
// answers those that do not want to wait, and waits.
func (d *dispatcher) stayPaused(ctx context.Context, co *consumer) error {
	d.mu.Lock()
	d.more = false
	d.takers.noteFetch()
	trying, buffered := d.takers.trying(), len(co.leases) > 0
	d.mu.Unlock()
	if buffered {
		if _, err := co.returner.returnAll(co.ctx, false); err != nil {
			return err
		}
	}
	if trying { // it learns what is true now, not what a server that lags behind believes
		if err := co.sess.Sync(ctx, d.layout.root); err != nil {
			return err
		}
		if paused, err := co.fetcher.lookAtPause(ctx); err != nil || !paused {
			return err
		}
	}
	d.mu.Lock()
	d.takers.nothingThere(ErrPaused)
	waiting := len(d.takers) > 0
	d.mu.Unlock()
	if waiting {
		return co.waiter.wait(ctx)
	}
	return nil
}
