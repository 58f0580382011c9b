package tree_test

import (
	"fmt"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// BenchmarkCreateDelete measures what a lock does to the tree: create and delete an ephemeral sequential node.
func BenchmarkCreateDelete(b *testing.B) {
	for _, others := range []int{0, 1000, 100000} {
		b.Run(fmt.Sprintf("siblings=%d", others), func(b *testing.B) {
			t := tree.New(tree.Config{})
			t.CreateSession(1, 1, 4000)
			c := &tree.Caller{Session: 1, Watcher: 1, IDs: []wire.ID{{Scheme: "ip", ID: "127.0.0.1"}}}
			create := &wire.CreateRequest{
				Path: "/_c_00000000-0000-0000-0000-000000000000-lock-",
				Data: make([]byte, 100), ACL: openACL, Flags: wire.FlagEphemeralSequential,
			}
			zxid := int64(1)
			for range others {
				zxid++
				t.Write(zxid, 1, c, wire.OpCreate2, create)
			}
			b.ReportAllocs()
			for b.Loop() {
				zxid++
				r := t.Write(zxid, 1, c, wire.OpCreate2, create)
				zxid++
				t.Write(zxid, 1, c, wire.OpDelete,
					&wire.DeleteRequest{Path: r.Body.(*wire.Create2Response).Path, Version: -1})
			}
		})
	}
}

func BenchmarkSetData(b *testing.B) {
	t := tree.New(tree.Config{})
	t.CreateSession(1, 1, 4000)
	c := &tree.Caller{Session: 1, Watcher: 1}
	t.Write(2, 1, c, wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL})
	set := &wire.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1}
	zxid := int64(2)
	b.ReportAllocs()
	for b.Loop() {
		zxid++
		t.Write(zxid, 1, c, wire.OpSetData, set)
	}
}

func BenchmarkWatchAndFire(b *testing.B) {
	t := tree.New(tree.Config{})
	t.CreateSession(1, 1, 4000)
	c := &tree.Caller{Session: 1, Watcher: 1}
	t.Write(2, 1, c, wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL})
	get := &wire.PathWatchRequest{Path: "/a", Watch: true}
	set := &wire.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1}
	zxid := int64(2)
	b.ReportAllocs()
	for b.Loop() {
		t.Read(c, wire.OpGetData, get)
		zxid++
		t.Write(zxid, 1, c, wire.OpSetData, set)
	}
}
