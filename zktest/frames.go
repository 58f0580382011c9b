package zktest

import (
	"bufio"
	"encoding/binary"
	"io"
)

// maxFrame is the longest frame. A length beyond it means that the bytes are a four-letter word, the answer to one, or
// garbage. The link passes such bytes as they are.
const maxFrame = 64 << 20

// frames cuts a stream into frames, up to the first bytes that are none.
type frames struct {
	r   *bufio.Reader
	raw bool // no frames from here on
}

func newFrames(r io.Reader) *frames { return &frames{r: bufio.NewReaderSize(r, 32<<10)} }

// next returns the next frame, including its length. If framed is false the bytes are not a whole frame.
// An error may come with the last bytes of the stream.
func (f *frames) next() (data []byte, framed bool, err error) {
	if !f.raw {
		head, err := f.r.Peek(4)
		if err != nil {
			return append([]byte(nil), head...), false, err
		}
		n := int64(int32(binary.BigEndian.Uint32(head)))
		if n >= 0 && n <= maxFrame {
			return f.read(4 + int(n))
		}
		f.raw = true
	}
	if _, err := f.r.Peek(1); err != nil {
		return nil, false, err
	}
	head, err := f.r.Peek(f.r.Buffered())
	data = append([]byte(nil), head...)
	if err == nil {
		_, err = f.r.Discard(len(data))
	}
	return data, false, err
}

// read reads n bytes. It allocates in steps, so that a false length alone does not cost its memory.
func (f *frames) read(n int) (data []byte, framed bool, err error) {
	const step = 64 << 10
	for len(data) < n {
		from := len(data)
		data = append(data, make([]byte, min(n-from, max(step, from)))...)
		if got, err := io.ReadFull(f.r, data[from:]); err != nil {
			return data[:from+got], false, err
		}
	}
	return data, true, nil
}
