package verify

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// judged is the report of a run of which these are the only histories.
func judged(calls []lincheck.CounterCall, holds []lincheck.Hold) *Report {
	r := newReport(Config{Path: "/v", For: time.Second, Rate: 50}, 3)
	done := Round{Number: 1, Calls: len(calls), Holds: len(holds)}
	var part []lincheck.CounterCall
	var refused []lincheck.Hold
	done.Counter, part = lincheck.JudgeCounter(calls, time.Minute)
	done.Lock, refused = lincheck.JudgeMutex(holds, time.Minute)
	r.add(done, part, refused)
	r.lastCalls, r.lastHolds = calls, holds
	for _, c := range calls {
		r.took(c.Op, c.Asked, max(c.Asked+1, c.Done))
	}
	return r
}

// add is a call that takes from one millisecond to the next.
func add(client int, asked, n, value int64) lincheck.CounterCall {
	const ms = int64(time.Millisecond)
	return lincheck.CounterCall{
		Client: client, Op: lincheck.CounterAdd, N: n, Value: value, OK: true,
		Asked: asked * ms, Done: (asked + 1) * ms,
	}
}

// hold is a hold from one millisecond to another.
func hold(client int, got, ended, token int64) lincheck.Hold {
	const ms = int64(time.Millisecond)
	return lincheck.Hold{
		Client: client, Session: int64(client), Token: token, Asked: got*ms - 1, Got: got * ms,
		Alive: (ended - 1) * ms, Ended: ended * ms,
	}
}

