package zktest_test

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func testHoldWatches(p env) {
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
	r.wantDo(wire.OK, exists(p.dir)) // the server sent it after the events
	p.ReleaseWatches()
	for i := range nodes {
		r.wantEvent(wire.EventDataChanged, fmt.Sprintf("%s/%d", p.dir, i))
	}
	r.wantDo(wire.OK, watch(p.dir))
	other.wantDo(wire.OK, set(p.dir, "changed"))
	r.wantEvent(wire.EventDataChanged, p.dir)
}

func testHoldWatchesOfOneSession(p env) {
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

func testOvertake(p env) {
	r, other := p.newRaw(), p.newRaw()
	nodes := []string{p.dir + "/0", p.dir + "/1", p.dir + "/2"}
	for _, node := range nodes {
		other.wantDo(wire.OK, create(node))
		r.wantDo(wire.OK, watch(node))
	}
	p.Overtake(nodes[0], r.SessionID)
	for _, node := range nodes {
		other.wantDo(wire.OK, set(node, "changed"))
	}
	for _, node := range []string{nodes[1], nodes[0], nodes[2]} {
		r.wantEvent(wire.EventDataChanged, node)
	}
	r.wantDo(wire.OK, watch(nodes[0]))
	r.wantDo(wire.OK, watch(nodes[1]))
	other.wantDo(wire.OK, set(nodes[0], "again"))
	other.wantDo(wire.OK, set(nodes[1], "again"))
	r.wantEvent(wire.EventDataChanged, nodes[0]) // Overtake is for one event only
	r.wantEvent(wire.EventDataChanged, nodes[1])
}

func testOvertakeByReply(p env) {
	r, other := p.newRaw(), p.newRaw()
	r.wantDo(wire.OK, watch(p.dir))
	p.Overtake(p.dir)
	other.wantDo(wire.OK, set(p.dir, "changed"))
	r.send(exists(p.dir))
	r.wantEvent(wire.EventDataChanged, p.dir)
	r.want(2, wire.OK)
}
