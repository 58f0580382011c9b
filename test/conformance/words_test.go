package conformance_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ask sends a four-letter word and returns the answer.
func (s *script) ask(word string) string {
	s.Helper()
	c, err := dial(s.Context(), word, s.target.addr)
	if err != nil {
		s.Fatal(err)
	}
	c.write([]byte(word))
	text, err := c.readAll()
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// word records the answer to a four-letter word.
func (s *script) word(word string) {
	s.Helper()
	s.logf("%q: %q", word, s.ask(word))
}

// until reads events up to the given one, which must come.
func (s *script) until(l *link, event string) {
	s.Helper()
	for {
		m := l.next()
		if m.event == nil {
			s.Fatalf("got an answer or the end, want event %q", event)
		}
		if eventName(m.event) == event {
			return
		}
	}
}

var (
	decimalRE = regexp.MustCompile(`-?\d+\.\d+`)
	hexRE     = regexp.MustCompile(`0x[0-9a-f]+`)
	numberRE  = regexp.MustCompile(`-?\d+`)
)

// shape replaces the variable parts of a line.
func shape(line string) string {
	line = hexRE.ReplaceAllString(line, "HEX")
	line = decimalRE.ReplaceAllString(line, "DEC")
	return numberRE.ReplaceAllString(line, "N")
}

func shapes(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, shape(line))
	}
	return lines
}

// mntrKeys are the lines of mntr that monitoring reads, and that both servers must give in the same form.
var mntrKeys = []string{
	"version", "server_state", "avg_latency", "max_latency", "min_latency", "packets_received", "packets_sent",
	"num_alive_connections",
	"outstanding_requests", "uptime", "znode_count", "watch_count", "ephemerals_count", "approximate_data_size",
	"global_sessions",
	"local_sessions", "open_file_descriptor_count", "max_file_descriptor_count", "connection_drop_probability",
	"last_client_response_size",
	"max_client_response_size", "min_client_response_size", "outstanding_tls_handshake", "auth_failed_count",
	"non_mtls_remote_conn_count",
	"non_mtls_local_conn_count",
}

var wordCases = []testCase{
	{"short four-letter words", func(s *script) {
		for _, word := range []string{"ruok", "isro", "ruok\n", "ruok\r\n", "srst", "crst"} {
			s.word(word)
		}
		for _, word := range []string{"RUOK", "abcd", "help"} {
			s.logf("%q: %q", word, s.ask(word))
		}
	}},
	{"the trace mask", func(s *script) {
		for _, word := range []string{
			"gtmk", "stmk\x00\x00\x00\x00\x00\x00\x01\x02", "gtmk",
			"stmk\x00\x00\x00\x00\x00\x00\x01\x32", "gtmk",
		} {
			s.word(word)
		}
	}},
	{"the server's description", func(s *script) {
		s.open("a").each(ping())
		for _, line := range shapes(s.ask("srvr")) {
			if !strings.HasPrefix(line, "Zookeeper version: ") {
				s.logf("%s", line)
			}
		}
		for _, line := range slices.Compact(shapes(s.ask("stat")))[1:] {
			s.logf("%s", line)
		}
	}},
	{"the list of connections", func(s *script) {
		l := s.open("a")
		l.each(get(s.root, false))
		sessions := 0
		for line := range strings.SplitSeq(s.ask("cons"), "\n") {
			if strings.Contains(line, "sid=") {
				sessions++
				s.logf("%s", shape(line))
			}
		}
		s.logf("%d", sessions)
	}},
	{"the configuration's keys", func(s *script) {
		var keys []string
		for line := range strings.SplitSeq(strings.TrimSpace(s.ask("conf")), "\n") {
			key, _, _ := strings.Cut(line, "=")
			keys = append(keys, key)
		}
		for _, key := range []string{
			"clientPort", "dataDir", "dataDirSize", "dataLogDir", "dataLogSize", "tickTime",
			"maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "serverId",
		} {
			s.logf("%s %t", key, slices.Contains(keys, key))
		}
	}},
	{"the environment's keys", func(s *script) {
		text := s.ask("envi")
		s.logf("%s", strings.Split(text, "\n")[0])
		for _, key := range []string{
			"zookeeper.version", "host.name", "os.name", "os.arch", "os.version", "user.name",
			"user.home", "user.dir",
		} {
			s.logf("%s %t", key, strings.Contains(text, "\n"+key+"="))
		}
	}},
	{"the monitor's lines", func(s *script) {
		values := map[string]string{}
		for line := range strings.SplitSeq(strings.TrimSpace(s.ask("mntr")), "\n") {
			key, value, _ := strings.Cut(line, "\t")
			values[key] = value
		}
		for _, key := range mntrKeys {
			value, ok := values["zk_"+key]
			if key == "version" {
				value = "V"
			}
			s.logf("zk_%s %t %s", key, ok, shape(value))
		}
	}},
	{"watches by words", func(s *script) {
		a := s.open("a")
		b := s.open("b")
		r := s.root
		a.each(create(r+"/x", "", 0), get(r+"/x", true), exists(r+"/y", true), children(r, true))
		b.each(get(r+"/x", true), addWatch(r+"/z", 1))
		s.logf("%s", shapes(s.ask("wchs")))
		for _, word := range []string{"wchc", "wchp"} {
			// Groups come in any order, and so do the lines of a group.
			text := s.ask(word)
			text = strings.ReplaceAll(text, hex(a.session), "A")
			text = strings.ReplaceAll(text, hex(b.session), "B")
			s.logf("%s ends with an empty line: %t", word, strings.HasSuffix(text, "\n\n"))
			s.logf("%s", groups(strings.TrimRight(text, "\n")))
		}
	}},
	{"the dump of sessions", func(s *script) {
		a := s.open("a")
		a.each(create(s.root+"/e", "", 1))
		text := strings.ReplaceAll(s.ask("dump"), hex(a.session), "A")
		var kept []string
		lines := shapes(text)
		for i, line := range lines {
			switch {
			case strings.Contains(line, "expire at"):
				if i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "\t") {
					continue // an instant at which nothing expires
				}
				line = "N expire at DATE:"
			case strings.Contains(line, "ip: /"):
				line = strings.Split(line, ":")[0]
			}
			kept = append(kept, line)
		}
		for i, line := range slices.Compact(kept) {
			s.logf("%q", line)
			if strings.HasPrefix(line, "\tip") { // there are more lines if old connections still count
				s.logf("ends with an empty line: %t", kept[len(kept)-1] == "" && i < len(kept)-1)
				break
			}
		}
	}},
	{"directories and statistics", func(s *script) {
		s.logf("%q", shapes(s.ask("dirs")))
	}},
}

func hex(id int64) string { return "0x" + formatHex(uint64(id)) }

// groups sorts a text of unindented heads with indented lines below.
func groups(text string) []string {
	var all [][]string
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "\t") || len(all) == 0 {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], line)
	}
	var out []string
	for _, g := range all {
		slices.Sort(g[1:])
		out = append(out, strings.Join(g, " "))
	}
	slices.Sort(out)
	return out
}

func formatHex(v uint64) string { return strconv.FormatUint(v, 16) }
