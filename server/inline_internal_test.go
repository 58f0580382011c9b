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
