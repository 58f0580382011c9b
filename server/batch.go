package server

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/store"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// batch is what one commit makes durable, and the frames that wait for it: the replies to its writes, the events they
// caused, and reads that saw, or could have seen, what is not durable yet.
type batch struct {
	seq    uint64
	zxid   int64        // the last one it spends
	tx     *store.Batch // nil if there is nothing to write: then it only waits for the batches before
	buf    []byte       // the bytes of all frames
	frames []frame
	dirty  []string // paths whose state it changes
	large  int      // bytes of large requests and their replies that were served since it was begun
	after  []func() // to call once it is durable
	err    error    // why the store has not taken it
}

// frame is one reply or event in a batch's buffer. An event for many connections has many frames of the same bytes.
type frame struct {
	conn     *conn
	from, to int
	large    *large // instead of bytes, if there are many
	request  bool   // it answers a request; else it is an event
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

// apply gives the batch to the store, in one of the ways that it has.
func (b *batch) apply(how func(*store.Batch, int64) error) {
	if b.tx != nil {
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

// bytes returns how many bytes the frame has.
func (f *frame) bytes() int {
	if f.large != nil {
		return f.large.size
	}
	return f.to - f.from
}

// put hands the frames to their connections, in order, and returns these connections.
func (b *batch) put(now time.Duration, loud []*conn) []*conn {
	loud = loud[:0]
	for i := range b.frames {
		f := &b.frames[i]
		f.conn.put(f, b.buf[f.from:f.to], now)
		loud = append(loud, f.conn)
	}
	return loud
}

// flush flushes the connections that got frames, each once if its frames stand together.
func (b *batch) flush(loud []*conn) {
	for i, c := range loud {
		if i == 0 || c != loud[i-1] {
			c.flush()
		}
	}
	clear(loud)
	for _, f := range b.after {
		f()
	}
}
