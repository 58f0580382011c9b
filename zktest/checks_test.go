package zktest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

// recorder is a test that writes down what it fails with.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// wantFailure fails the test unless r has failed once, with all of the words.
func wantFailure(t *testing.T, r *recorder, words ...string) {
	t.Helper()
	if len(r.failures) != 1 {
		t.Fatalf("%d failures, want 1: %q", len(r.failures), r.failures)
	}
	for _, word := range words {
		if !strings.Contains(r.failures[0], word) {
			t.Errorf("failure %q does not tell %q", r.failures[0], word)
		}
	}
}

func testNoNodes(t *testing.T, l *zktest.Link, dir string) {
	l.NoNodes(t, dir)
	l.NoNodes(t, dir+"/absent")
	r := newRaw(t, l)
	r.wantDo(wire.OK, create(dir+"/a"))
	r.wantDo(wire.OK, create(dir+"/a/b"))
	var rec recorder
	l.NoNodes(&rec, dir)
	wantFailure(t, &rec, dir+"/a", dir+"/a/b")
	r.wantDo(wire.OK, remove(dir+"/a/b"))
	r.wantDo(wire.OK, remove(dir+"/a"))
	l.NoNodes(t, dir)
}

func testNoWatches(t *testing.T, l *zktest.Link, dir string) {
	l.NoWatches(t)
	r := newRaw(t, l)
	r.wantDo(wire.OK, watch(dir))
	var rec recorder
	l.NoWatches(&rec)
	wantFailure(t, &rec, "1 watches", dir)
	r.send(set(dir, "x"))
	r.wantEvent(wire.EventDataChanged, dir)
	r.want(2, wire.OK)
	l.NoWatches(t)
	r.wantDo(wire.OK, request{wire.OpGetChildren, &wire.PathWatchRequest{Path: dir, Watch: true}})
	rec = recorder{}
	l.NoWatches(&rec)
	wantFailure(t, &rec, "1 watches")
}
