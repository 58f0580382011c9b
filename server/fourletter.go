package server

// The four-letter words.

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fourLetterWords are ZooKeeper's commands for monitoring: a client sends one instead of a handshake and gets text.
var fourLetterWords = map[string]func(w io.Writer, s *Server) bool{
	"ruok": func(w io.Writer, _ *Server) bool { return emit(w, "imok") },
	"isro": func(w io.Writer, _ *Server) bool { return emit(w, "rw") },
	"srvr": wordSrvr,
	"stat": wordStat,
	"mntr": wordMntr,
	"cons": wordCons,
	"conf": wordConf,
	"envi": wordEnvi,
	"dump": wordDump,
	"wchs": wordWchs,
	"wchc": wordWchc,
	"wchp": wordWchp,
	"dirs": wordDirs,
	"gtmk": wordTraceMask,
	"stmk": wordTraceMask,
	"hash": func(io.Writer, *Server) bool { return true }, // there are no digests
	"srst": func(w io.Writer, s *Server) bool {
		s.stats.reset()
		return emit(w, "Server stats reset.\n")
	},
	"crst": func(w io.Writer, s *Server) bool {
		for _, c := range s.allConns() {
			c.resetStats()
		}
		return emit(w, "Connection stats reset.\n")
	},
}

// defaultTraceMask selects what ZooKeeper logs in detail. This server only stores and returns it.
const defaultTraceMask = 306

func wordTraceMask(w io.Writer, s *Server) bool {
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

func emit(w io.Writer, text string) bool {
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

// answerWord answers a four-letter word and ends the connection. The answer to a disallowed word says so.
func (s *Server) answerWord(c *conn, r io.Reader, word string) {
	_ = c.nc.SetDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	c.recved.Add(1)
	var text strings.Builder
	switch {
	case !s.allowsWord(word):
		text.WriteString(word + " is not executed because it is not in the whitelist.\n")
	case word == "stmk" && !s.readTraceMask(r):
		return
	case !fourLetterWords[word](&text, s):
		text.Reset()
		text.WriteString(notServing + "\n")
	}
	if _, err := io.WriteString(c.nc, text.String()); err != nil {
		return
	}
	// Read what the peer still sends, perhaps a newline: closing a socket with unread input could drop the text.
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, c.nc)
	}
}

func (s *Server) allowsWord(word string) bool {
	return slices.Contains(s.cfg.FourLetterWords, "*") || slices.Contains(s.cfg.FourLetterWords, word)
}

func wordSrvr(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{})
	if !ok {
		return false
	}
	fmt.Fprintf(w, "Zookeeper version: %s\n", versionText)
	f.writeServer(w)
	return true
}

func wordStat(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{})
	if !ok {
		return false
	}
	fmt.Fprintf(w, "Zookeeper version: %s\nClients:\n", versionText)
	for i := range f.connections {
		f.connections[i].write(w, true)
	}
	fmt.Fprintln(w)
	f.writeServer(w)
	return true
}

func (f *facts) writeServer(w io.Writer) {
	fmt.Fprintf(w, "Latency min/avg/max: %d/%s/%d\n", f.latency.min.Milliseconds(), decimal(f.latency.avg()),
		f.latency.max.Milliseconds())
	fmt.Fprintf(w, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", f.received, f.sent,
		len(f.connections), f.outstanding)
	fmt.Fprintf(w, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", f.zxid, mode, f.nodes)
}

func wordCons(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{})
	if !ok {
		return false
	}
	for i := range f.connections {
		f.connections[i].write(w, false)
	}
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

func wordConf(w io.Writer, s *Server) bool {
	for _, set := range s.settings() {
		fmt.Fprintf(w, "%s=%v\n", set.key, set.value)
	}
	return true
}

func wordEnvi(w io.Writer, _ *Server) bool {
	fmt.Fprintln(w, "Environment:")
	for _, e := range environment() {
		fmt.Fprintf(w, "%s=%s\n", e.key, e.value)
	}
	return true
}

func wordDirs(w io.Writer, s *Server) bool {
	fmt.Fprintf(w, "datadir_size: %d\nlogdir_size: %d\n", s.diskSize(), s.diskSize())
	return true
}

func wordWchs(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{})
	if ok {
		fmt.Fprintf(w, "%d connections watching %d paths\nTotal watches:%d\n", f.watchConns, f.watchPaths, f.watchTotal)
	}
	return ok
}

func wordWchc(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{watches: true})
	if !ok {
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(f.byOwner)) {
		fmt.Fprintln(w, sessionName(id))
		for _, path := range f.byOwner[id] {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	fmt.Fprintln(w)
	return true
}

func wordWchp(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{watches: true})
	if !ok {
		return false
	}
	for _, path := range slices.Sorted(maps.Keys(f.byPath)) {
		fmt.Fprintln(w, path)
		for _, id := range f.byPath[path] {
			fmt.Fprintf(w, "\t%s\n", sessionName(id))
		}
	}
	fmt.Fprintln(w)
	return true
}

func wordDump(w io.Writer, s *Server) bool {
	f, ok := s.facts(detail{dump: true})
	if !ok {
		return false
	}
	fmt.Fprintln(w, "SessionTracker dump:")
	fmt.Fprintf(w, "Session Sets (%d)/(%d):\n", len(f.deadlines), f.sessions)
	for _, at := range slices.Sorted(maps.Keys(f.deadlines)) {
		fmt.Fprintf(w, "%d expire at %s:\n", len(f.deadlines[at]), s.clock.wall(at).Format(time.UnixDate))
		for _, id := range f.deadlines[at] {
			fmt.Fprintf(w, "\t%s\n", sessionName(id))
		}
	}
	fmt.Fprintf(w, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", len(f.ephemeralsOf))
	for _, id := range slices.Sorted(maps.Keys(f.ephemeralsOf)) {
		fmt.Fprintf(w, "%s:\n", sessionName(id))
		for _, path := range f.ephemeralsOf[id] {
			fmt.Fprintf(w, "\t%s\n", path)
		}
	}
	// ZooKeeper lists when connections expire. Here a connection has no expiry but that of its session.
	sets := make(map[time.Duration][]connFacts)
	var n int
	for at, ids := range f.deadlines {
		for _, c := range f.connections {
			if c.session != 0 && slices.Contains(ids, c.session) {
				sets[at] = append(sets[at], c)
				n++
			}
		}
	}
	fmt.Fprintf(w, "Connections dump:\nConnections Sets (%d)/(%d):\n", len(sets), n)
	for _, at := range slices.Sorted(maps.Keys(sets)) {
		fmt.Fprintf(w, "%d expire at %s:\n", len(sets[at]), s.clock.wall(at).Format(time.UnixDate))
		for _, c := range sets[at] {
			fmt.Fprintf(w, "\tip: /%s sessionId: %s\n", c.remote, sessionName(c.session))
		}
	}
	return true
}
