package server

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func TestReadersServeFewRequestsWithAtMostOneWriteInline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ops  []wire.Op
		want bool
	}{
		{[]wire.Op{wire.OpMulti}, true},
		{[]wire.Op{wire.OpRemoveWatches, wire.OpMulti, wire.OpGetData}, true},
		{[]wire.Op{wire.OpCreate2, wire.OpGetChildren2}, true},
		{[]wire.Op{wire.OpGetData, wire.OpGetData, wire.OpGetData, wire.OpGetData}, true},
		{[]wire.Op{wire.OpGetData, wire.OpGetData, wire.OpGetData, wire.OpGetData, wire.OpGetData}, false},
		{[]wire.Op{wire.OpDelete, wire.OpCreate2}, false},
		{[]wire.Op{wire.OpCloseSession}, false},
		{[]wire.Op{wire.OpGetData, wire.OpCloseSession}, false},
	} {
		var items []item
		for _, op := range c.ops {
			items = append(items, item{op: op})
		}
		if got := fitInline(items); got != c.want {
			t.Errorf("%v: got %v, want %v", c.ops, got, c.want)
		}
	}
}

// What is under way goes first: its replies and events must not come after those of what is served inline.
func TestReadersServeNothingInlineBesideOtherWork(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{}, disk{})
	o := s.owner
	for name, busy := range map[string]func() (idle func()){
		"a batch that is not durable yet": func() func() {
			o.inFlight.count.Add(1)
			return func() { o.inFlight.count.Add(-1) }
		},
		"a batch that is being released": func() func() {
			o.releasing <- struct{}{}
			return func() { <-o.releasing }
		},
		"a batch that is being filled": func() func() {
			o.open = new(batch)
			return func() { o.open = nil }
		},
		"the server's end": func() func() {
			o.ended = true
			return func() { o.ended = false }
		},
	} {
		o.turn.Lock()
		idle := busy()
		_, served := o.fillInline(nil)
		idle()
		if served {
			t.Errorf("with %s: requests are served inline", name)
		}
		if _, served = o.fillInline(nil); !served {
			t.Errorf("without %s: no requests are served inline", name)
		}
		o.turn.Unlock()
	}
}
