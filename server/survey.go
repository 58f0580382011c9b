package server

// Lists for monitoring: of connections, sessions, ephemeral nodes and watches. There may be millions of these, so a
// list is never built as a whole: the owner collects one piece at a time and serves others in between, and a piece is
// written to the client before the next one is collected.

import (
	"bufio"
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

const (
	surveyPiece = 1000        // things that the owner collects at a time
	surveyTime  = time.Minute // for a client to read a list
	maxSurveys  = 8           // lists at a time, of which one address gets half
	busyText    = "busy with other lists, try again later"
	lockedText  = "not shown, because this server requires a login"
	surveyChunk = 16 << 10 // bytes of text that are kept before they are written
)

// survey is the text of an answer on its way to a client.
type survey struct {
	*bufio.Writer
	failed bool // the client has not read in time, or has gone
}

func newSurvey(w io.Writer) *survey {
	v := new(survey)
	v.Writer = bufio.NewWriterSize(writerFunc(func(b []byte) (int, error) {
		n, err := w.Write(b)
		v.failed = v.failed || err != nil
		return n, err
	}), surveyChunk)
	return v
}

// writerFunc is a function as an io.Writer.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// timedWriter writes to w, whose peer must take each part in time, and everything by end.
func (s *Server) timedWriter(w io.Writer, deadline func(time.Time) error, end time.Time) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		by := time.Now().Add(s.cfg.HandshakeTimeout)
		if by.After(end) {
			by = end
		}
		if err := deadline(by); err != nil {
			return 0, err
		}
		return w.Write(b)
	})
}

// mayList reports whether a client at an address may have a list now, and counts it until done is called.
func (s *Server) mayList(from string) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.surveys >= maxSurveys || s.surveysOf[from] >= maxSurveys/2 {
		return nil, false
	}
	s.surveys++
	s.surveysOf[from]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.surveys--
		if s.surveysOf[from]--; s.surveysOf[from] == 0 {
			delete(s.surveysOf, from)
		}
	}, true
}

// takeTurn waits until no other answer for monitoring looks at all connections. The caller must call done.
func (s *Server) takeTurn() (done func()) {
	s.surveying <- struct{}{}
	return func() { <-s.surveying }
}

// eachConn yields the facts of every connection, oldest first, unless v fails.
func (s *Server) eachConn(v *survey, f func(c *connFacts)) {
	done := s.takeTurn()
	conns := s.allConns()
	done()
	for _, c := range conns {
		if v.failed {
			return
		}
		facts := c.facts()
		f(&facts)
	}
}

// watching is a connection that watches something, and its session.
type watching struct {
	id      tree.WatcherID
	session int64
}

// watchers returns the connections that watch data, in order of their sessions.
func (s *Server) watchers() ([]watching, bool) {
	var all []watching
	err := s.do(func(o *owner) {
		for _, id := range o.tree.Watchers() {
			if c := o.watchers[id]; c != nil {
				all = append(all, watching{id, c.caller.Session})
			}
		}
	})
	slices.SortFunc(all, func(a, b watching) int { return cmp.Compare(a.session, b.session) })
	return all, err == nil
}

// watchedBy returns the sorted paths that a connection watches.
func (s *Server) watchedBy(w watching) []string {
	var paths []string
	_ = s.do(func(o *owner) { paths = o.tree.WatchedBy(w.id) })
	slices.Sort(paths)
	return paths
}

// eachWatcher yields every session that watches something, and what. It returns false if the server has stopped or v
// has failed.
func (s *Server) eachWatcher(v *survey, f func(session int64, paths []string)) bool {
	all, ok := s.watchers()
	for _, w := range all {
		if v.failed {
			return false
		}
		if paths := s.watchedBy(w); len(paths) > 0 {
			f(w.session, paths)
		}
	}
	return ok
}

// eachWatched yields every watched path with the sessions that watch it. It returns false if the server has stopped or
// v has failed.
func (s *Server) eachWatched(v *survey, f func(path string, sessions []int64)) bool {
	all, ok := s.watchers()
	for _, w := range all {
		for paths := s.watchedBy(w); len(paths) > 0; {
			if v.failed {
				return false
			}
			var found [][]int64
			err := s.do(func(o *owner) { found = o.watchersOf(w.id, paths) })
			if err != nil || len(found) == 0 {
				return false
			}
			for i, sessions := range found {
				if len(sessions) > 0 {
					f(paths[i], sessions)
				}
			}
			paths = paths[len(found):]
		}
	}
	return ok
}

// watchersOf returns the sessions that watch the first of some paths, as many as one piece may have. It leaves out
// paths whose first watcher is not the given one.
func (o *owner) watchersOf(first tree.WatcherID, paths []string) (found [][]int64) {
	var ids []tree.WatcherID
	for total := 0; len(found) < len(paths) && total < surveyPiece; total++ {
		ids = o.tree.WatchersOf(ids[:0], paths[len(found)], first)
		var sessions []int64
		for _, id := range ids {
			if c := o.watchers[id]; c != nil {
				sessions = append(sessions, c.caller.Session)
			}
		}
		slices.Sort(sessions)
		found = append(found, sessions)
		total += len(ids)
	}
	return found
}

// expiring is a session with the time when it expires.
type expiring struct {
	id        int64
	at        time.Duration
	ephemeral bool // it has ephemeral nodes
}

// expirings returns all sessions, in order of the times when they expire.
func (s *Server) expirings() ([]expiring, bool) {
	var buckets []int64
	err := s.do(func(o *owner) {
		for bucket := range o.expiry.buckets {
			buckets = append(buckets, bucket)
		}
	})
	slices.Sort(buckets)
	var all []expiring
	seen := make(map[int64]bool) // a session moves to a later bucket when its client sends something
	for _, bucket := range buckets {
		if err != nil {
			break
		}
		first := len(all)
		err = s.do(func(o *owner) {
			for sess := range o.expiry.buckets[bucket] {
				if !seen[sess.id] {
					at := time.Duration(bucket) * o.expiry.tick
					all = append(all, expiring{sess.id, at, o.tree.HasEphemerals(sess.id)})
				}
			}
		})
		slices.SortFunc(all[first:], func(a, b expiring) int { return cmp.Compare(a.id, b.id) })
		for _, e := range all[first:] {
			seen[e.id] = true
		}
	}
	return all, err == nil
}

// ephemeralsOf returns the sorted paths of a session's ephemeral nodes.
func (s *Server) ephemeralsOf(id int64) []string {
	var paths []string
	for more := true; more; {
		more = false
		_ = s.do(func(o *owner) { paths, more = o.tree.Ephemerals(paths, id, len(paths), surveyPiece) })
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
