package zktest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// wantFailure fails the test unless r has recorded one failure that contains all the words.
func wantFailure(t *testing.T, r *recorder, words ...string) {
	t.Helper()
	if len(r.failures) != 1 {
		t.Fatalf("got %d failures, want 1: %q", len(r.failures), r.failures)
	}
	for _, word := range words {
		if !strings.Contains(r.failures[0], word) {
			t.Errorf("got failure %q, want %q in it", r.failures[0], word)
		}
	}
}

func testNoNodes(p env) {
	p.NoNodes(p, p.dir)
	p.NoNodes(p, p.dir+"/absent")
	r := p.newRaw()
	r.wantDo(wire.OK, create(p.dir+"/a"))
	r.send(remove(p.dir + "/a"))
	p.NoNodes(p, p.dir)
}

func testNoWatches(p env) {
	r := p.newRaw()
	r.wantDo(wire.OK, watch(p.dir))
	r.send(set(p.dir, "x"))
	p.NoWatches(p)
}

func TestChecksFindWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the checks wait before they fail
		var n zktest.Net
		srv := zktest.Run(t, zktest.On(&n))
		r := newRaw(t, srv.Link)
		r.wantDo(wire.OK, create("/a"))
		r.wantDo(wire.OK, create("/a/b"))
		var rec recorder
		srv.NoNodes(&rec, "/")
		wantFailure(t, &rec, "/a", "/a/b")

		r.wantDo(wire.OK, watch("/a"))
		rec = recorder{}
		srv.NoWatches(&rec)
		wantFailure(t, &rec, "1 watches", "/a")
		r.wantDo(wire.OK, remove("/a/b"))
		r.send(remove("/a"))
		srv.NoWatches(t)
		srv.NoNodes(t, "/")
	})
}

func TestCheckCountsWatchesForChildren(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		newRaw(t, srv.Link).wantDo(wire.OK, request{wire.OpGetChildren, &wire.PathWatchRequest{Path: "/", Watch: true}})
		var rec recorder
		srv.NoWatches(&rec)
		wantFailure(t, &rec, "1 watches")
	})
}
