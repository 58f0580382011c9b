package zk

// Batches of requests, and futures of their replies.

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// A Batch collects operations that leave in one write, in order, and are answered in order. Each gives a Future of its answer.
// Nothing is all-or-nothing about it: that is Multi. A Batch is for one goroutine at a time; its futures are for all.
type Batch struct {
	sess   *Session
	frames []byte
	calls  []*call
	closed []*Watch
}

// Batch returns an empty batch. It belongs to the session and fails with it.
func (s *Session) Batch() *Batch { return &Batch{sess: s} }

// Send puts the operations on the wire, or into the queue while there is no connection. It does not wait for answers. The batch is
// then empty and can be used again.
func (b *Batch) Send() {
	s := b.sess
	for _, w := range b.closed {
		w.forget()
	}
	s.mu.Lock()
	for _, w := range b.closed {
		w.unset()
	}
	if cause := s.cause; cause != nil {
		s.mu.Unlock()
		b.drop(cause)
		b.reset()
		return
	}
	b.queue()
	s.flush(true)
	b.reset()
}

// SendOn has the operations sent with the next event of w, without a goroutine in between: whoever waits for their answers and not for the
// event is woken once and not twice. If w has fired or was closed before, they are sent at once; if it is closed or the session ends before
// there is an event, they fail with outcome NotSent. A later SendOn for the same watch takes the place of an earlier one, which fails like
// that, too. SendOn does not wait; the batch is then empty and can be used again. The watch must be of the batch's session; the next event of
// a persistent one is the next that comes, not one that waits to be read. What Unwatch has added to the batch is closed at once.
//
// Stop withdraws what was not sent yet, which fails with outcome NotSent then. It may be called at any time.
func (b *Batch) SendOn(w *Watch) (stop func()) {
	for _, other := range b.closed {
		other.Close()
	}
	b.closed = nil
	s := b.sess
	s.mu.Lock()
	if !w.set || s.cause != nil {
		s.mu.Unlock()
		b.Send()
		return func() {}
	}
	held := &Batch{sess: s, frames: b.frames, calls: b.calls}
	*b = Batch{sess: s}
	before := w.then
	w.then = held
	s.mu.Unlock()
	before.drop(errWithdrawn)
	return func() {
		s.mu.Lock()
		ours := w.then == held
		if ours {
			w.then = nil
		}
		s.mu.Unlock()
		if ours {
			held.drop(errWithdrawn)
		}
	}
}

var errWithdrawn = errors.New("the operation was withdrawn before it was sent")

// queue appends the operations to what is to be written. The caller holds the session's mu, and flushes.
func (b *Batch) queue() {
	s, at := b.sess, 0
	for _, c := range b.calls {
		c.begin()
		c.xid = s.takeXid()
		binary.BigEndian.PutUint32(b.frames[at+4:], uint32(c.xid))
		s.queued(c, c.size)
		at += c.size
	}
	s.out = append(s.out, b.frames...)
}

// drop fails operations that are not sent. There may be no batch.
func (b *Batch) drop(cause error) {
	if b == nil {
		return
	}
	for _, c := range b.calls {
		c.drop(cause, NotSent)
	}
}

func (b *Batch) reset() {
	clear(b.calls)
	clear(b.closed)
	b.calls, b.closed = b.calls[:0], b.closed[:0]
	if b.frames = b.frames[:0]; cap(b.frames) > keepBuffer {
		b.frames = nil
	}
}

// add encodes an operation, or lets its future fail at once if err says that it is not valid.
func (b *Batch) add(op wire.Op, path string, body wire.Record, err error) *call {
	c := b.sess.newFutureCall(op, path)
	if err != nil {
		c.drop(err, NotSent)
		return c
	}
	start := len(b.frames)
	b.frames = wire.AppendRequest(b.frames, 0, op, body)
	c.size = len(b.frames) - start
	b.calls = append(b.calls, c)
	return c
}

func (b *Batch) server(path string) string { return b.sess.client.cfg.root.server(path) }

// Create adds Session.Create.
func (b *Batch) Create(path string, data []byte, mode Mode) *Future[Created] {
	return b.CreateNode(Node{Path: path, Data: data, Mode: mode})
}

// CreateNode adds Session.CreateNode.
func (b *Batch) CreateNode(n Node) *Future[Created] {
	op := n.Mode.op()
	req := n.request(b.sess.client.cfg.root)
	return newFuture(b.add(op, n.Path, createBody(op, &req), n.validate()), (*call).created)
}

// Delete adds Session.Delete.
func (b *Batch) Delete(path string, version int32) *Future[struct{}] {
	req := &wire.DeleteRequest{Path: b.server(path), Version: version}
	return newFuture(b.add(wire.OpDelete, path, req, ValidatePath(path)), (*call).nothing)
}

