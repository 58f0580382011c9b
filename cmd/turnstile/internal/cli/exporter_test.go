//go:build unix

package cli_test

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/request"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestExporterServesWhatLocksShows(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	start(t, "queue", "put", "--connect", srv.Addr(), "/jobs/mail/17", "x").wantCode(0)
	holder := start(t, "lock", "--connect", srv.Addr(), "/jobs/17", "--", "puppet")
	holder.ready()
	srv.Cut() // as when both begin after a failure of power
	r := start(t, "exporter", "--json", "--connect", srv.Addr(), "--listen", "127.0.0.1:0",
		"--connect-timeout", "1s", "/jobs")
	var ready struct{ URL string }
	if err := json.Unmarshal([]byte(r.line()), &ready); err != nil {
		t.Fatal(err)
	}
	until := func(url string, status int, want string) {
		t.Helper()
		began := time.Now()
		for {
			got, body := request.Fetch(t, http.MethodGet, url)
			if got == status && strings.Contains(body, want) {
				return
			}
			if time.Since(began) > patience {
				t.Fatalf("%s: %d %s", url, got, body)
			}
			time.Sleep(10 * time.Millisecond) // it is another process
		}
	}
	until(ready.URL, 200, "turnstile_ensemble_up 0\n")
	until(strings.Replace(ready.URL, "metrics", "readyz", 1), 503, "nothing has been read yet")
	r.stderr.await(t, "the server at "+srv.Addr())
	srv.Heal()
	start(t, "lock", "--connect", srv.Addr(), "/jobs/17", "--", "puppet")
	until(ready.URL, 200, "turnstile_ensemble_lock_waiters{lock=\"/jobs/*\"} 1\n")
	until(ready.URL, 200, "turnstile_ensemble_queue_items{queue=\"/jobs/mail/*\",state=\"ready\"} 1\n")
	until(ready.URL, 200, "turnstile_ensemble_queue_oldest_seconds{queue=\"/jobs/mail/*\"} ")
	until(ready.URL, 200, "turnstile_ensemble_cycles{certainty=\"confirmed\"} 0\n")
	until(strings.Replace(ready.URL, "metrics", "readyz", 1), 200, "ok")
	until(strings.Replace(ready.URL, "metrics", "livez", 1), 200, "ok")
	holder.signal(syscall.SIGTERM)
	holder.wantCode(3)
	until(ready.URL, 200, "turnstile_ensemble_lock_waiters{lock=\"/jobs/*\"} 0\n")
	srv.Cut()
	until(strings.Replace(ready.URL, "metrics", "readyz", 1), 503, "no server is connected")
	until(ready.URL, 200, "turnstile_ensemble_up 0\n")
	srv.Heal()
	until(ready.URL, 200, "turnstile_ensemble_up 1\n")
	r.signal(syscall.SIGTERM)
	r.wantCode(0)
	r.wantStderr("the server at " + srv.Addr())
}

// A survey that has read everything once goes on after a refusal: so this one is refused from the beginning.
func TestExporterEndsWithItsSurvey(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	srv.Control(func(request zktest.Request) zktest.Fault {
		if request.Op == zktest.OpSync {
			return zktest.Answer(zk.BadArguments)
		}
		return zktest.Pass
	})
	r := start(t, "exporter", "--connect", srv.Addr(), "--listen", "127.0.0.1:0")
	r.wantCode(70)
	r.wantStderr("survey /")
}

func TestExporterServesSoManyConnections(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	r := start(t, "exporter", "--connect", srv.Addr(), "--listen", "127.0.0.1:0")
	_, url, _ := strings.Cut(r.line(), "http://")
	host, _, _ := strings.Cut(url, "/")
	for range 1000 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, _ = c.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")) // fails if it is closed already
		if n, _ := c.Read(make([]byte, 1)); n == 0 {
			return
		}
	}
	t.Error("got answers on 1000 connections at a time, want that some are closed")
}
