//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/zktest"
)

// workerEnv makes the test binary a worker: servers, service and text, separated by spaces.
const workerEnv = "TURNSTILE_EXAMPLE_WORKER"

func TestMain(m *testing.M) {
	if orders := strings.Fields(os.Getenv(workerEnv)); len(orders) == 3 {
		if err := write(context.Background(), orders[0], orders[1], orders[2], os.Stdin, os.Stdout); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// worker is a process that has the lock.
type worker struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startWorker(t *testing.T, orders string) *worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{Cmd: exec.CommandContext(t.Context(), self)}
	w.Env = append(os.Environ(), workerEnv+"="+orders)
	w.Stderr = t.Output()
	if w.in, err = w.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Process.Kill() // it may have ended, or be stopped
		_ = w.Wait()
	})
	return w
}

// says waits for a line of the worker's.
func (w *worker) says(t *testing.T, want string) {
	t.Helper()
	if line, err := w.out.ReadString('\n'); !strings.Contains(line, want) {
		t.Fatalf("the worker says %q, %v, want %q", line, err, want)
	}
}

func (w *worker) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := w.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (w *worker) enter(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		t.Fatal(err)
	}
}

// text returns what the service has.
func text(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Two processes and a real stop: the first has the lock and is stopped before its write, its session expires, the
// second acquires the lock and writes, and then the first continues.
//
// Promise: 12
func TestLateWriteOfAPausedHolderIsRefused(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.SessionTimeouts(time.Second, time.Minute))
	service := httptest.NewServer(newBoard())
	defer service.Close()

	first := startWorker(t, srv.Addr()+" "+service.URL+" late")
	first.says(t, "has the lock")
	first.signal(t, syscall.SIGSTOP)
	second := startWorker(t, srv.Addr()+" "+service.URL+" early")
	second.says(t, "has the lock") // because the first one's session has expired: nobody has given it up
	second.enter(t)
	second.says(t, "wrote early")

	first.enter(t) // waits in the pipe
	first.signal(t, syscall.SIGCONT)
	first.says(t, fence.ErrStale.Error())
	if got := text(t, service.URL); got != "early" {
		t.Errorf("the service has %q, want what the second holder wrote", got)
	}
}
