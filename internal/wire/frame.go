package wire

// Frames: a length, and as many bytes.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxFrame is ZooKeeper's default limit of a frame's length in bytes, the property jute.maxbuffer.
const DefaultMaxFrame = 0xfffff

// ErrFrame says that a frame's length is negative or over the limit: the stream cannot be trusted from there on.
var ErrFrame = errors.New("wire: bad frame length")

// BeginFrame appends room for a frame's length to b. EndFrame fills it in; start is len(b) before BeginFrame.
func BeginFrame(b []byte) []byte { return append(b, 0, 0, 0, 0) }

// EndFrame fills in the length of the frame that begins at start.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// ReadFrame reads one frame and returns its body, in buf's memory if it fits there. A length over limit is ErrFrame.
// The body is read in steps of at most 64 KiB beyond buf's capacity, so that a length alone makes nobody allocate.
func ReadFrame(r io.Reader, limit int, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrFrame, n, limit)
	}
	return ReadBody(r, n, buf)
}

// ReadBody reads the n bytes of a frame whose length has been read and checked, as ReadFrame does.
func ReadBody(r io.Reader, n int, buf []byte) ([]byte, error) {
	const step = 64 << 10
	buf = buf[:0]
	for len(buf) < n {
		from, to := len(buf), n
		if to > cap(buf) {
			to = min(n, max(cap(buf), from+step))
			buf = append(buf, make([]byte, to-from)...)
		}
		buf = buf[:to]
		if _, err := io.ReadFull(r, buf[from:to]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}
