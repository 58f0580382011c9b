package zktest

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// rawSession is a session of zktest's own that bypasses the link and its faults. It allows one call at a time.
type rawSession struct {
	conn net.Conn
	id   int64
	xid  int32
	buf  []byte
}

const rawTimeout = 10 * time.Second

// openRaw opens a session on c, or takes over the session id with its password if id is not 0. It closes c on failure.
func openRaw(c net.Conn, id int64, password []byte) (*rawSession, error) {
	s := &rawSession{conn: c}
	if password == nil {
		password = make([]byte, wire.PasswordLen)
	}
	if err := s.handshake(id, password); err != nil {
		_ = c.Close() // err says more
		return nil, err
	}
	return s, nil
}

func (s *rawSession) handshake(id int64, password []byte) error {
	connect := wire.ConnectRequest{
		Timeout: int32(rawTimeout.Milliseconds()), SessionID: id, Password: password, HasReadOnly: true,
	}
	_ = s.conn.SetDeadline(time.Now().Add(rawTimeout))
	if _, err := s.conn.Write(wire.EndFrame(connect.Append(wire.BeginFrame(nil)), 0)); err != nil {
		return err
	}
	body, err := wire.ReadFrame(s.conn, maxFrame, nil)
	if err != nil {
		return err
	}
	d := jute.NewDecoder(body)
	var answer wire.ConnectResponse
	if answer.Decode(d); d.Err() != nil {
		return d.Err()
	}
	if answer.Timeout <= 0 {
		return errExpired
	}
	s.id = answer.SessionID
	return nil
}

var errExpired = errors.New("the session has expired")

// call sends a request and decodes the reply into answer, if not nil. It drops events that come meanwhile.
func (s *rawSession) call(op wire.Op, request, answer wire.Record) (wire.Code, error) {
	s.xid++
	_ = s.conn.SetDeadline(time.Now().Add(rawTimeout))
	if _, err := s.conn.Write(wire.AppendRequest(nil, s.xid, op, request)); err != nil {
		return 0, err
	}
	for {
		body, err := wire.ReadFrame(s.conn, maxFrame, s.buf)
		if err != nil {
			return 0, err
		}
		s.buf = body
		d := jute.NewDecoder(body)
		var h wire.ReplyHeader
		if h.Decode(d); d.Err() != nil {
			return 0, d.Err()
		}
		if h.Xid != s.xid {
			continue
		}
		if h.Err == wire.OK && answer != nil {
			answer.Decode(d)
		}
		return h.Err, d.Err()
	}
}

// close closes the session at the server and then the connection.
func (s *rawSession) close() error {
	_, err := s.call(wire.OpCloseSession, nil, nil)
	return errors.Join(err, s.conn.Close())
}

// fourLetterWord sends a four-letter word to a server behind the link and returns the answer.
func (l *Link) fourLetterWord(u upstream, word string) (string, error) {
	c, err := u.dial(l.closing, rawAddr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(rawTimeout))
	if _, err := c.Write([]byte(word)); err != nil {
		return "", err
	}
	var answer []byte
	for f := newFrames(c); ; {
		data, _, err := f.next()
		answer = append(answer, data...)
		if err != nil {
			if endingOf(err) == ended {
				return string(answer), nil
			}
			return "", err
		}
	}
}

// rawAddr is the client address of zktest's own connections.
var rawAddr net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// open opens a session of zktest's own at one of the servers behind the link. If id is not 0 it takes over that
// session.
func (l *Link) open(id int64, password []byte) (*rawSession, error) {
	var errs []error
	for _, u := range l.upstreams {
		c, err := u.dial(l.closing, rawAddr)
		if err == nil {
			var s *rawSession
			if s, err = openRaw(c, id, password); err == nil {
				return s, nil
			}
		}
		if errors.Is(err, errExpired) {
			return nil, err
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("zktest: no server answers: %w", errors.Join(errs...))
}
