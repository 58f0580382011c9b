package wire

// The sizes of replies.

// The sizes of the parts of large replies, in bytes.
const (
	lengthSize = 4 // before a string, data or a list
	statSize   = 68
	resultSize = 9  // before each result of a multi
	eventSize  = 12 // without its path
)

// Size returns the size of the result in the reply to a multiRead, in bytes.
func (r *MultiResult) Size() int {
	switch r.Op {
	case OpGetData:
		return resultSize + lengthSize + len(r.Data) + statSize
	case OpGetChildren:
		return resultSize + lengthSize + sizeOfStrings(r.Children)
	default:
		return resultSize + lengthSize // a code
	}
}

func sizeOfStrings(list []string) int {
	size := lengthSize * len(list)
	for _, s := range list {
		size += len(s)
	}
	return size
}

// ReplySize returns the size in bytes of the frame of a reply that may be large, including the frame's length. It
// returns 0 for replies that are always small.
func ReplySize(h ReplyHeader, body Record) int {
	if body == nil || h.Err != OK {
		return 0
	}
	if n := sizeOf(body); n > 0 {
		return n + 20
	}
	return 0
}

// sizeOf returns the approximate size of a reply that may be large, and 0 for others. Allocating that much first avoids
// copying a growing buffer again and again.
func sizeOf(body Record) int {
	switch r := body.(type) {
	case *DataResponse:
		return lengthSize + len(r.Data) + statSize
	case *Event:
		return eventSize + len(r.Path)
	case *ChildrenResponse:
		return lengthSize + sizeOfStrings(r.Children)
	case *Children2Response:
		return lengthSize + sizeOfStrings(r.Children) + statSize
	case *MultiResponse:
		size := resultSize
		for i := range r.Results {
			size += r.Results[i].Size()
		}
		return size
	default:
		return 0
	}
}
