package server

// The four-letter words.

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"
)

// fourLetterWord is one of ZooKeeper's commands for monitoring: a client sends it instead of a handshake and gets text.
type fourLetterWord struct {
	answer func(w *survey, s *Server) bool // false if the server has stopped
	// private words show paths, sessions, addresses or what the machine has, or change something. With
	// Config.RequireSASL they are for unix sockets only, because no client can log in before it sends a word.
	private bool
	list    bool // the answer may be long
}

// IsFourLetterWord reports whether the server has this word for Config.FourLetterWords.
func IsFourLetterWord(word string) bool { _, ok := fourLetterWords[word]; return ok }

var fourLetterWords = map[string]fourLetterWord{
	"ruok": {answer: says("imok")},
	"isro": {answer: says("rw")},
	"srvr": {answer: wordSrvr},
	"stat": {answer: wordStat, private: true, list: true},
	"mntr": {answer: wordMntr},
	"cons": {answer: wordCons, private: true, list: true},
	"conf": {answer: wordConf, private: true},
	"envi": {answer: wordEnvi, private: true},
	"dump": {answer: wordDump, private: true, list: true},
	"wchs": {answer: wordWchs},
	"wchc": {answer: wordWchc, private: true, list: true},
	"wchp": {answer: wordWchp, private: true, list: true},
	"dirs": {answer: wordDirs},
	"gtmk": {answer: wordTraceMask},
	"stmk": {answer: wordTraceMask, private: true},
	"hash": {answer: says("")}, // there are no digests
	"srst": {private: true, answer: func(w *survey, s *Server) bool {
		s.resetStats()
		return emit(w, "Server stats reset.\n")
	}},
	"crst": {private: true, answer: func(w *survey, s *Server) bool {
		s.resetConnStats()
		return emit(w, "Connection stats reset.\n")
	}},
}

func says(text string) func(w *survey, _ *Server) bool {
	return func(w *survey, _ *Server) bool { return emit(w, text) }
}

// resetConnStats resets the figures of all connections.
func (s *Server) resetConnStats() {
	defer s.takeTurn()()
	for _, c := range s.allConns() {
		c.resetStats()
	}
}

// defaultTraceMask selects what ZooKeeper logs in detail. This server only stores and returns it.
const defaultTraceMask = 306

func wordTraceMask(w *survey, s *Server) bool {
	return emit(w, strconv.FormatInt(s.traceMask.Load(), 10))
}

// readTraceMask reads the mask that follows the word stmk.
func (s *Server) readTraceMask(r io.Reader) bool {
	var b [12]byte // the word and the mask
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return false
	}
	s.traceMask.Store(int64(binary.BigEndian.Uint64(b[4:])))
	return true
}

func emit(w *survey, text string) bool {
	_, _ = io.WriteString(w, text)
	return true
}

// peekWord returns the first four bytes of a connection, and whether they are a four-letter word.
func (c *conn) peekWord(r *bufio.Reader) (string, bool) {
	b, err := r.Peek(4)
	if err != nil {
		return "", false
	}
	word := string(b)
	_, known := fourLetterWords[word]
	return word, known
}

// answerWord answers a four-letter word and ends the connection. The answer to a disallowed word says so. The client
// must read it in time.
func (s *Server) answerWord(c *conn, r io.Reader, name string) {
	_ = c.nc.SetDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	c.recved.Add(1)
	w := newSurvey(s.timedWriter(c.nc, c.nc.SetWriteDeadline, time.Now().Add(surveyTime)))
	word := fourLetterWords[name]
	switch {
	case !s.allowsWord(name):
		emit(w, name+" is not executed because it is not in the whitelist.\n")
	case word.private && s.cfg.RequireSASL && !onUnixSocket(c.nc):
		emit(w, name+" is not executed: "+lockedText+".\n")
	case name == "stmk" && !s.readTraceMask(r):
		return
	case word.list:
		done, ok := s.mayList(c.from)
		if !ok {
			s.hit(limitLists, c.remote)
			emit(w, name+" is not executed: "+busyText+".\n")
			break
		}
		s.say(w, word)
		_ = w.Flush()
		done()
	default:
		s.say(w, word)
	}
	if w.Flush() != nil {
		return
	}
	// Read what the peer still sends, perhaps a newline: closing a socket with unread input could drop the text.
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, c.nc)
	}
}

func (s *Server) say(w *survey, word fourLetterWord) {
	if !word.answer(w, s) && !w.failed {
		emit(w, notServing+"\n")
	}
}

// onUnixSocket reports whether the peer may enter a directory of this machine, rather than only reach a port.
func onUnixSocket(nc net.Conn) bool {
	_, ok := nc.RemoteAddr().(*net.UnixAddr)
	return ok
}

// allowsWord reports whether a word is to be answered. As in ZooKeeper, srvr always is: zkServer.sh status and monitors
// rely on it.
func (s *Server) allowsWord(word string) bool {
	return word == "srvr" || slices.Contains(s.cfg.FourLetterWords, "*") || slices.Contains(s.cfg.FourLetterWords, word)
}

func wordSrvr(w *survey, s *Server) bool {
	f, ok := s.facts()
	if !ok {
		return false
	}
	fmt.Fprintf(w, "Zookeeper version: %s\n", versionText)
	f.writeServer(w)
	return true
}

