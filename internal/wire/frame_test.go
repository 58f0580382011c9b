package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

func frame(n int) []byte {
	b := wire.BeginFrame(nil)
	for i := range n {
		b = append(b, byte(i))
	}
	return wire.EndFrame(b, 0)
}

func TestFramesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 4, 100, 64 << 10, 64<<10 + 1, 200000, wire.DefaultMaxFrame} {
		b := frame(n)
		for _, buf := range [][]byte{nil, make([]byte, 10), make([]byte, 0, 70000), make([]byte, n)} {
			for _, r := range []io.Reader{
				bytes.NewReader(b), iotest.HalfReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b)),
			} {
				got, err := wire.ReadFrame(r, wire.DefaultMaxFrame, buf)
				if err != nil || !bytes.Equal(got, b[4:]) {
					t.Fatalf("%d bytes: %v, got %d", n, err, len(got))
				}
				if cap(buf) >= n && n > 0 && &got[0] != &buf[:1][0] {
					t.Errorf("%d bytes are not in the buffer of %d", n, cap(buf))
				}
			}
		}
	}
}

func TestFrameLengthIsCheckedBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		length int32
		limit  int
		ok     bool
	}{
		{-1, 100, false},
		{math.MinInt32, 100, false},
		{101, 100, false},
		{math.MaxInt32, 100, false},
		{100, 100, true},
		{0, 0, true},
		{1, 0, false},
	} {
		b := append(jute.AppendInt(nil, row.length), make([]byte, 100)...)
		_, err := wire.ReadFrame(bytes.NewReader(b), row.limit, nil)
		if ok := err == nil; ok != row.ok || !ok && !errors.Is(err, wire.ErrFrame) {
			t.Errorf("length %d, limit %d: %v", row.length, row.limit, err)
		}
	}
}

func TestFrameThatIsCutIsUnexpectedlyAtItsEnd(t *testing.T) {
	t.Parallel()
	b := frame(70000)
	if _, err := wire.ReadFrame(bytes.NewReader(nil), 1<<20, nil); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
	for _, n := range []int{1, 3, 4, 5, 100, 64<<10 + 4, 70003} {
		if _, err := wire.ReadFrame(bytes.NewReader(b[:n]), 1<<20, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Not parallel: it counts the allocations of the whole program.
//
// Promise: 9
func TestClaimedLengthAloneAllocatesNothing(t *testing.T) {
	huge := jute.AppendInt(nil, math.MaxInt32)
	measure := func(name string, f func()) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
	measure("frame", func() {
		if _, err := wire.ReadFrame(bytes.NewReader(huge), math.MaxInt32, nil); err == nil {
			t.Error("a frame without a body passes")
		}
	})
	// Each position may be a length or a count in some record, which then is huge.
	body := bytes.Repeat(huge, 8)
	for op := range requests {
		measure(op.String(), func() { wire.NewRequest(op).Decode(jute.NewDecoder(body)) })
		for _, sample := range requests[op] {
			b := sample.Append(nil)
			for at := range b {
				input := append(bytes.Clone(b[:at]), body...)
				measure(op.String(), func() { wire.NewRequest(op).Decode(jute.NewDecoder(input)) })
			}
		}
	}
	for _, row := range responses {
		for _, sample := range row.samples {
			b := sample.Append(nil)
			for at := range b {
				measure("response", func() { row.make().Decode(jute.NewDecoder(append(bytes.Clone(b[:at]), body...))) })
			}
		}
	}
}

func TestRequestsAndRepliesAreWholeFrames(t *testing.T) {
	t.Parallel()
	b := wire.AppendRequest([]byte("head"), 7, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: 1})
	body, err := wire.ReadFrame(bytes.NewReader(b[4:]), 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := jute.NewDecoder(body)
	var h wire.RequestHeader
	var r wire.DeleteRequest
	h.Decode(d)
	r.Decode(d)
	if d.Err() != nil || d.Len() != 0 || h != (wire.RequestHeader{Xid: 7, Op: wire.OpDelete}) ||
		r.Path != "/a" || r.Version != 1 {
		t.Errorf("request: %v %+v %+v", d.Err(), h, r)
	}
	if got := wire.AppendRequest(nil, -2, wire.OpPing, nil); len(got) != 12 {
		t.Errorf("ping has %d bytes", len(got))
	}
	ok := wire.AppendReply(nil, wire.ReplyHeader{Xid: 7, Zxid: 9}, &wire.PathResponse{Path: "/a"})
	if len(ok) != 4+16+4+2 {
		t.Errorf("reply has %d bytes", len(ok))
	}
	failed := wire.AppendReply(nil, wire.ReplyHeader{Xid: 7, Zxid: 9, Err: wire.NoNode}, &wire.PathResponse{Path: "/a"})
	if len(failed) != 4+16 {
		t.Errorf("failed reply has %d bytes", len(failed))
	}
}
