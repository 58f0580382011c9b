//go:build linux

package hostile_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// attack is one way to do harm. An attempt is usually the life of one connection; it reports false if it got none.
type attack struct {
	name     string
	parallel int
	attempt  func(v *attacker) bool
}

// everything is the name of all attacks together.
const everything = "all at once"

// The nodes that attackers use.
const (
	rootNode   = "/hostile"
	bigNode    = "/hostile/big"  // as large as a request may be
	listNode   = "/hostile/list" // has so many children that their list is as large
	children   = 5000
	bigSize    = 1<<20 - 300
	childName  = 190
	perRequest = 4 << 10 // paths of 250 bytes that fit into a frame
)

var attacks = []attack{
	{"huge multiReads", 8, hugeMultiRead},
	{"lists not read", 8, unreadLists},
	{"answers not read", 8, unreadAnswers},
	{"session closed, not read", 8, closedUnread},
	{"identities", 8, identities},
	{"watches", 8, manyWatches},
	{"events not read", 8, unreadEvents},
	{"wrong lengths", 8, wrongLengths},
	{"frames without an end", 8, unfinishedFrames},
	{"sessions", 16, sessions},
	{"connections", 16, connections},
	{"wrong passwords", 16, wrongPasswords},
	{"large writes", 4, largeWrites},
	{"a byte per second", 200, byteBySecond},
	{"random bytes", 16, randomBytes},
	{"mutated frames", 16, mutatedFrames},
	{"long access lists", 4, longLists},
	{"lists that expand", 4, expandingLists},
	{"events of one write", 4, manyEvents},
	{"quotas that come and go", 4, quotas},
	{"counts of a subtree", 8, counts},
	{"sessions with many nodes", 4, manyNodes},
	{"lost sessions", 16, lostSessions},
	{"monitoring", 16, monitoring},
	{"HTTP commands", 16, httpCommands},
}

func request(op wire.Op, body wire.Record) []byte { return wire.AppendRequest(nil, 1, op, body) }

// hugeMultiRead asks for what is just within the limit of a reply, and for far more.
func hugeMultiRead(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	for _, n := range []int{60, 2500, 60, 25_000} {
		req := &wire.MultiRequest{Read: true}
		for range n {
			read := &wire.PathWatchRequest{Path: bigNode}
			req.Ops = append(req.Ops, wire.SubRequest{Op: wire.OpGetData, Request: read})
		}
		if !c.send(request(wire.OpMultiRead, req)) || v.IntN(4) > 0 && !c.skip() {
			break
		}
	}
	return true
}

// unread sends what has large answers until the server takes no more, and reads none.
func (v *attacker) unread(b []byte) *conn {
	c := v.open()
	if c == nil {
		return nil
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	for range 1000 {
		if !c.send(b) {
			break
		}
	}
	return c
}

func unreadLists(v *attacker) bool {
	c := v.unread(request(wire.OpGetChildren2, &wire.PathWatchRequest{Path: listNode}))
	if c == nil {
		return false
	}
	v.keep(c, 500)
	return true
}

func unreadAnswers(v *attacker) bool {
	c := v.unread(request(wire.OpGetData, &wire.PathWatchRequest{Path: bigNode}))
	if c == nil {
		return false
	}
	v.keep(c, 500)
	return true
}

func closedUnread(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	for range 4 { // with more the end of the session would not be read
		c.send(request(wire.OpGetData, &wire.PathWatchRequest{Path: bigNode}))
	}
	c.send(request(wire.OpCloseSession, new(wire.Empty)))
	v.keep(c, 500)
	return true
}

func identities(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	size := []int{1, 900, 100_000}[v.IntN(3)]
	for i := range 1000 {
		auth := fmt.Appendf(nil, "%d%s:secret", i, strings.Repeat("u", size))
		if !c.send(request(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: auth})) || !c.skip() {
			break
		}
	}
	return true
}

