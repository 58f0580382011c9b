package peer

// The addresses in election messages.

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// An election connection begins with a negative protocol version, the number of the server that dials, and its election
// address, as a length and a string.
const (
	electionHeader = 8 + 8 + 4
	longestAddress = 1 << 10
)

// rewriteElection reads the first message of an election connection and replaces the address in it by that of the link
// back to the server that dials. The other server may dial back, and would otherwise bypass the links.
func (l *Links) rewriteElection(p *pump) ([]byte, error) {
	message := make([]byte, electionHeader)
	if n, err := io.ReadFull(p.src, message); err != nil {
		return message[:n], ended(err)
	}
	length := binary.BigEndian.Uint32(message[16:])
	if int64(binary.BigEndian.Uint64(message)) >= 0 || length > longestAddress {
		return message, nil // another kind of message
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

// ended replaces the error of an end within a message by that of an ordinary end.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
