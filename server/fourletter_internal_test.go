package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

func ask(t *testing.T, s *Server, word string) string {
	t.Helper()
	c := dial(t, s)
	if _, err := c.nc.Write([]byte(word)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c.nc)
	if err != nil {
		t.Fatalf("%s: got %v", word, err)
	}
	return string(text)
}

func TestFourLetterWordsAnswerInZooKeepersFormat(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{FourLetterWords: []string{"*"}, Data: t.TempDir()}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{Timeout: 10_000})
	if _, err := c.create("/e", []byte("x"), wire.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	if err := c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/e", Watch: true}, nil); err != nil {
		t.Fatal(err)
	}
	id := sessionName(c.session)
	for word, want := range map[string]string{
		"ruok":   `imok`,
		"ruok\n": `imok`,
		"isro":   `rw`,
		"srvr": `Zookeeper version: \d+\.\d+\.\d+-.*, built on .* UTC\nLatency min/avg/max: \d+/\d+\.\d+/\d+\n` +
			`Received: \d+\nSent: \d+\nConnections: \d+\nOutstanding: 0\nZxid: 0x2\nMode: standalone\nNode count: 6\n`,
		"stat": `Zookeeper version: .*\nClients:\n( /127\.0\.0\.1:\d+\[\d\]\(queued=0,recved=\d+,sent=\d+\)\n` +
			`)+\nLatency (?s:.*)Node count: 6\n`,
		"cons": ` /127\.0\.0\.1:\d+\[1\]\(queued=0,recved=3,sent=3,sid=` + id + `,lop=GETD,est=\d{13},to=10000,` +
			`lcxid=0x2,lzxid=0x2,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n` +
			`( /127\.0\.0\.1:\d+\[0\]\(queued=0,recved=1,sent=0\)\n)+\n`,
		"wchs": `1 connections watching 1 paths\nTotal watches:1\n`,
		"wchc": id + `\n\t/e\n\n`,
		"wchp": `/e\n\t` + id + `\n\n`,
		"dump": `SessionTracker dump:\nSession Sets \(1\)/\(1\):\n1 expire at .*:\n\t` + id + `\n` +
			`ephemeral nodes dump:\nSessions with Ephemerals \(1\):\n` + id + `:\n\t/e\n` +
			`Connections dump:\nConnections Sets \(1\)/\(1\):\n1 expire at .*:\n` +
			`\tip: /127\.0\.0\.1:\d+ sessionId: ` + id + `\n`,
		"conf": `clientPort=\d+\nsecureClientPort=-1\ndataDir=.+\ndataDirSize=\d+\ndataLogDir=.+\n` +
			`dataLogSize=\d+\ntickTime=2000\nmaxClientCnxns=\d+\nminSessionTimeout=4000\n` +
			`maxSessionTimeout=600000\nclientPortListenBacklog=-1\nserverId=0\n`,
		"gtmk": `306`,
		"hash": ``,
		"dirs": `datadir_size: [1-9]\d*\nlogdir_size: [1-9]\d*\n`,
		"envi": `Environment:\nzookeeper\.version=(?s:.*)os\.memory\.total=\d+MB\n`,
		"mntr": `zk_version\t(?s:.*)zk_server_state\tstandalone\n(?s:.*)zk_znode_count\t6\n(?s:.*)`,
	} {
		if got := ask(t, s, word); !regexp.MustCompile(`\A(?:` + want + `)\z`).MatchString(got) {
			t.Errorf("%q: got\n%s\nwant\n%s", word, got, want)
		}
	}
	mntr := ask(t, s, "mntr")
	for _, key := range []string{
		"avg_latency", "max_latency", "min_latency", "packets_received", "packets_sent", "num_alive_connections",
		"outstanding_requests", "uptime",
		"watch_count", "ephemerals_count", "approximate_data_size", "global_sessions", "local_sessions",
		"open_file_descriptor_count",
		"max_file_descriptor_count", "connection_drop_probability", "last_client_response_size",
		"max_client_response_size", "min_client_response_size",
		"outstanding_tls_handshake", "auth_failed_count", "non_mtls_remote_conn_count", "non_mtls_local_conn_count",
	} {
		if !regexp.MustCompile(`(?m)^zk_` + key + `\t-?[0-9.]+$`).MatchString(mntr) {
			t.Errorf("mntr: got no number for zk_%s", key)
		}
	}
	if got, want := ask(t, s, "srst"), "Server stats reset.\n"; got != want {
		t.Errorf("srst: got %q, want %q", got, want)
	}
	if got, want := ask(t, s, "crst"), "Connection stats reset.\n"; got != want {
		t.Errorf("crst: got %q, want %q", got, want)
	}
}

func TestAnswerToADisallowedWordSaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	if got := ask(t, s, "srvr"); !strings.HasPrefix(got, "Zookeeper version: ") {
		t.Errorf("srvr, allowed by default: got %q", got)
	}
	for word := range fourLetterWords {
		if want := word + " is not executed because it is not in the whitelist.\n"; word != "srvr" &&
			ask(t, s, word) != want {
			t.Errorf("%s: got %q, want %q", word, ask(t, s, word), want)
		}
	}
	if got := ask(t, s, "abcd"); got != "" {
		t.Errorf("unknown word: got %q, want nothing", got)
	}
}

// zkServer.sh status and monitors ask for srvr, whatever the list says.
func TestSrvrIsAnsweredWhateverIsAllowed(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{nil, {}, {"stat"}, {"*"}} {
		s := serve(t, Config{FourLetterWords: words}, disk{})
		if got := ask(t, s, "srvr"); !strings.HasPrefix(got, "Zookeeper version: ") {
			t.Errorf("allowed are %q: got %q", words, got)
		}
	}
}

// The lines have the names of nodes, which nobody may see without a login if one is required.
func TestRefusalsByQuotasNameNodesOnlyWhereNoLoginIsRequired(t *testing.T) {
	t.Parallel()
	for _, login := range []bool{false, true} {
		s := serve(t, Config{RequireSASL: login}, disk{})
		f, ok := s.facts()
		if !ok {
			t.Fatal("the server has stopped")
		}
		f.refusals = map[string]int64{"ns": 3}
		got := slices.Contains(f.gauges(s), gauge{"ns_quota_exceeded_error_per_namespace", int64(3)})
		if got == login {
			t.Errorf("login required %t: got the line %t", login, got)
		}
	}
}

func TestHTTPCommandsAnswerInJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{AdminListen: "127.0.0.1:0"}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if _, err := c.create("/e", nil, wire.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	fetch := func(path string) (int, string) {
		t.Helper()
		return request.Fetch(t, http.MethodGet, fmt.Sprintf("http://%s%s", s.AdminAddr(), path))
	}
	if _, html := fetch("/commands"); !strings.Contains(html, `<a href="/commands/ruok">ruok</a>`) {
		t.Errorf("list of commands: got %q", html)
	}
	for name, key := range map[string]string{
		"ruok": "", "conf": "client_port", "configuration": "tick_time", "cons": "connections",
		"dump": "session_id_to_ephemeral_paths",
		"srvr": "server_stats", "stats": "secure_connections", "mntr": "znode_count", "wchs": "num_total_watches",
		"wchc": "session_id_to_watched_paths",
		"wchp": "path_to_session_ids", "is_read_only": "read_only", "dirs": "datadir_size", "lsnp": "zxid",
		"envi": "zookeeper.version",
		"crst": "", "srst": "", "hash": "digests", "voting_view": "current_config", "zabstate": "zabstate",
		"system_properties": "",
	} {
		status, text := fetch("/commands/" + name)
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		_, has := answer[key]
		failure, said := answer["error"]
		if status != http.StatusOK || answer["command"] == nil || failure != nil || !said || (key != "" && !has) {
			t.Errorf("%s: got %d %s, want the key %q and no error", name, status, text, key)
		}
	}
	if status, text := fetch("/commands/nonsense"); status != http.StatusOK ||
		!strings.Contains(text, "Unknown command: nonsense") {
		t.Errorf("unknown command: got %d %s", status, text)
	}
	if status, _ := fetch("/commands/snapshot"); status != http.StatusUnauthorized {
		t.Errorf("snapshot: got %d, want %d", status, http.StatusUnauthorized)
	}
}
