package zktest_test

import (
	"fmt"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

func testHoldWatches(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	const nodes = 5
	for i := range nodes {
		node := fmt.Sprintf("%s/%d", dir, i)
		other.wantDo(wire.OK, create(node))
		r.wantDo(wire.OK, watch(node))
	}
	l.HoldWatches()
	for i := range nodes {
		other.wantDo(wire.OK, set(fmt.Sprintf("%s/%d", dir, i), "changed"))
	}
	r.wantDo(wire.OK, exists(dir)) // a reply that by the server's order comes after the events
	l.ReleaseWatches()
	for i := range nodes {
		r.wantEvent(wire.EventDataChanged, fmt.Sprintf("%s/%d", dir, i))
	}
	r.wantDo(wire.OK, watch(dir))
	other.wantDo(wire.OK, set(dir, "changed"))
	r.wantEvent(wire.EventDataChanged, dir)
}

func testHoldWatchesOfOneSession(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	r.wantDo(wire.OK, watch(dir))
	other.wantDo(wire.OK, watch(dir))
	l.HoldWatches(r.SessionID)
	other.send(set(dir, "changed"))
	other.wantEvent(wire.EventDataChanged, dir)
	other.want(2, wire.OK)
	r.wantDo(wire.OK, exists(dir))
	l.ReleaseWatches(r.SessionID)
	r.wantEvent(wire.EventDataChanged, dir)
}
