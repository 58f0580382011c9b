package tree_test

import (
	"math/rand/v2"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// scripted lists the operations, which a script refers to by index.
var scripted = []wire.Op{
	wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpSetData,
	wire.OpSetACL,
	wire.OpMulti, wire.OpCloseSession, wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren,
	wire.OpGetChildren2,
	wire.OpSync, wire.OpGetEphemerals, wire.OpGetAllChildren, wire.OpWhoAmI, wire.OpMultiRead, wire.OpAddWatch,
	wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpSetWatches, wire.OpSetWatches2, wire.OpDeleteContainer,
	wire.OpCheck,
}

// script encodes a random program as the fuzzer reads it: the connection, the operation and the request's body.
func script(seed uint64, steps int) []byte {
	p := program{rand.New(rand.NewPCG(seed, 2))}
	var b []byte
	for range steps {
		op, req := p.write()
		switch p.IntN(4) {
		case 0:
			op = pick(p, wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2)
			req = &wire.PathWatchRequest{Path: p.path(), Watch: true}
		case 1:
			paths := []string{p.path(), p.path()}
			op, req = wire.OpSetWatches2, &wire.SetWatchesRequest{
				Two: true, Data: paths, Exist: paths, Child: paths, Persistent: paths, PersistentRecur: paths,
			}
		}
		for i := range scripted {
			if scripted[i] == op {
				b = req.Append(append(b, byte(p.IntN(4)), byte(i)))
			}
		}
	}
	return b
}

// FuzzRequests checks that no request makes a tree panic or inconsistent, and that the store always matches the tree.
//
// Promise: 9
func FuzzRequests(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(script(seed, 20))
	}
	quota := wire.CreateRequest{ACL: openACL, Data: []byte("count=1,bytes=1=;countHardLimit=2")}
	var b []byte
	for _, path := range []string{
		"/a", "/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits",
		"/zookeeper/quota/a/zookeeper_stats", "/a/b", "/a/c",
	} {
		quota.Path = path
		b = quota.Append(append(b, 0, 0))
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, script []byte) {
		s := newServer(t, tree.Config{ExtendedTypes: true, EnforceQuota: true})
		clients := []*client{s.connect(1, alice), s.connect(2), s.connect(3), nil}
		d := jute.NewDecoder(script)
		for range 64 {
			who, what := d.Byte(), d.Byte()
			op := scripted[int(what)%len(scripted)]
			req := wire.NewRequest(op)
			req.Decode(d)
			if d.Err() != nil {
				break
			}
			var caller *tree.Caller
			if c := clients[int(who)%len(clients)]; c != nil {
				caller = c.Caller
			}
			s.now += int64(who)
			if tree.IsRead(op) {
				tree.DependsOn(op, req, func(string) bool { return false })
				s.tree.Read(caller, op, req)
				continue
			}
			s.zxid++
			order := s.tree.DumpOrder()
			if r := s.done(s.tree.Write(s.zxid, s.now, caller, op, req)); len(r.Changes) == 0 &&
				order != s.tree.DumpOrder() {
				t.Fatalf("%v %+v changed the tree without returning a change", op, req)
			}
		}
		for _, path := range s.tree.AllContainers(s.now) {
			s.wantOK(s.collect(path), "collect "+path)
		}
		s.wantSound()
	})
}
