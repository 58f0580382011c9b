package server

// What one commit makes durable.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/store"
)

// batch is what one commit makes durable, with the frames that wait for it: replies to its writes, their events, and
// replies to reads that may depend on writes that are not durable yet.
type batch struct {
	seq    uint64
	zxid   int64        // the last one it uses
	tx     *store.Batch // nil if it has nothing to write and only waits for earlier batches
	buf    []byte       // the bytes of all frames
	frames []frame
	dirty  []string  // paths that it changes
	bytes  int       // that it writes
	large  int       // bytes of large requests and their replies served since it was begun
	after  []func()  // called once it is durable
	opened time.Time // when it was begun
	began  time.Time // when it was applied, if it writes
	ahead  int       // batches that were not durable when it was sealed
	err    error     // of applying it
}

// frame is one reply or event in a batch's buffer. Frames of one event for many connections share its bytes.
type frame struct {
	conn     *conn
	from, to int
	large    *large // instead of bytes, if the frame is large
	request  bool   // a reply, not an event
	last     bool   // the connection ends after it
	op       wire.Op
	size     int           // of the request
	at       time.Duration // when the request came
	zxid     int64
}

func (b *batch) reset() {
	clear(b.frames)
	clear(b.dirty)
	clear(b.after)
	if cap(b.buf) > 1<<20 {
		b.buf = nil
	}
	*b = batch{buf: b.buf[:0], frames: b.frames[:0], dirty: b.dirty[:0], after: b.after[:0]}
}

// apply applies the batch to the store by one of the store's methods.
func (b *batch) apply(how func(*store.Batch, int64) error) {
	if b.tx != nil {
		b.began = time.Now()
		b.err = how(b.tx, b.zxid)
	}
}

// wait waits until the batch is durable.
func (b *batch) wait(d *durability) error {
	if b.err != nil || b.tx == nil {
		return b.err
	}
	limit, err := b.tx.Wait()
	if err == nil {
		d.limit.Store(limit)
	}
	return err
}

// requests returns how many requests it answers.
func (b *batch) requests() int {
	n := 0
	for i := range b.frames {
		if b.frames[i].request {
			n++
		}
	}
	return n
}

// bytes returns the size of the frame.
func (f *frame) bytes() int {
	if f.large != nil {
		return f.large.size
	}
	return f.to - f.from
}

// put appends the frames to the outboxes of their connections, in order. It returns the connections, in buf's memory.
func (b *batch) put(now time.Duration, buf []*conn) []*conn {
	conns := buf[:0]
	for i := range b.frames {
		f := &b.frames[i]
		f.conn.put(f, b.buf[f.from:f.to], now)
		conns = append(conns, f.conn)
	}
	return conns
}

// flush flushes the connections that got frames, once for consecutive frames of the same connection.
func (b *batch) flush(conns []*conn) {
	for i, c := range conns {
		if i == 0 || c != conns[i-1] {
			c.flush()
		}
	}
	clear(conns)
	for _, f := range b.after {
		f()
	}
}
