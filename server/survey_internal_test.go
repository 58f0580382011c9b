package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// watchMany makes a client watch n paths that do not exist.
func (c *rawClient) watchMany(t *testing.T, name string, n int) {
	t.Helper()
	req := &wire.SetWatchesRequest{RelativeZxid: 1 << 40}
	for i := range n {
		req.Exist = append(req.Exist, fmt.Sprintf("/%s%d", name, i))
	}
	c.mustCall(t, wire.OpSetWatches, req)
}

func TestListsOfWatchesAreWholeThoughTheyAreCollectedInPieces(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{FourLetterWords: []string{"*"}, AdminListen: "127.0.0.1:0"}, disk{})
	const n = 3 * surveyPiece
	a, b := mustConnect(t, s, wire.ConnectRequest{}), mustConnect(t, s, wire.ConnectRequest{})
	a.watchMany(t, "x", n)
	b.watchMany(t, "x", n)
	b.watchMany(t, "y", n)
	ids := fmt.Sprintf("\t%s\n\t%s\n", sessionName(min(a.session, b.session)), sessionName(max(a.session, b.session)))
	byPath := ask(t, s, "wchp")
	for _, path := range []string{"/x0", "/x2999", "/y0", "/y2999"} {
		want := path + "\n" + ids
		if strings.HasPrefix(path, "/y") {
			want = path + "\n\t" + sessionName(b.session) + "\n"
		}
		if strings.Count(byPath, want) != 1 {
			t.Errorf("wchp: got %s not once with its sessions", path)
		}
	}
	if got := strings.Count(byPath, "\n/") + 1; got != 2*n {
		t.Errorf("wchp: got %d paths, want %d", got, 2*n)
	}
	if got := len(regexp.MustCompile(`\t/[xy]\d+\n`).FindAllString(ask(t, s, "wchc"), -1)); got != 3*n {
		t.Errorf("wchc: got %d watches, want %d", got, 3*n)
	}
	var answer struct {
		Paths map[string][]string `json:"path_to_session_ids"`
	}
	if err := json.Unmarshal([]byte(fetchAdmin(t, s, "/commands/wchp", http.StatusOK)), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Paths) != 2*n || len(answer.Paths["/x7"]) != 2 {
		t.Errorf("watches_by_path: got %d paths, want %d", len(answer.Paths), 2*n)
	}
}

func fetchAdmin(t *testing.T, s *Server, path string, status int) string {
	t.Helper()
	got, body := request.Fetch(t, http.MethodGet, "http://"+s.AdminAddr().String()+path)
	if got != status {
		t.Errorf("%s: got %d, want %d", path, got, status)
	}
	return body
}

// Lists that clients do not read have a number of their own, and end in time.
func TestListsThatAreNotReadAreBounded(t *testing.T) {
	t.Parallel()
	bubble(t, Config{FourLetterWords: []string{"*"}}, func(t *testing.T, s *Server, l *memListener) {
		t.Helper()
		c := l.connect(t, 600_000)
		c.watchMany(t, "x", 2*surveyChunk/8)
		for range maxSurveys / 2 { // half of them for one address
			if _, err := l.dial(t).nc.Write([]byte("wchc")); err != nil {
				t.Fatal(err)
			}
		}
		ask := func() string {
			w := l.dial(t)
			if _, err := w.nc.Write([]byte("wchc")); err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(w.nc)
			return string(text)
		}
		synctest.Wait()
		if got, want := ask(), "wchc is not executed: "+busyText+".\n"; got != want {
			t.Errorf("one more list: got %q, want %q", got, want)
		}
		wantHit(t, s, limitLists, 1)
		c.ping(t)
		time.Sleep(s.cfg.HandshakeTimeout + time.Second)
		if got := ask(); strings.Count(got, "\t/x") != 2*surveyChunk/8 {
			t.Errorf("after their time: got %.40q, want the list", got)
		}
	})
}

