//go:build linux

package cli_test

// turnstile deadlocks.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestDeadlocksAreListed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	run := func(args ...string) *running {
		return start(t, append([]string{"deadlocks", "--connect", srv.Addr()}, args...)...)
	}
	r := run()
	r.wantCode(0)
	if out := r.rest(); out != "" || !strings.Contains(r.stderr.String(), "0 deadlocks, 0 confirmed") {
		t.Errorf("got %q, %q", out, r.stderr.String())
	}
	run("/zookeeper").wantCode(64)
	run("/a", "/b").wantCode(64)
	watching := run("--watch", "--every", "50ms")

	told := make(chan struct{}, 2)
	ended := make(chan error, 2)
	var holds [2]*lock.Hold
	var inner [2]*lock.Mutex
	for i, paths := range [][2]string{{"/jobs/a", "/jobs/b"}, {"/jobs/b", "/jobs/a"}} {
		client := srv.Client(t, 10*time.Second)
		cfg := lock.Config{Label: "nightly", Hooks: lock.Hooks{Deadlock: func(lock.Event) { told <- struct{}{} }}}
		outer, err := lock.NewMutex(client, paths[0], cfg)
		if err == nil {
			inner[i], err = lock.NewMutex(client, paths[1], cfg)
		}
		if err == nil {
			holds[i], err = outer.Lock(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range holds {
		go func() {
			_, err := inner[i].Lock(h.Context())
			ended <- err
		}()
	}
	<-told
	<-told
	r = run()
	r.wantCode(1)
	out := r.rest()
	for _, want := range []string{"confirmed:\n", " waits for /jobs/a, token ", " waits for /jobs/b, token ", " pid "} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
	r = run("--json")
	r.wantCode(1)
	out = r.rest()
	if strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, `{"confirmed":true,"steps":[{"path":"/jobs/`) {
		t.Error(out)
	}
	if line := watching.line(); line != "confirmed:" {
		t.Errorf("got %q", line)
	}
	screen := inTmux(t, "", "top", "--connect", srv.Addr())
	screen.see("live")
	screen.press("2")
	screen.see("deadlock: ", "(nightly)", "/jobs/a", "/jobs/b")
	if err := holds[0].Unlock(); err != nil { // ends the wait inside of it, and lets the other one go on
		t.Error(err)
	}
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, lock.ErrUnlocked) {
			t.Error(err)
		}
	}
}
