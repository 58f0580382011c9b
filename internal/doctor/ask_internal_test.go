package doctor

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// answering answers four-letter words.
func answering(answers map[string]string) Config {
	return Config{
		Word: func(_ context.Context, _, word string, _ int64) (string, error) {
			text, ok := answers[word]
			if !ok {
				return "", errors.New(word + " is not executed because it is not in the whitelist")
			}
			return text, nil
		},
		Lookup: func(context.Context, string) ([]string, error) { return nil, nil },
	}
}

const (
	srvr = "Zookeeper version: 3.8.0-x, built on 2022\nLatency min/avg/max: 0/0.0/0\nMode: follower\n"
	conf = "clientPort=2181\ntickTime=2000\nmaxClientCnxns=60\nminSessionTimeout=4000\nmaxSessionTimeout=40000\n" +
		"syncLimit=5\nmembership: \nserver.1=a:1:2:participant\n"
	mntr = "zk_version\t3.8.0-x, built on 2022\nzk_num_alive_connections\t50\nzk_watch_count\t3\n" +
		"zk_avg_latency\t0.5\nzk_approximate_data_size\t600000\n"
)

func TestWordsAreUnderstood(t *testing.T) {
	t.Parallel()
	cfg := answering(map[string]string{
		"srvr": srvr, "conf": conf, "mntr": mntr, "ruok": "imok",
		"cons": " /10.0.0.1:1[1](queued=0,sid=0x1)\n /10.0.0.1:2[0](queued=0)\n" +
			" /[2001:db8::1]:3[1](\n /x[1](\nrubbish\n",
		"dump": "SessionTracker dump:\nSessions with Ephemerals (2):\n0xff00000000000001:\n\t/a/b\n\t/c\n0x2:\n\t/d\n" +
			"Connections dump:\n0 expire:\n\t/e\n0xzz:\n\t/f\n",
	})
	s := ask(t.Context(), "10.0.0.9:2181", cfg)
	tick, ok := s.millis("tickTime")
	if s.down != "" || s.unwell != "" || s.embedded || s.version.value != "3.8.0-x, built on 2022" ||
		tick != 2*time.Second || !ok {
		t.Errorf("%+v", s)
	}
	if want := map[string]int{"10.0.0.1": 2, "2001:db8::1": 1}; !maps.Equal(s.callers.value, want) {
		t.Errorf("%+v", s.callers)
	}
	sums := ephemerals(t.Context(), []server{{name: "a", down: "away"}, s}, cfg)
	if want := map[int64]int64{-0xffffffffffffff: 14, 2: 6}; !maps.Equal(sums.value, want) || sums.unknown != "" {
		t.Errorf("%+v", sums)
	}
	s.gauges.value["approximate_data_size"] = "500000"
	if sums := ephemerals(t.Context(), []server{s}, answering(nil)); len(sums.value) != 0 || sums.unknown != "" {
		t.Errorf("%+v", sums)
	}
}

func TestWhatIsNotToldIsUnknown(t *testing.T) {
	t.Parallel()
	s := ask(t.Context(), "unix:/run/zk.sock", answering(nil))
	if s.down != "" || s.version.unknown == "" || s.settings.unknown == "" || s.gauges.unknown == "" ||
		s.largest.unknown == "" || s.callers.unknown == "" || s.unwell != "" {
		t.Errorf("%+v", s)
	}
	sums := ephemerals(t.Context(), []server{s}, answering(nil))
	if !strings.Contains(sums.unknown, "dump is not executed") {
		t.Errorf("%+v", sums)
	}
}

func TestServersThatDoNotServe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"This ZooKeeper instance is not currently serving requests\n": "has it a quorum?",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n":           "does not answer as a ZooKeeper server",
		strings.Repeat("\x00\xff", 1<<19):                             "does not answer as a ZooKeeper server",
	} {
		s := ask(t.Context(), "10.0.0.9:2181", answering(map[string]string{"srvr": text}))
		if !strings.Contains(s.down, want) || len(s.down) > 4*maxShown {
			t.Errorf("%.20q: %q, want %q", text, s.down, want)
		}
	}
	lost := answering(nil)
	lost.Lookup = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
	if s := ask(t.Context(), "nowhere:2181", lost); s.lookup != "no such host" || s.down == "" {
		t.Errorf("%+v", s)
	}
}