func TestOnlyCountsAreShownWhereALoginIsRequired(t *testing.T) {
	t.Parallel()
	cfg := requireLogin
	cfg.FourLetterWords, cfg.AdminListen = []string{"*"}, "127.0.0.1:0"
	s := serve(t, cfg, disk{})
	for word, w := range fourLetterWords {
		locked := strings.HasPrefix(ask(t, s, word), word+" is not executed: "+lockedText)
		if locked != w.private {
			t.Errorf("%s: got refused %t, want %t", word, locked, w.private)
		}
	}
	for _, word := range []string{"cons", "stat", "dump", "wchc", "wchp", "crst", "srst", "stmk", "envi", "conf"} {
		if !fourLetterWords[word].private {
			t.Errorf("%s is for everybody", word)
		}
	}
	for path, status := range map[string]int{
		"ruok": http.StatusOK, "mntr": http.StatusOK, "srvr": http.StatusOK, "wchs": http.StatusOK,
		"cons": http.StatusUnauthorized, "stat": http.StatusUnauthorized, "dump": http.StatusUnauthorized,
		"wchc": http.StatusUnauthorized, "wchp": http.StatusUnauthorized, "crst": http.StatusUnauthorized,
		"srst": http.StatusUnauthorized, "envi": http.StatusUnauthorized, "conf": http.StatusUnauthorized,
	} {
		fetchAdmin(t, s, "/commands/"+path, status)
	}
	local := requireLogin
	local.FourLetterWords, local.Listen = []string{"*"}, []string{"unix:" + shortDir(t) + "/sock"}
	if got := ask(t, serve(t, local, disk{}), "cons"); !strings.HasPrefix(got, " /unix[") {
		t.Errorf("cons on the user's own socket: got %q, want the connections", got)
	}
}

func TestAdminPathWorksOrIsRefused(t *testing.T) {
	t.Parallel()
	for path, works := range map[string]bool{
		"/": true, "/commands/": true, "/a/b": true, "/{x": true, "/{x}": true, "/{$}": true, "/*": true, "/a=b": true,
		"commands": false, "=commands": false, "GET /x": false, "host/x": false, "//x": false, "/a/../b": false,
		"/a b": false, "/a?b": false, "/a#b": false, "/a%20b": false, "/a\x00": false, "/\xff": false, ".": false,
	} {
		s, err := Start(t.Context(), Config{
			InMemory: true, Listen: []string{"127.0.0.1:0"}, AdminListen: "127.0.0.1:0", AdminPath: path,
		})
		if !works {
			if err == nil || !strings.Contains(err.Error(), "admin.commandURL") {
				t.Errorf("%q: got %v, want an error that names the key", path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: got %v, want a server", path, err)
			continue
		}
		if list := fetchAdmin(t, s, path, http.StatusOK); !strings.Contains(list, "/ruok") {
			t.Errorf("%q: got %q, want the list of commands", path, list)
		}
		fetchAdmin(t, s, strings.TrimSuffix(path, "/")+"/ruok", http.StatusOK)
		fetchAdmin(t, s, strings.TrimSuffix(path, "/")+"/a/b", http.StatusNotFound)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestConnectionsForHTTPCommandsCount(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{AdminListen: "127.0.0.1:0", MaxClientConns: 5}, disk{})
	admin := func() *rawClient {
		nc, err := s.dialAdmin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.nc.Close() })
		return nc
	}
	var idle []*rawClient
	for range 5 {
		idle = append(idle, admin())
	}
	for s.openNow() < 5 {
		runtime.Gosched()
	}
	if !admin().ended() {
		t.Error("one more connection than an address may have: got it open, want it closed")
	}
	if _, err := s.connect(wire.ConnectRequest{}); err == nil {
		t.Error("one more client than an address may have: got a session, want none")
	}
	for _, c := range idle {
		_ = c.nc.Close()
	}
	for s.openNow() > 0 {
		runtime.Gosched()
	}
	fetchAdmin(t, s, "/commands/ruok", http.StatusOK)
	big := admin()
	_, _ = big.nc.Write([]byte("GET /commands/ruok HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100_000)))
	if text, _ := io.ReadAll(big.nc); !strings.Contains(string(text), "431") {
		t.Errorf("a header of 100 KB: got %.60q, want it refused", text)
	}
}

func TestConnectionsForHTTPCommandsLeaveRoomForClients(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{AdminListen: "127.0.0.1:0", MaxClientConns: Unlimited, Limits: Limits{Conns: 20}}, disk{})
	for range 40 {
		c, err := s.dialAdmin()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.nc.Close() })
	}
	for s.stats.hits[limitConns].Load() < 24 {
		runtime.Gosched()
	}
	mustConnect(t, s, wire.ConnectRequest{}).ping(t)
}
