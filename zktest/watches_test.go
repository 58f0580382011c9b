package zktest_test

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func testHoldWatches(p place) {
	r, other := p.newRaw(), p.newRaw()
	const nodes = 5
	for i := range nodes {
		node := fmt.Sprintf("%s/%d", p.dir, i)
		other.wantDo(wire.OK, create(node))
		r.wantDo(wire.OK, watch(node))
	}
	p.HoldWatches()
	for i := range nodes {
		other.wantDo(wire.OK, set(fmt.Sprintf("%s/%d", p.dir, i), "changed"))
	}
	r.wantDo(wire.OK, exists(p.dir)) // a reply that by the server's order comes after the events
	p.ReleaseWatches()
	for i := range nodes {
		r.wantEvent(wire.EventDataChanged, fmt.Sprintf("%s/%d", p.dir, i))
	}
	r.wantDo(wire.OK, watch(p.dir))
	other.wantDo(wire.OK, set(p.dir, "changed"))
	r.wantEvent(wire.EventDataChanged, p.dir)
}

func testHoldWatchesOfOneSession(p place) {
	r, other := p.newRaw(), p.newRaw()
	r.wantDo(wire.OK, watch(p.dir))
	other.wantDo(wire.OK, watch(p.dir))
	p.HoldWatches(r.SessionID)
	other.send(set(p.dir, "changed"))
	other.wantEvent(wire.EventDataChanged, p.dir)
	other.want(2, wire.OK)
	r.wantDo(wire.OK, exists(p.dir))
	p.ReleaseWatches(r.SessionID)
	r.wantEvent(wire.EventDataChanged, p.dir)
}
