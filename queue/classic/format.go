package classic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// format is how the nodes of a queue hold what was put: one body as it is, or several elements in Curator's framing.
type format struct {
	append func(elements ...[]byte) []byte
	parse  func(data []byte) ([][]byte, error)
}

var (
	plain = format{
		append: func(elements ...[]byte) []byte { return elements[0] },
		parse:  func(data []byte) ([][]byte, error) { return [][]byte{data}, nil },
	}
	framed = format{append: MarshalElements, parse: UnmarshalElements}
)

// The framing of Curator's queues: a version, elements with their length, an end. All numbers are big-endian.
const (
	framingVersion = 0x00010001
	framingElement = 0x01
	framingEnd     = 0x02
)

// MarshalElements returns the content of a node of Curator's queues that holds the given elements.
func MarshalElements(elements ...[]byte) []byte {
	size := 5
	for _, e := range elements {
		size += 5 + len(e)
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, size), framingVersion)
	for _, e := range elements {
		b = append(b, framingElement)
		b = binary.BigEndian.AppendUint32(b, uint32(len(e)))
		b = append(b, e...)
	}
	return append(b, framingEnd)
}

var errShort = errors.New("it ends before its end mark")

// UnmarshalElements returns the elements of a node of Curator's queues, of which there may be none. It ignores what
// is behind the end mark, as Curator does. The elements share data's memory.
func UnmarshalElements(data []byte) ([][]byte, error) {
	if len(data) < 4 {
		return nil, errShort
	}
	if v := binary.BigEndian.Uint32(data); v != framingVersion {
		return nil, fmt.Errorf("it has version %#08x, want %#08x", v, framingVersion)
	}
	var elements [][]byte
	for b := data[4:]; ; {
		switch {
		case len(b) == 0:
			return nil, errShort
		case b[0] == framingEnd:
			return elements, nil
		case b[0] != framingElement:
			return nil, fmt.Errorf("it has the unknown mark %#02x", b[0])
		case len(b) < 5:
			return nil, errShort
		}
		n := binary.BigEndian.Uint32(b[1:])
		b = b[5:]
		switch {
		case n > math.MaxInt32:
			return nil, fmt.Errorf("an element has the length %d", int32(n))
		case int64(n) > int64(len(b)):
			return nil, errShort
		}
		elements = append(elements, b[:n:n])
		b = b[n:]
	}
}