// manyWatches has all watches that a connection may have, of short paths or of long ones, and asks for more.
func manyWatches(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	pad := strings.Repeat("w", []int{1, 230}[v.IntN(2)])
	for i := range 25 {
		req := &wire.SetWatchesRequest{RelativeZxid: math.MaxInt64}
		for k := range perRequest {
			req.Exist = append(req.Exist, fmt.Sprintf("/%s%d", pad, i*perRequest+k))
		}
		if !c.send(request(wire.OpSetWatches, req)) || !c.skip() {
			c.abort()
			return true
		}
	}
	v.keep(c, 500)
	return true
}

// unreadEvents watches everything and reads nothing, while it writes what makes large events.
func unreadEvents(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	for range 4 {
		if w := v.open(); w != nil {
			w.send(request(wire.OpAddWatch, &wire.AddWatchRequest{Path: rootNode, Mode: wire.WatchPersistentRecursive}))
			v.keep(w, 200)
		}
	}
	defer c.abort()
	name := fmt.Sprintf("%s/%d%s", rootNode, v.Uint64(), strings.Repeat("e", 100_000))
	for range 20 {
		if !c.send(request(wire.OpCreate, &wire.CreateRequest{Path: name, ACL: openACL})) || !c.skip() ||
			!c.send(request(wire.OpDelete, &wire.DeleteRequest{Path: name, Version: -1})) || !c.skip() {
			break
		}
	}
	return true
}

var openACL = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}

// wrongLengths sends frames that are too long, and lengths below zero, instead of the handshake and after it.
func wrongLengths(v *attacker) bool {
	dial := v.open
	if v.IntN(2) == 0 {
		dial = v.dial
	}
	c := dial()
	if c == nil {
		return false
	}
	defer c.abort()
	lengths := []uint32{1 << 20, 2 << 20, math.MaxInt32, 1 << 31, math.MaxUint32, v.Uint32() | 1<<31}
	b := binary.BigEndian.AppendUint32(nil, lengths[v.IntN(len(lengths))])
	c.send(append(b, make([]byte, v.IntN(3<<20))...))
	c.skip()
	return true
}

// unfinishedFrames sends all of a large frame but its last byte, on more and more connections.
func unfinishedFrames(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	b := binary.BigEndian.AppendUint32(nil, bigSize)
	c.send(append(b, make([]byte, bigSize-1)...))
	v.keep(c, 6000)
	return true
}

// sessions opens one session after the other and closes none.
func sessions(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	c.abort()
	return true
}

// connections opens more connections than an address may have, and says nothing.
func connections(v *attacker) bool {
	c := v.dial()
	if c == nil {
		return false
	}
	v.keep(c, 9000)
	return true
}

func wrongPasswords(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	const proof = `username="guest",nonce="%d",nc=00000001,cnonce="1",digest-uri="zookeeper/zk-sasl-md5",response=0`
	token := fmt.Sprintf(proof, v.Uint64())
	for _, t := range []string{"", token} {
		if !c.send(request(wire.OpSASL, &wire.SASLToken{Token: []byte(t)})) || !c.skip() {
			break
		}
	}
	return true
}

// largeWrites fills the disk as fast as it takes it.
func largeWrites(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	b := request(wire.OpSetData, &wire.SetDataRequest{Path: bigNode, Data: make([]byte, bigSize), Version: -1})
	for range 16 {
		if !c.send(b) {
			return true
		}
	}
	for range 16 {
		if !c.skip() {
			break
		}
	}
	return true
}

// byteBySecond is slow: with the handshake, with a request, or with reading.
func byteBySecond(v *attacker) bool {
	var c *conn
	b := handshake()
	if v.IntN(2) == 0 {
		c, b = v.open(), request(wire.OpGetData, &wire.PathWatchRequest{Path: bigNode})
	} else {
		c = v.dial()
	}
	if c == nil {
		return false
	}
	defer c.abort()
	for i := range b {
		pause(time.Second)
		if !c.send(b[i : i+1]) {
			return true
		}
	}
	one := make([]byte, 1)
	for {
		pause(time.Second)
		if _, err := c.Read(one); err != nil {
			return true
		}
	}
}

