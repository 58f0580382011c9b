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

// ErrFrame is the error for a frame whose length is negative or exceeds the limit. The rest of the stream is unusable.
var ErrFrame = errors.New("wire: invalid frame length")

// BeginFrame appends space for a frame's length to b, which EndFrame fills in.
func BeginFrame(b []byte) []byte { return append(b, 0, 0, 0, 0) }

// EndFrame fills in the length of the frame that begins at start, which is len(b) before BeginFrame.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// ReadFrame reads one frame and returns its body, in buf's memory if it fits. It returns ErrFrame for a length over
// limit. Beyond buf's capacity it reads in steps of at most 64 KiB, so that the claimed length alone allocates no
// memory.
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

// ReadBody reads the n bytes of a frame like ReadFrame, for callers that have read and checked the length.
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
