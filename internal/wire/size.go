package wire

// The sizes of replies.

// The sizes of what large replies consist of, in bytes.
const (
	lengthSize = 4 // before a text, data or a list
	statSize   = 68
	resultSize = 9  // before each result of a multi
	eventSize  = 12 // without its path
)

// Size returns how many bytes the result takes in the answer to a multiRead.
func (r *MultiResult) Size() int {
	switch r.Op {
	case OpGetData:
		return resultSize + lengthSize + len(r.Data) + statSize
	case OpGetChildren:
		return resultSize + lengthSize + sizeOfTexts(r.Children)
	default:
		return resultSize + lengthSize // a code
	}
}

func sizeOfTexts(list []string) int {
	size := lengthSize * len(list)
	for _, text := range list {
		size += len(text)
	}
	return size
}

// ReplySize returns how many bytes AppendReply makes of a reply that may be large, with the frame's length, and 0 for one
// that is small in any case.
func ReplySize(h ReplyHeader, body Record) int {
	if body == nil || h.Err != OK {
		return 0
	}
	if n := sizeOf(body); n > 0 {
		return n + 20
	}
	return 0
}

// sizeOf returns about how many bytes a reply takes that may be large, and 0 for others. A buffer that grows with
// such a reply is copied again and again.
func sizeOf(body Record) int {
	switch r := body.(type) {
	case *DataResponse:
		return lengthSize + len(r.Data) + statSize
	case *Event:
		return eventSize + len(r.Path)
	case *ChildrenResponse:
		return lengthSize + sizeOfTexts(r.Children)
	case *Children2Response:
		return lengthSize + sizeOfTexts(r.Children) + statSize
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
