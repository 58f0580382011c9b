package wire

// The sizes of replies.

// The sizes of what large replies consist of, in bytes.
const (
	lengthSize = 4 // before a text, data or a list
	statSize   = 68
	resultSize = 9 // before each result of a multi
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

// sizeOf returns about how many bytes a reply takes that may be large, and 0 for others. A buffer that grows with
// such a reply is copied again and again.
func sizeOf(body Record) int {
	switch r := body.(type) {
	case *DataResponse:
		return lengthSize + len(r.Data) + statSize
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
