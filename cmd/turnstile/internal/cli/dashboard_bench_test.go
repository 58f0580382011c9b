//go:build linux

package cli_test

// What a dashboard costs where there is much: go test -run '^$' -bench Dashboard ./cmd/turnstile/internal/cli

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// BenchmarkDashboardOfManyLocks fetches pages of 10,000 locks with ten waiters each. It reports the memory of the
// process, too, and what an idle viewer gets in a second.
func BenchmarkDashboardOfManyLocks(b *testing.B) {
	const locks, waiters, guid = 10_000, 10, "_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-"
	srv := zktest.Run(b)
	sess := srv.Session(b, 10*time.Minute)
	for i := range locks {
		path := fmt.Sprintf("/jobs/%05d", i)
		_, err := sess.CreateAll(b.Context(), zk.Node{Path: path}, zk.Parents{})
		if err != nil {
			b.Fatal(err)
		}
		batch := sess.Batch()
		var made []*zk.Future[zk.Created]
		for k := range waiters + 1 {
			data := fmt.Appendf(nil, "10.0.%d.%d", i%250, k)
			made = append(made, batch.Create(path+"/"+guid, data, zk.EphemeralSequential))
		}
		batch.Send()
		for _, f := range made {
			if _, err := f.Get(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	began := time.Now()
	cmd := turnstile("dashboard", "--connect", srv.Addr(), "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		b.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "serving "))
	fetch := func(page, tag string) (size int, newTag string) {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+page, http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", "gzip")
		if tag != "" {
			req.Header.Set("Turnstile-Part", "1")
			req.Header.Set("If-None-Match", tag)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		var head strings.Builder
		_ = resp.Header.Write(&head) // to memory
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			b.Fatal(err)
		}
		if z, err := gzip.NewReader(strings.NewReader(string(body))); err == nil && tag == "" {
			text, _ := io.ReadAll(z)
			if strings.Contains(string(text), "Reading") {
				return 0, ""
			}
		}
		return len("HTTP/1.1 200 OK\r\n") + head.Len() + len(body), resp.Header.Get("ETag")
	}
	for size, _ := fetch("locks", ""); size == 0; size, _ = fetch("locks", "") {
		time.Sleep(10 * time.Millisecond) // real: it is another process
	}
	b.Logf("the first page came after %v", time.Since(began).Round(time.Millisecond))
	for _, page := range []string{
		"", "locks", "locks?q=77&sort=path", "locks?n=1000", "waits", "sessions", "lock?path=/jobs/00001",
	} {
		b.Run("/"+page, func(b *testing.B) {
			for b.Loop() {
				fetch(page, "")
			}
		})
	}
	for _, page := range []string{"", "locks", "waits", "lock?path=/jobs/00001"} {
		b.Run("idle /"+page, func(b *testing.B) {
			bytes := 0
			_, tag := fetch(page, "x")
			for b.Loop() {
				var size int
				if size, tag = fetch(page, tag); tag == "" {
					b.Fatal("no tag")
				}
				bytes += size
				time.Sleep(2 * time.Second) // real: as the page does
			}
			b.ReportMetric(float64(bytes)/float64(b.N)/2, "B/s")
		})
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	kb, _ := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(status)[1]))
	b.Logf("the process had at most %d MB", kb/1024)
}
