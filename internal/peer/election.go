package peer

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// Servers open an election connection with this: a negative protocol version, the number of the server that dials, and its election address,
// as a string behind its length.
const (
	electionHeader = 8 + 8 + 4
	longestAddress = 1 << 10
)

// rewriteElection reads the first message of an election connection and puts in the address at which the server that is dialled reaches the one
// that dials. It dials back there: without this, around the links.
func (l *Links) rewriteElection(p *pump) ([]byte, error) {
	message := make([]byte, electionHeader)
	if n, err := io.ReadFull(p.src, message); err != nil {
		return message[:n], ended(err)
	}
	length := binary.BigEndian.Uint32(message[16:])
	if int64(binary.BigEndian.Uint64(message)) >= 0 || length > longestAddress {
		return message, nil // not such a message
	}
	own := make([]byte, length)
	if n, err := io.ReadFull(p.src, own); err != nil {
		return slices.Concat(message, own[:n]), ended(err)
	}
	addr, err := l.electionAddr(p.way.to, p.way.from)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(message[16:], uint32(len(addr)))
	return slices.Concat(message, []byte(addr)), nil
}

// ended makes an ordinary end of one in the middle of a message.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
