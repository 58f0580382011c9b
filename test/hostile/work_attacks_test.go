//go:build linux

package hostile_test

// Attacks by requests that cost more work than they have bytes, and by ports that are not for clients.

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// The nodes with long access lists, which nobody may use.
const (
	guardNode = "/hostile/guard"
	otherNode = "/hostile/other"
	listed    = 40_000
)

// guard is a long access list.
func guard() []wire.ACL {
	list := make([]wire.ACL, listed)
	for i := range list {
		id := wire.ID{Scheme: "ip", ID: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}
		list[i] = wire.ACL{Perms: wire.PermAll, ID: id}
	}
	return list
}

// introduce gives a connection as many long identities as it may have.
func (c *conn) introduce(n int) bool {
	for i := range n {
		auth := fmt.Appendf(nil, "%d%s:secret", i, strings.Repeat("u", 900))
		if !c.send(request(wire.OpAuth, &wire.AuthRequest{Scheme: "digest", Auth: auth})) || !c.skip() {
			return false
		}
	}
	return true
}

// longLists checks two nodes with long access lists again and again, in writes, reads and notifications.
func longLists(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	for _, path := range []string{guardNode, otherNode} {
		c.send(request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: guard()}))
		c.skip()
	}
	if !c.introduce(99) {
		return true
	}
	check, read := new(wire.MultiRequest), &wire.MultiRequest{Read: true}
	for i := range 20_000 {
		path := []string{guardNode, otherNode}[i%2]
		one, get := &wire.CheckRequest{Path: path, Version: -1}, &wire.PathWatchRequest{Path: path}
		check.Ops = append(check.Ops, wire.SubRequest{Op: wire.OpCheck, Request: one})
		read.Ops = append(read.Ops, wire.SubRequest{Op: wire.OpGetData, Request: get})
	}
	for range 4 {
		if !c.send(request(wire.OpMulti, check)) || !c.skip() || !c.send(request(wire.OpMultiRead, read)) || !c.skip() {
			break
		}
	}
	return true
}

// expandingLists makes nodes with the list "auth", which stands for 100 KB of identities, alone and in a multi.
func expandingLists(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	if !c.introduce(99) {
		return true
	}
	mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth"}}}
	many := new(wire.MultiRequest)
	path := fmt.Sprintf("%s/mine%d", rootNode, v.IntN(10))
	for i := range 5000 {
		create := &wire.CreateRequest{Path: fmt.Sprintf("%s-%d", path, i), ACL: mine}
		many.Ops = append(many.Ops, wire.SubRequest{Op: wire.OpCreate, Request: create})
	}
	if !c.send(request(wire.OpMulti, many)) || !c.skip() {
		return true
	}
	b := request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: mine})
	for range 50 {
		b = append(b, request(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})...)
	}
	b = append(b, request(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1})...)
	if c.send(b) {
		for range 52 {
			if !c.skip() {
				break
			}
		}
	}
	return true
}

// manyEvents writes one node 20,000 times in one multi, while many connections watch it for good.
func manyEvents(v *attacker) bool {
	path := fmt.Sprintf("%s/events%d", rootNode, v.IntN(4))
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	c.send(request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL}))
	c.skip()
	for i := range 20 {
		if w := v.open(); w != nil {
			w.send(request(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: int32(i % 2)}))
			v.keep(w, 200)
		}
	}
	many := new(wire.MultiRequest)
	for range 20_000 {
		set := &wire.SetDataRequest{Path: path, Version: -1}
		many.Ops = append(many.Ops, wire.SubRequest{Op: wire.OpSetData, Request: set})
	}
	if c.send(request(wire.OpMulti, many)) {
		c.skip()
	}
	return true
}

// quotas makes and deletes quotas of a tree with many nodes, each of which would be counted.
func quotas(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	path := "/zookeeper/quota" + rootNode
	many := new(wire.MultiRequest)
	for _, name := range []string{"/zookeeper_limits", "/zookeeper_stats"} {
		c.send(request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL}))
		c.skip()
		for range 2000 {
			create := &wire.CreateRequest{Path: path + name, ACL: openACL, Data: []byte("count=1,bytes=1")}
			remove := &wire.DeleteRequest{Path: path + name, Version: -1}
			many.Ops = append(many.Ops, wire.SubRequest{Op: wire.OpCreate, Request: create},
				wire.SubRequest{Op: wire.OpDelete, Request: remove})
		}
	}
	for range 4 {
		if !c.send(request(wire.OpMulti, many)) || !c.skip() {
			break
		}
	}
	return true
}

// counts asks how many nodes there are below a node with many, without waiting for the answers.
func counts(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	var b []byte
	for range 200 {
		b = append(b, request(wire.OpGetAllChildren, &wire.PathRequest{Path: rootNode})...)
	}
	if c.send(b) {
		for range 200 {
			if !c.skip() {
				break
			}
		}
	}
	return true
}

// manyNodes closes sessions with many ephemeral nodes, or leaves them to expire together.
func manyNodes(v *attacker) bool {
	c := v.open()
	if c == nil {
		return false
	}
	defer c.abort()
	for part := range 4 {
		create := new(wire.MultiRequest)
		for i := range 5000 {
			path := fmt.Sprintf("%s/own%d-%d-%d", rootNode, v.Uint64(), part, i)
			node := &wire.CreateRequest{Path: path, ACL: openACL, Flags: wire.FlagEphemeral}
			create.Ops = append(create.Ops, wire.SubRequest{Op: wire.OpCreate, Request: node})
		}
		if !c.send(request(wire.OpMulti, create)) || !c.skip() {
			return true
		}
	}
	if v.IntN(2) == 0 && c.send(request(wire.OpCloseSession, new(wire.Empty))) {
		c.skip()
	}
	return true
}

// lostSessions asks for a session that does not exist, and stays after the answer.
func lostSessions(v *attacker) bool {
	c := v.dial()
	if c == nil {
		return false
	}
	req := &wire.ConnectRequest{SessionID: 1 + v.Int64N(1<<40), Timeout: 40_000}
	req.Password = make([]byte, wire.PasswordLen)
	if c.send(wire.EndFrame(req.Append(wire.BeginFrame(nil)), 0)) {
		c.skip()
	}
	v.keep(c, 9000)
	return true
}

// monitoring asks for lists of everything, at a server with many watches, and reads few of them.
func monitoring(v *attacker) bool {
	if v.IntN(20) == 0 {
		return manyWatches(v)
	}
	c := v.dial()
	if c == nil {
		return false
	}
	c.send([]byte([]string{"wchp", "wchc", "dump", "cons", "mntr", "stat"}[v.IntN(6)]))
	if v.IntN(2) == 0 {
		v.keep(c, 500)
		return true
	}
	defer c.abort()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, c)
	return true
}

// httpCommands opens idle connections to the port of HTTP commands, sends headers without an end, and asks for lists.
func httpCommands(v *attacker) bool {
	c := v.dialTo(v.process.admin)
	if c == nil {
		return false
	}
	switch v.IntN(3) {
	case 0:
		c.send([]byte("GET /commands/cons HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20)))
	case 1:
		c.send([]byte("GET /commands/cons HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	v.keep(c, 9000)
	return true
}
