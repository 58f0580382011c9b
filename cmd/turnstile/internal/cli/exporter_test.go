//go:build unix

package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestExporterServesWhatLocksShows(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	holder := start(t, "lock", "--connect", srv.Addr(), "/jobs/17", "--", "puppet")
	holder.ready()
	start(t, "lock", "--connect", srv.Addr(), "/jobs/17", "--", "puppet")
	r := start(t, "exporter", "--json", "--connect", srv.Addr(), "--listen", "127.0.0.1:0", "/jobs")
	var ready struct{ URL string }
	if err := json.Unmarshal([]byte(r.line()), &ready); err != nil {
		t.Fatal(err)
	}
	until := func(url string, status int, want string) {
		t.Helper()
		began := time.Now()
		for {
			got, body := get(t, url)
			if got == status && strings.Contains(body, want) {
				return
			}
			if time.Since(began) > patience {
				t.Fatalf("%s: %d %s", url, got, body)
			}
			time.Sleep(10 * time.Millisecond) // it is another process
		}
	}
	until(ready.URL, 200, "turnstile_ensemble_lock_waiters{lock=\"/jobs/*\"} 1\n")
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
	r.wantCode(128 + 15)
}
