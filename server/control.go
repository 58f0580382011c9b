package server

// What programs and tests may do to a running server.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrClosed is returned by methods of a server that has stopped.
var ErrClosed = errors.New("server: closed")

// SessionInfo describes a live session.
type SessionInfo struct {
	ID        int64
	Timeout   time.Duration // as last negotiated
	Connected bool
	Client    string // the address of its connection, "" if it has none
}

// do runs f on the owner's goroutine and waits for it. It returns ErrClosed if the server stops first.
func (s *Server) do(f func(o *owner)) error {
	done := make(chan struct{})
	if !s.queue.push(item{kind: itemCall, call: func() { f(s.owner); close(done) }}) {
		return ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-s.ownerDone:
		select {
		case <-done:
			return nil
		default:
			return ErrClosed
		}
	}
}

// doDurably runs f on the owner's goroutine and waits until its changes are durable and its events have been handed to
// their connections.
func (s *Server) doDurably(f func(o *owner)) error {
	durable := make(chan struct{})
	err := s.do(func(o *owner) {
		f(o)
		o.whenDurable(func() { close(durable) })
	})
	if err != nil {
		return err
	}
	select {
	case <-durable:
		return nil
	case <-s.done:
		return ErrClosed
	}
}

// whenDurable calls f once all changes so far are durable and their events have been handed to their connections.
func (o *owner) whenDurable(f func()) {
	if !o.pending() {
		f()
		return
	}
	b := o.current()
	b.after = append(b.after, f)
}

// Sessions returns all live sessions in order of their ids, nil if the server has stopped.
func (s *Server) Sessions() []SessionInfo {
	var infos []SessionInfo
	_ = s.do(func(o *owner) {
		for _, sess := range o.sessions {
			info := SessionInfo{ID: sess.id, Timeout: time.Duration(sess.timeout.Load()), Connected: sess.conn != nil}
			if sess.conn != nil {
				info.Client = sess.conn.remote
			}
			infos = append(infos, info)
		}
	})
	slices.SortFunc(infos, func(a, b SessionInfo) int { return cmp.Compare(a.ID, b.ID) })
	return infos
}

// PresetSequence makes next the number of path's next sequential child. It is meant for tests.
func (s *Server) PresetSequence(path string, next int32) error {
	var err error
	if derr := s.doDurably(func(o *owner) {
		r := o.tree.PresetSequence(path, next)
		if r.Code != 0 {
			err = fmt.Errorf("server: cannot preset the sequence of %s: %v", path, r.Code)
			return
		}
		o.record(&r)
	}); derr != nil {
		return derr
	}
	return err
}

// DropConnections closes the connection of the session with the given id, or of all sessions if id is 0. The sessions
// continue.
func (s *Server) DropConnections(id int64) {
	_ = s.do(func(o *owner) {
		for sid, sess := range o.sessions {
			if (id == 0 || id == sid) && sess.conn != nil {
				o.detach(sess.conn)
			}
		}
	})
}

// StopClock stops the clock by which sessions expire.
func (s *Server) StopClock() { _ = s.do(func(o *owner) { o.clock.stop() }) }

// StartClock starts the clock that StopClock has stopped. Sessions have as much time left as when it stopped.
func (s *Server) StartClock() { _ = s.do(func(o *owner) { o.clock.start() }) }