// Set adds Session.Set.
func (b *Batch) Set(path string, data []byte, version int32) *Future[Stat] {
	req := &wire.SetDataRequest{Path: b.server(path), Data: data, Version: version}
	return newFuture(b.add(wire.OpSetData, path, req, ValidatePath(path)), (*call).onlyStat)
}

// Get adds Session.Get.
func (b *Batch) Get(path string) *Future[Data] {
	return newFuture(b.read(wire.OpGetData, path), (*call).dataAndStat)
}

// GetW adds Session.GetW. Whoever gives up on the answer calls Abandon on the future, or the watch stays.
func (b *Batch) GetW(path string) *Future[WatchedData] {
	c := b.add(wire.OpGetData, path, &wire.PathWatchRequest{Path: b.server(path), Watch: true}, ValidatePath(path))
	if c.state.Load() == callOpen {
		c.watch = b.sess.newWatch(path, watchData)
	}
	return newFuture(c, (*call).watched)
}

// Unwatch adds Watch.Close. The watch is removed at the server before any operation of the batch is executed.
func (b *Batch) Unwatch(w *Watch) { b.closed = append(b.closed, w) }

// Children adds Session.Children.
func (b *Batch) Children(path string) *Future[Children] {
	return newFuture(b.read(wire.OpGetChildren2, path), (*call).children)
}

// Exists adds Session.Exists.
func (b *Batch) Exists(path string) *Future[Existence] {
	return newFuture(b.read(wire.OpExists, path), (*call).existence)
}

// Sync adds Session.Sync.
func (b *Batch) Sync(path string) *Future[struct{}] {
	return newFuture(b.add(wire.OpSync, path, &wire.PathRequest{Path: b.server(path)}, ValidatePath(path)), (*call).nothing)
}

// Multi adds Session.Multi.
func (b *Batch) Multi(ops ...Op) *Future[[]Result] {
	req, err := b.sess.multiRequest(ops)
	c := b.add(wire.OpMulti, "", req, err)
	c.ops, c.parts = ops, len(ops)
	return newFuture(c, (*call).results)
}

func (b *Batch) read(op wire.Op, path string) *call {
	return b.add(op, path, &wire.PathWatchRequest{Path: b.server(path)}, ValidatePath(path))
}

func (c *call) nothing() struct{}  { return struct{}{} }
func (c *call) onlyStat() Stat     { return Stat(c.stat) }
func (c *call) dataAndStat() Data  { return Data{Data: c.data, Stat: Stat(c.stat)} }
func (c *call) children() Children { return Children{Names: c.names, Stat: Stat(c.stat)} }

func (c *call) existence() Existence {
	return Existence{Stat: Stat(c.stat), Exists: c.code == wire.OK}
}

func (c *call) watched() WatchedData {
	return WatchedData{Data: c.data, Stat: Stat(c.stat), Watch: c.watch}
}

// A Future is the answer of an operation that was sent by a Batch. All methods may be called from any goroutine, any number of
// times.
type Future[T any] struct {
	call   *call
	value  func(*call) T
	hooked atomic.Bool
}

func newFuture[T any](c *call, value func(*call) T) *Future[T] {
	c.begin()
	return &Future[T]{call: c, value: value}
}

// begin has the call's time count from now, if a hook wants to know.
func (c *call) begin() {
	if c.sess.client.cfg.Hooks.Request != nil {
		c.made = time.Now()
	}
}

// Done returns a channel that is closed when there is an answer, or none to come any more.
func (f *Future[T]) Done() <-chan struct{} { return f.call.done }

// Get waits for the answer. If ctx ends first it returns ctx's cause, with outcome Unknown: that detaches the caller and nothing
// else, and Get can be called again. It waits for ever if the batch is never sent.
func (f *Future[T]) Get(ctx context.Context) (T, error) {
	c := f.call
	var zero T
	select {
	case <-c.done:
	default:
		select {
		case <-c.done:
		case <-ctx.Done():
			return zero, &Error{Op: opName(c.op), Path: c.path, Err: contextError(ctx), Outcome: Unknown}
		}
	}
	err := c.failure()
	if hook := c.sess.client.cfg.Hooks.Request; hook != nil && f.hooked.CompareAndSwap(false, true) {
		hook(ctx, RequestDone{Op: opName(c.op), Path: c.path, Took: time.Since(c.made), Err: err})
	}
	if err != nil {
		return zero, err
	}
	return f.value(c), nil
}

var errAbandoned = errors.New("the future was abandoned")

// Abandon says that nobody will ask for the answer: a watch that comes with it is closed. The operation itself goes
// on. Abandoning a future again does nothing.
func (f *Future[T]) Abandon() {
	c := f.call
	if c.watch == nil || c.state.CompareAndSwap(callOpen, callLeft) || c.state.Load() == callLeft {
		return // or the session will see that nobody wants the watch
	}
	<-c.done
	if c.failure() == nil {
		c.watch.Close()
	}
}
