package zk

// Batches of requests, and futures of their replies.

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// A Batch collects operations that leave in one write. The server executes and answers them in order, each on its own;
// Multi is all or nothing. Each operation returns a Future of its reply. Only one goroutine may use a Batch at a time,
// but several may use its futures.
type Batch struct {
	sess   *Session
	frames []byte
	calls  []*call
	closed []*Watch
}

// Batch returns an empty batch. Its operations fail when the session ends.
func (s *Session) Batch() *Batch { return &Batch{sess: s} }

// Send sends the operations, or queues them while there is no connection. It does not wait for replies. The batch is
// then empty and can be used again.
func (b *Batch) Send() {
	s := b.sess
	for _, w := range b.closed {
		w.discard()
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

// SendOn sends the operations when the next event of w arrives, without waking a goroutine first, and at once if w has
// fired or was closed. They fail with outcome NotSent if w is closed or the session ends before an event arrives, if
// stop is called, or if another SendOn for w replaces them. SendOn does not wait; the batch is then empty and can be
// used again.
//
// The watch must belong to the batch's session. The next event of a persistent watch is the next to arrive, even if
// earlier ones have not been read. SendOn closes the watches that were added with Unwatch at once. Stop may be called
// at any time.
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
	before.drop(errCanceled)
	return func() {
		s.mu.Lock()
		ours := w.then == held
		if ours {
			w.then = nil
		}
		s.mu.Unlock()
		if ours {
			held.drop(errCanceled)
		}
	}
}

var errCanceled = errors.New("operation canceled before it was sent")

// queue appends the operations to the session's output. The caller holds the session's mu, and flushes.
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

// drop fails the operations with outcome NotSent. The batch may be nil.
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

// add encodes an operation. If err is not nil the operation is invalid, and its future fails at once.
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

// Create adds the operation of Session.Create.
func (b *Batch) Create(path string, data []byte, mode Mode) *Future[Created] {
	return b.CreateNode(Node{Path: path, Data: data, Mode: mode})
}

// CreateNode adds the operation of Session.CreateNode.
func (b *Batch) CreateNode(n Node) *Future[Created] {
	op := n.Mode.op()
	req := n.request(b.sess.client.cfg.root)
	return newFuture(b.add(op, n.Path, createBody(op, &req), n.validate()), (*call).created)
}

// Delete adds the operation of Session.Delete.
func (b *Batch) Delete(path string, version int32) *Future[struct{}] {
	req := &wire.DeleteRequest{Path: b.server(path), Version: version}
	return newFuture(b.add(wire.OpDelete, path, req, ValidatePath(path)), (*call).nothing)
}

// Set adds the operation of Session.Set.
func (b *Batch) Set(path string, data []byte, version int32) *Future[Stat] {
	req := &wire.SetDataRequest{Path: b.server(path), Data: data, Version: version}
	return newFuture(b.add(wire.OpSetData, path, req, ValidatePath(path)), (*call).onlyStat)
}

// Get adds the operation of Session.Get.
func (b *Batch) Get(path string) *Future[Data] {
	return newFuture(b.read(wire.OpGetData, path), (*call).dataAndStat)
}

// GetW adds the operation of Session.GetW. A caller who no longer needs the reply must call Abandon on the future, or
// the watch stays.
func (b *Batch) GetW(path string) *Future[WatchedData] {
	return newFuture(b.readWatch(wire.OpGetData, path, watchData), (*call).watched)
}

// ChildrenW adds the operation of Session.ChildrenW. A caller who no longer needs the reply must call Abandon on the
// future, or the watch stays.
func (b *Batch) ChildrenW(path string) *Future[WatchedChildren] {
	return newFuture(b.readWatch(wire.OpGetChildren2, path, watchChild), (*call).watchedChildren)
}

// ExistsW adds the operation of Session.ExistsW. A caller who no longer needs the reply must call Abandon on the
// future, or the watch stays.
func (b *Batch) ExistsW(path string) *Future[WatchedExistence] {
	return newFuture(b.readWatch(wire.OpExists, path, watchData), (*call).watchedExistence)
}

// Unwatch adds Watch.Close. The server removes the watch before it executes the operations of the batch.
func (b *Batch) Unwatch(w *Watch) { b.closed = append(b.closed, w) }

// Children adds the operation of Session.Children.
func (b *Batch) Children(path string) *Future[Children] {
	return newFuture(b.read(wire.OpGetChildren2, path), (*call).children)
}

// Exists adds the operation of Session.Exists.
func (b *Batch) Exists(path string) *Future[Existence] {
	return newFuture(b.read(wire.OpExists, path), (*call).existence)
}

// Sync adds the operation of Session.Sync.
func (b *Batch) Sync(path string) *Future[struct{}] {
	req := &wire.PathRequest{Path: b.server(path)}
	return newFuture(b.add(wire.OpSync, path, req, ValidatePath(path)), (*call).nothing)
}

// Multi adds the operation of Session.Multi.
func (b *Batch) Multi(ops ...Op) *Future[[]Result] {
	req, err := b.sess.multiRequest(ops)
	c := b.add(wire.OpMulti, "", req, err)
	c.ops, c.parts = slices.Clone(ops), len(ops) // for errors and hooks, which may come later
	return newFuture(c, (*call).results)
}

// MultiRead adds the operation of Session.MultiRead.
func (b *Batch) MultiRead(ops ...ReadOp) *Future[[]ReadResult] {
	req, err := b.sess.multiReadRequest(ops)
	c := b.add(wire.OpMultiRead, "", req, err)
	c.parts = len(ops)
	return newFuture(c, (*call).readResults)
}

func (b *Batch) read(op wire.Op, path string) *call {
	return b.add(op, path, &wire.PathWatchRequest{Path: b.server(path)}, ValidatePath(path))
}

func (b *Batch) readWatch(op wire.Op, path string, kind watchKind) *call {
	c := b.add(op, path, &wire.PathWatchRequest{Path: b.server(path), Watch: true}, b.sess.validateWatch(path))
	if c.state.Load() == callOpen {
		c.watch = b.sess.newWatch(path, kind)
	}
	return c
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

func (c *call) watchedChildren() WatchedChildren {
	return WatchedChildren{Names: c.names, Stat: Stat(c.stat), Watch: c.watch}
}

func (c *call) watchedExistence() WatchedExistence {
	return WatchedExistence{Stat: Stat(c.stat), Exists: c.code == wire.OK, Watch: c.watch}
}

// A Future is the reply to an operation of a Batch. Its methods may be called from several goroutines at once, any
// number of times.
type Future[T any] struct {
	call  *call
	value func(*call) T
}

func newFuture[T any](c *call, value func(*call) T) *Future[T] {
	return &Future[T]{call: c, value: value}
}

// begin starts measuring the call's time, if a hook needs it.
func (c *call) begin() {
	if c.sess.client.cfg.Hooks.Request != nil {
		c.made = time.Now()
	}
}

// Done returns a channel that is closed when the operation has been answered or has failed.
func (f *Future[T]) Done() <-chan struct{} { return f.call.done }

// Get waits for the reply and returns it. If ctx ends first it returns ctx's cause with outcome Unknown; the operation
// goes on, and Get may be called again. If the batch is never sent, Get waits until ctx ends.
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
	if err := c.failure(); err != nil {
		return zero, err
	}
	return f.value(c), nil
}

// Zxid returns the transaction of a write that has succeeded, and after any other reply the last one that the server
// had done. It is 0 if there is no reply. Call it after Get.
func (f *Future[T]) Zxid() int64 {
	select {
	case <-f.call.done:
		return f.call.zxid
	default:
		return 0
	}
}

var errAbandoned = errors.New("future was abandoned")

// Abandon declares that the reply is not needed: if it comes with a watch, the watch is closed. The operation itself
// goes on. A second Abandon does nothing.
func (f *Future[T]) Abandon() {
	c := f.call
	if c.watch == nil || c.state.CompareAndSwap(callOpen, callLeft) || c.state.Load() == callLeft {
		return // the session closes the watch when the reply arrives
	}
	<-c.done
	if c.failure() == nil {
		c.watch.Close()
	}
}