// A server that never answers delays the examination by a bounded time.
func TestSilentServersAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := answering(nil)
		cfg.Word = func(ctx context.Context, _, _ string, _ int64) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		began := time.Now()
		list := askAll(t.Context(), []string{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}, cfg)
		if took := time.Since(began); took > askTime {
			t.Error(took)
		}
		for _, s := range list {
			if s.down == "" {
				t.Errorf("%+v", s)
			}
		}
		began = time.Now()
		if sums := ephemerals(t.Context(), []server{{name: "a"}}, cfg); sums.unknown == "" {
			t.Error("known")
		}
		if took := time.Since(began); took > askTime {
			t.Error(took)
		}
	})
}

func TestCommandsFillInForWords(t *testing.T) {
	t.Parallel()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"system_properties": `{"jute.maxbuffer":"0x200000","command":"system_properties","error":null}`,
			"configuration":     `{"tick_time":3000,"max_session_timeout":60000,"command":"c","error":null}`,
			"monitor":           `{"num_alive_connections":4,"watch_count":9,"a":[1],"command":"m","error":null}`,
			"server_stats":      `{"version":"3.9.9","command":"server_stats","error":null}`,
		}
		_, _ = w.Write([]byte(answers[strings.TrimPrefix(r.URL.Path, "/commands/")]))
	}))
	defer admin.Close()
	s := server{}
	s.nothing("words are off")
	s.askAdmin(t.Context(), admin.URL+"/commands/")
	tick, _ := s.millis("tickTime")
	watches, _ := s.gauge("watch_count")
	if s.version.value != "3.9.9" || tick != 3*time.Second || watches != 9 || s.largest != known(int64(2<<20)) ||
		s.settings.unknown+s.gauges.unknown+s.version.unknown != "" {
		t.Errorf("%+v", s)
	}
}

func TestCommandsThatAnswerRubbishAreHarmless(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("followed a redirection")
	}))
	t.Cleanup(elsewhere.Close)
	for what, answer := range map[string]func(w http.ResponseWriter){
		"nothing":   func(http.ResponseWriter) {},
		"not found": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"no JSON":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"a list":    func(w http.ResponseWriter) { _, _ = w.Write([]byte("[1,2]")) },
		"another":   func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"jute.maxbuffer":"5"}`)) },
		"an error":  func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"command":"x","error":"\u001b[2J"}`)) },
		"deep":      func(w http.ResponseWriter) { _, _ = w.Write([]byte(strings.Repeat(`{"a":`, 150_000))) },
		"endless": func(w http.ResponseWriter) {
			for range 64 {
				_, _ = w.Write([]byte(`{"command":"` + strings.Repeat("x", 1<<16)))
			}
		},
		"redirection": func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusFound)
		},
		"a number": func(w http.ResponseWriter) {
			_, _ = w.Write([]byte(`{"command":"x","jute.maxbuffer":-1e400,"num_alive_connections":1e99}`))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			defer admin.Close()
			s := server{}
			s.nothing("words are off")
			s.askAdmin(t.Context(), admin.URL+"/commands/")
			_, first := s.millis("maxSessionTimeout")
			_, second := s.gauge("num_alive_connections")
			if s.largest.unknown == "" || first || second {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Whatever servers answer, an examination ends, and says nothing long.
func FuzzAnswers(f *testing.F) {
	f.Add(srvr, conf, mntr, []byte(`{"command":"x","jute.maxbuffer":"7"}`))
	f.Add("", "tickTime=-1\nsyncLimit=99999999999999999999\n", "zk_num_alive_connections\t-5\n", []byte("{}"))
	f.Add(srvr, "tickTime=9007199254740991\nsyncLimit=9007199254740991\nminSessionTimeout=1\nmaxSessionTimeout="+
		"9007199254740991\nmaxClientCnxns=9007199254740991", "zk_num_alive_connections\t9007199254740991", []byte("1"))
	f.Add("Zookeeper version: 9999.9999.9999", "=", "zk_\t", []byte(`{"error":1}`))
	f.Fuzz(func(t *testing.T, srvr, conf, mntr string, body []byte) {
		cfg := answering(map[string]string{
			"srvr": srvr, "conf": conf, "mntr": mntr, "ruok": mntr, "cons": conf,
			"dump": "Sessions with Ephemerals" + mntr,
		})
		facts := well()
		facts.servers = []server{ask(t.Context(), "10.0.0.9:2181", cfg), wellServer("zk1:2181")}
		facts.ephemerals = ephemerals(t.Context(), facts.servers, cfg)
		values, _ := parseCommand(body)
		facts.servers[1].settings = known(renamed(values))
		for _, found := range facts.findings() {
			if len(found.Text) > 1000 || len(found.Evidence) > maxEvidence+1 {
				t.Errorf("%+v", found)
			}
			for _, text := range found.Evidence {
				if len(text) > 4*maxShown {
					t.Error(len(text))
				}
			}
		}
	})
}