func pageOf(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := WritePage(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A history that is wrong on purpose is refused, and the page shows the calls that contradict each other.
func TestPageShowsWhatContradictsItself(t *testing.T) {
	t.Parallel()
	late := add(2, 9, 1, 8)
	for what, c := range map[string]struct {
		calls      []lincheck.CounterCall
		holds      []lincheck.Hold
		want, lack string // in the refusal
	}{
		"a lost add": {
			[]lincheck.CounterCall{add(0, 1, 5, 5), add(1, 3, 2, 7), add(2, 5, 1, 6), late},
			nil,
			"Client 2 was told this by its call at 0.0050 s: <strong>add 1 → 6</strong>", "add 1 → 8",
		},
		"two holders": {
			nil,
			[]lincheck.Hold{hold(0, 1, 3, 10), hold(1, 4, 8, 20), hold(2, 6, 9, 30), hold(0, 20, 22, 40)},
			"Client 2 acquired the lock at 0.0060 s, and client 1 held it until 0.0070 s", "<td class=\"n\">40",
		},
		"a token that does not grow": {
			nil,
			[]lincheck.Hold{hold(0, 1, 3, 10), hold(1, 4, 8, 20), hold(2, 9, 10, 15)},
			"The token of a later hold, 15, is not larger than that of an earlier one, 20", "<td class=\"n\">10",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := judged(c.calls, c.holds)
			text := pageOf(t, r)
			_, refusal, _ := strings.Cut(text, `<section class="bad">`)
			refusal, _, _ = strings.Cut(refusal, "</section>")
			if r.Verdict() != lincheck.Refused || !strings.Contains(text, ">Not linearizable</h1>") ||
				!strings.Contains(refusal, c.want) || strings.Contains(refusal, c.lack) ||
				!strings.Contains(refusal, `"culprit">`) || // a row
				!strings.Contains(refusal, ` culprit">`) { // a bar
				t.Errorf("%v: %s", r.Verdict(), refusal)
			}
			if got := strings.Contains(text, "How long calls took"); got != (len(c.calls) > 0) {
				t.Errorf("the page shows how long calls took: %t, for %d calls", got, len(c.calls))
			}
			if lines := Contradictions(r); len(lines) != 1 {
				t.Errorf("%q", lines)
			}
		})
	}
}

// An outcome that is unknown may be either, and calls in vain are none.
func TestUnknownOutcomesAreAccepted(t *testing.T) {
	t.Parallel()
	lost := lincheck.CounterCall{Client: 1, Op: lincheck.CounterAdd, N: 4, Asked: 1}
	get := func(asked, value int64) lincheck.CounterCall {
		return lincheck.CounterCall{Client: 2, Op: lincheck.CounterGet, Asked: asked, Done: asked + 1, Value: value}
	}
	r := judged([]lincheck.CounterCall{lost, get(3, 0), get(5, 4)}, nil)
	if r.Verdict() != lincheck.Accepted || !strings.Contains(pageOf(t, r), ">Linearizable</h1>") {
		t.Error(r.Verdict())
	}
	if r = judged([]lincheck.CounterCall{lost, get(3, 4), get(5, 0)}, nil); r.Verdict() != lincheck.Refused {
		t.Error(r.Verdict())
	}
}

// What others have written does not become HTML, and the page loads and runs nothing.
func TestPageIsHarmless(t *testing.T) {
	t.Parallel()
	r := newReport(Config{Path: "/<script>", For: time.Second}, 1)
	r.Versions = []Version{{Of: "<b>zk", Version: `"><img src=x>`}}
	r.failed("lock", errors.New("<script>"))
	r.Stopped, r.Left = errors.New("<i>"), errors.New("<u>")
	text := pageOf(t, r)
	for _, bad := range []string{"<script", "<b>", "<img", "<i>", "<u>", "http://", "https://", "%!"} {
		if strings.Contains(text, bad) {
			t.Errorf("it contains %s", bad)
		}
	}
	if !strings.Contains(text, "Nothing was done") {
		t.Error(text)
	}
}

// Every kind of page is clean in a browser: on a dark and a light screen, on a phone, and by keyboard alone.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	const scripts = "../../test/browser"
	modules := peer.Browser(t, scripts)
	good := []lincheck.CounterCall{add(0, 1, 5, 5), add(1, 3, 2, 7), add(2, 5, 1, 8), add(0, 9, 1, 9)}
	accepted := judged(good, []lincheck.Hold{hold(0, 1, 3, 10), hold(1, 4, 8, 20)})
	accepted.took(callLock, 1, int64(time.Second))
	accepted.Versions = []Version{{Of: "turnstile", Version: "v0.0.0"}, {Of: "zk1.example.com:2181", Version: "3.8.0"}}
	refused := judged(append(good[:3:3], add(0, 9, 1, 8)), []lincheck.Hold{hold(0, 1, 3, 10), hold(1, 2, 8, 9)})
	refused.failed("compare and set", errors.New(strings.Repeat("zk: connection lost ", 20)))
	refused.Stopped, refused.Left = errors.New("signal: interrupt"), errors.New("no server is connected")
	urls := []string{}
	dir := t.TempDir()
	for name, r := range map[string]*Report{
		"accepted": accepted, "refused": refused, "nothing": newReport(Config{Path: "/v", For: time.Second}, 1),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".html", []byte(pageOf(t, r)), 0o600); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, "file://"+file+".html")
	}
	args := append([]string{scripts + "/pages.mjs", modules, os.Getenv("TURNSTILE_PICTURES")}, urls...)
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Stderr = t.Output()
	if out, err := cmd.Output(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	r := newReport(Config{For: time.Second}, 1)
	for i := range int64(1000) {
		r.took("get", 0, (i+1)*int64(time.Millisecond))
	}
	k := r.Kinds[0]
	for part, ms := range map[float64]int64{0.5: 500, 0.99: 990, 1: 1000} {
		want := time.Duration(ms) * time.Millisecond
		if got := k.Quantile(part); got < want || got > want+want/20 || got > k.Most {
			t.Errorf("%g: %v, want %v", part, got, want)
		}
	}
	r.took("get", 0, int64(100*time.Hour)) // longer than the last step
	r.took("get", 0, 0)
	if got := k.Quantile(1); got != 100*time.Hour && got <= time.Second {
		t.Error(got)
	}
}