func wordStat(w *survey, s *Server) bool {
	f, ok := s.facts()
	if !ok {
		return false
	}
	fmt.Fprintf(w, "Zookeeper version: %s\nClients:\n", versionText)
	s.eachConn(w, func(c *connFacts) { c.write(w, true) })
	fmt.Fprintln(w)
	f.writeServer(w)
	return true
}

func (f *facts) writeServer(w io.Writer) {
	fmt.Fprintf(w, "Latency min/avg/max: %d/%s/%d\n", f.latency.min.Milliseconds(), decimal(f.latency.avg()),
		f.latency.max.Milliseconds())
	fmt.Fprintf(w, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", f.received, f.sent,
		f.connected(), f.outstanding)
	fmt.Fprintf(w, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", f.zxid, mode, f.nodes)
}

func wordCons(w *survey, s *Server) bool {
	s.eachConn(w, func(c *connFacts) { c.write(w, false) })
	fmt.Fprintln(w)
	return true
}

// write writes a connection's line: the short one of stat if brief, else the long one of cons.
func (c *connFacts) write(w io.Writer, brief bool) {
	interest := 1 // reading
	if c.session == 0 {
		interest = 0
	}
	fmt.Fprintf(w, " /%s[%d](queued=%d,recved=%d,sent=%d", c.remote, interest, c.queued, c.recved, c.sent)
	if !brief && c.session != 0 {
		fmt.Fprintf(w, ",sid=%s,lop=%s,est=%d,to=%d", sessionName(c.session), c.lop.Short(), c.since.UnixMilli(),
			c.timeout.Milliseconds())
		if c.lcxid >= 0 {
			fmt.Fprintf(w, ",lcxid=0x%x", c.lcxid)
		}
		fmt.Fprintf(w, ",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d", c.lzxid, c.lresp.UnixMilli(),
			c.llat.Milliseconds(), c.latency.min.Milliseconds(), int64(c.latency.avg()), c.latency.max.Milliseconds())
	}
	fmt.Fprintln(w, ")")
}

func wordConf(w *survey, s *Server) bool {
	for _, set := range s.settings() {
		fmt.Fprintf(w, "%s=%v\n", set.key, set.value)
	}
	return true
}

func wordEnvi(w *survey, _ *Server) bool {
	fmt.Fprintln(w, "Environment:")
	for _, e := range environment() {
		fmt.Fprintf(w, "%s=%s\n", e.key, e.value)
	}
	return true
}

func wordDirs(w *survey, s *Server) bool {
	fmt.Fprintf(w, "datadir_size: %d\nlogdir_size: %d\n", s.diskSize(), s.diskSize())
	return true
}

func wordWchs(w *survey, s *Server) bool {
	f, ok := s.facts()
	if ok {
		fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n", f.watchConns, f.watchPaths, f.watchTotal)
	}
	return ok
}

func wordWchc(w *survey, s *Server) bool {
	ok := s.eachWatcher(w, func(session int64, paths []string) {
		fmt.Fprintln(w, sessionName(session))
		for _, path := range paths {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	})
	fmt.Fprintln(w)
	return ok
}

func wordWchp(w *survey, s *Server) bool {
	ok := s.eachWatched(w, func(path string, sessions []int64) {
		fmt.Fprintln(w, path)
		for _, id := range sessions {
			fmt.Fprintf(w, "\t%s\n", sessionName(id))
		}
	})
	fmt.Fprintln(w)
	return ok
}

func wordDump(w *survey, s *Server) bool {
	all, ok := s.expirings()
	if !ok {
		return false
	}
	at, owners := make(map[int64]time.Duration, len(all)), 0
	for _, e := range all {
		at[e.id] = e.at
		if e.ephemeral {
			owners++
		}
	}
	fmt.Fprintln(w, "SessionTracker dump:")
	sets := expirySets(all)
	fmt.Fprintf(w, "Session Sets (%d)/(%d):\n", len(sets), len(all))
	for _, set := range sets {
		fmt.Fprintf(w, "%d expire at %s:\n", len(set), s.clock.wall(set[0].at).Format(time.UnixDate))
		for _, e := range set {
			fmt.Fprintf(w, "\t%s\n", sessionName(e.id))
		}
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", owners)
	for _, e := range all {
		if !e.ephemeral || w.failed {
			continue
		}
		fmt.Fprintf(w, "%s:\n", sessionName(e.id))
		for _, path := range s.ephemeralsOf(e.id) {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	// ZooKeeper lists when connections expire. Here a connection has no expiry but that of its session.
	var conns []expiring
	names := make(map[int64]string)
	s.eachConn(w, func(c *connFacts) {
		if due, ok := at[c.session]; ok && c.session != 0 {
			conns = append(conns, expiring{id: c.session, at: due})
			names[c.session] = c.remote
		}
	})
	slices.SortStableFunc(conns, func(a, b expiring) int { return cmp.Compare(a.at, b.at) })
	sets = expirySets(conns)
	fmt.Fprintf(w, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(sets), len(conns))
	for _, set := range sets {
		fmt.Fprintf(w, "%d expire at %s:\n", len(set), s.clock.wall(set[0].at).Format(time.UnixDate))
		for _, e := range set {
			fmt.Fprintf(w, "\tip: /%s sessionId: %s\n", names[e.id], sessionName(e.id))
		}
	}
	return true
}

// expirySets splits a list at each new time.
func expirySets(all []expiring) (sets [][]expiring) {
	for i, e := range all {
		if i == 0 || e.at != all[i-1].at {
			sets = append(sets, nil)
		}
		last := len(sets) - 1
		sets[last] = append(sets[last], e)
	}
	return sets
}
