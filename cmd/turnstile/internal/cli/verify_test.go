//go:build unix

package cli_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A verification is what turnstile verify --json prints.
type verification struct {
	Verdict              string
	Calls, Holds, Rounds int
	Failures             int
	Versions             []struct{ Of, Version string }
}

// verified runs turnstile verify, and returns what it prints and the page that it writes.
func verified(t *testing.T, code int, args ...string) (verification, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	args = append([]string{"verify", "--json", "--path", "/v", "--report", file}, args...)
	r := start(t, args...)
	out := r.rest()
	r.wantCode(code)
	var v verification
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return v, string(page)
}

// wantGone reports if the path of a verification is there.
func wantGone(t *testing.T, sess *zk.Session) {
	t.Helper()
	if err := sess.Sync(t.Context(), "/v"); err != nil {
		t.Fatal(err)
	}
	if _, there, err := sess.Exists(t.Context(), "/v"); err != nil || there {
		t.Errorf("/v is left: %v", err)
	}
}

func TestVerifyAcceptsServers(t *testing.T) {
	t.Parallel()
	for what, servers := range map[string]func(t *testing.T) string{
		"embedded": func(t *testing.T) string { return zktest.Run(t).Addr() },
		"Apache":   func(t *testing.T) string { return peer.ZooKeeper(t, peer.Options{}).ConnectString() },
		"ensemble": func(t *testing.T) string { return peer.Ensemble(t, 3, peer.Options{}).ConnectString() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			connect := servers(t)
			v, page := verified(t, 0, "--connect", connect, "--connect-timeout", "1m", "--for", "3s", "--rate", "200")
			// How much a busy machine does in that time is not for a test to say.
			if v.Verdict != "accepted" || v.Calls == 0 || v.Holds == 0 || v.Failures > 0 || v.Rounds == 0 {
				t.Errorf("%+v", v)
			}
			if len(v.Versions) != 1+len(strings.Split(connect, ",")) ||
				!strings.HasPrefix(v.Versions[1].Version, "3.") {
				t.Errorf("%+v", v.Versions)
			}
			if !strings.Contains(page, ">Linearizable</h1>") || !strings.Contains(page, v.Versions[1].Version) {
				t.Error(page)
			}
			client, err := zk.Open(t.Context(), zk.Config{Servers: connect})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			sess, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantGone(t, sess)
		})
	}
}

// Another client that overwrites the counter makes the clients of verify see what no counter does.
func TestVerifyRefusesAWrongHistory(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	sess := srv.Session(t, time.Minute)
	go func() {
		for t.Context().Err() == nil {
			data := binary.BigEndian.AppendUint64(nil, 1<<40)
			if _, err := sess.Set(t.Context(), "/v/counter-1", data, -1); err == nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // until another process has made the node
		}
	}()
	v, page := verified(t, 1, "--connect", srv.Addr(), "--for", "3s", "--rate", "100")
	if v.Verdict != "refused" || !strings.Contains(page, ">Not linearizable</h1>") {
		t.Errorf("%+v: %s", v, page)
	}
	_, refusal, _ := strings.Cut(page, `<section class="bad">`)
	refusal, _, _ = strings.Cut(refusal, "</section>")
	_, told, _ := strings.Cut(refusal, "<strong>")
	told, _, _ = strings.Cut(told, "</strong>")
	wrong := "10995116277" // 1<<40, and what was added to it
	if strings.HasPrefix(told, "set ") {
		wrong = "→ refused" // a compare-and-set came first, whose client knew the right number
	}
	if !strings.Contains(told, wrong) || !strings.Contains(refusal, "was told this by its call at") ||
		!strings.Contains(refusal, `<tr class="culprit">`) {
		t.Error(refusal)
	}
	wantGone(t, sess)
}

// A signal ends it; what it has made is deleted, and what it has seen is reported.
func TestVerifyCleansUpAfterASignal(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	sess := srv.Session(t, time.Minute)
	file := filepath.Join(t.TempDir(), "report.html")
	r := start(t, "verify", "--connect", srv.Addr(), "--path", "/v", "--report", file)
	for there := false; !there; time.Sleep(10 * time.Millisecond) { // another process makes it
		var err error
		if _, there, err = sess.Exists(t.Context(), "/v/lock"); err != nil {
			t.Fatal(err)
		}
	}
	r.signal(syscall.SIGINT)
	out := r.rest()
	r.wantCode(128 + int(syscall.SIGINT))
	if !strings.HasPrefix(out, "accepted: ") {
		t.Error(out)
	}
	wantGone(t, sess)
	if page, err := os.ReadFile(file); err != nil || !strings.Contains(string(page), "Stopped before 5m0s were over") {
		t.Errorf("%v: %s", err, page)
	}
}