func randomBytes(v *attacker) bool {
	dial := v.open
	if v.IntN(2) == 0 {
		dial = v.dial
	}
	c := dial()
	if c == nil {
		return false
	}
	defer c.abort()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	var b []byte
	for range v.IntN(100) + 1 {
		n := v.IntN(200)
		if v.IntN(2) == 0 {
			b = binary.BigEndian.AppendUint32(b, uint32(n)) // so that it is looked at
		}
		for range n {
			b = append(b, byte(v.Uint32()))
		}
	}
	if c.send(b) {
		c.skip()
	}
	return true
}

// mutatedFrames sends good requests in which some bytes are wrong. What they do to nodes, they do below the
// attackers' own.
func mutatedFrames(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	for range 100 {
		b := v.sample()
		for range v.IntN(3) + 1 {
			at := 4 + v.IntN(len(b)-4)
			switch v.IntN(3) {
			case 0:
				b[at] ^= 1 << v.IntN(8)
			case 1:
				b[at] = byte(v.Uint32())
			case 2:
				b = append(b[:at], b[min(len(b), at+v.IntN(9)):]...)
			}
			if len(b) < 6 {
				break
			}
		}
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		if !c.send(b) {
			return true
		}
		if h, ok := c.header(); !ok || h.Xid == wire.XidNotification && !c.skip() {
			return true
		}
	}
	return true
}

// sample returns a request, of any kind that there is.
func (v *attacker) sample() []byte {
	path := fmt.Sprintf("%s/m%d", rootNode, v.IntN(20))
	sub := func(op wire.Op, r wire.Record) wire.SubRequest { return wire.SubRequest{Op: op, Request: r} }
	create := &wire.CreateRequest{Path: path, Data: []byte("data"), ACL: openACL, Flags: int32(v.IntN(4))}
	set := &wire.SetDataRequest{Path: path, Data: []byte("data"), Version: -1}
	remove := &wire.DeleteRequest{Path: path, Version: -1}
	get := &wire.PathWatchRequest{Path: path, Watch: true}
	samples := []func() []byte{
		func() []byte { return request(wire.OpCreate, create) },
		func() []byte { return request(wire.OpCreate2, create) },
		func() []byte { return request(wire.OpDelete, remove) },
		func() []byte { return request(wire.OpSetData, set) },
		func() []byte { return request(wire.OpGetData, get) },
		func() []byte { return request(wire.OpExists, get) },
		func() []byte { return request(wire.OpGetChildren2, get) },
		func() []byte { return request(wire.OpSync, &wire.PathRequest{Path: path}) },
		func() []byte {
			ops := []wire.SubRequest{sub(wire.OpCreate, create), sub(wire.OpSetData, set), sub(wire.OpDelete, remove)}
			return request(wire.OpMulti, &wire.MultiRequest{Ops: ops})
		},
		func() []byte {
			ops := []wire.SubRequest{sub(wire.OpGetData, get), sub(wire.OpGetChildren, get)}
			return request(wire.OpMultiRead, &wire.MultiRequest{Read: true, Ops: ops})
		},
		func() []byte {
			watches := &wire.SetWatchesRequest{Data: []string{path}, Child: []string{path, path}}
			return request(wire.OpSetWatches, watches)
		},
		func() []byte {
			paths := []string{path}
			watches := &wire.SetWatchesRequest{Two: true, PersistentRecur: paths, Persistent: paths}
			return request(wire.OpSetWatches2, watches)
		},
		func() []byte {
			return request(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: int32(v.IntN(2))})
		},
		func() []byte {
			return request(wire.OpRemoveWatches, &wire.WatcherTypeRequest{Path: path, Type: wire.WatcherAny})
		},
		func() []byte {
			return request(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: []byte("ann:secret")})
		},
		func() []byte {
			return request(wire.OpSASL, &wire.SASLToken{Token: []byte(`username="guest",nonce="1"`)})
		},
		func() []byte { return request(wire.OpGetEphemerals, &wire.EphemeralsRequest{Prefix: path}) },
		func() []byte { return request(wire.OpWhoAmI, new(wire.Empty)) },
		handshake,
	}
	return samples[v.IntN(len(samples))]()
}
