package counter

// What processes that compete for a node ask each other to write.

import (
	"encoding/base64"
	"encoding/binary"
	"path"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Of the conditional writes that are sent at the same time, one is done: competing processes together make no more
// writes than one alone. So a process that has lost asks the others to make its calls with theirs. Its request is an
// ephemeral node below requestsDir, whose name says everything. The process that writes next, the host, lists the
// requests, and puts the calls of all of them behind its own into one transaction, which also
//
//   - removes each request, so that what is listed still waits, and
//   - writes the answer into the receipt of its process, the guest, on condition of the receipt's version.
//
// The receipt is as good for that as for a write of the guest's own (see register): the answer is there exactly if the
// calls were made, and a guest that takes the next version of its receipt makes sure that they never will be. So a
// guest relies on no host. It waits for a while, and then writes itself; a host that is slow, cut off or gone costs
// that time and nothing else. A host's transaction fails as a whole if one of its guests has left; then it leaves that
// request out.

// request is a process's calls in another process's hands.
type request struct {
	name    string // of the node
	receipt string // the name of the guest's receipt
	version int32  // of the receipt
	stamp   string // with which the answer begins
	calls   []*call
	answer  answer // by the host
}

// requestsDir returns the directory of requests.
func (r *register) requestsDir() string { return r.path + "-requests" }

// maxRequest bounds the length of a request's name.
const maxRequest = 512

// newRequest returns a request to make calls. It returns nil if they are too many for one.
func newRequest(rec *receipt.Receipt, calls []*call) *request {
	r := &request{receipt: path.Base(rec.Path), calls: calls}
	r.version, r.stamp = rec.Offer()
	b := append([]byte(nil), r.stamp...)
	b = binary.BigEndian.AppendUint32(b, uint32(r.version))
	b = append(binary.AppendUvarint(b, uint64(len(r.receipt))), r.receipt...)
	for _, x := range calls {
		b = binary.AppendVarint(append(b, byte(x.op)), x.n)
		b = binary.AppendVarint(b, x.other)
		if len(b) > maxRequest*3/4 {
			return nil
		}
	}
	r.name = base64.RawURLEncoding.EncodeToString(b)
	return r
}

// parseRequest returns the request that a node's name is, or nil if it is none.
func parseRequest(name string) *request {
	b, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || len(name) > maxRequest || len(b) < receipt.StampSize+4 {
		return nil
	}
	r := &request{name: name, stamp: string(b[:receipt.StampSize])}
	r.version = int32(binary.BigEndian.Uint32(b[receipt.StampSize:]))
	b = b[receipt.StampSize+4:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size == 0 || size > uint64(len(b)-n) {
		return nil
	}
	r.receipt, b = string(b[n:n+int(size)]), b[n+int(size):]
	for len(b) > 0 {
		x := &call{op: op(b[0])}
		var n, m int
		x.n, n = binary.Varint(b[1:])
		if n <= 0 || x.op > opSet {
			return nil
		}
		x.other, m = binary.Varint(b[1+n:])
		if m <= 0 {
			return nil
		}
		r.calls, b = append(r.calls, x), b[1+n+m:]
	}
	if r.version == anyVersion || strings.Contains(r.receipt, "/") ||
		zk.ValidatePath("/"+r.receipt) != nil {
		return nil
	}
	return r
}

// answer says on what value calls were made.
type answer struct {
	before int64 // the value
	czxid  int64 // of the node that the host wrote to, 0 if it was to be created
}

const answerSize = 16

func (a answer) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(a.before)), uint64(a.czxid))
}

// parseAnswer returns the answer in a receipt's data, if it is one to the request with the given stamp.
func parseAnswer(data []byte, stamp string) (answer, bool) {
	text, ok := strings.CutPrefix(string(data), stamp)
	if !ok || len(text) != answerSize {
		return answer{}, false
	}
	b := []byte(text)
	return answer{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}, true
}
