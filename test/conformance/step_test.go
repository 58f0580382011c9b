package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

type stepKind int

const (
	requests stepKind = iota // of one session, in one write
	reopen                   // close the session and open another
	resume                   // cut the connection and take the session up again
	remember                 // the zxid that later setWatches use
)

// A step is what one session does before the servers are compared. Its requests are built anew for each server.
type step struct {
	kind    stepKind
	session int
	build   func(root string, seen int64) []wire.SubRequest
}

func (st step) String() string {
	switch st.kind {
	case reopen:
		return fmt.Sprintf("s%d closes and opens another session", st.session)
	case resume:
		return fmt.Sprintf("s%d reconnects", st.session)
	case remember:
		return "remember the zxid"
	case requests:
	}
	n := newNormal()
	var parts []string
	for _, q := range st.build("$", 0) {
		parts = append(parts, q.Op.String()+n.show(q.Request))
	}
	return fmt.Sprintf("s%d: %s", st.session, strings.Join(parts, "; "))
}

// A requestFor builds a request for a root and the remembered zxid.
type requestFor func(root string, seen int64) wire.SubRequest

func plain(f func(root string) wire.SubRequest) requestFor {
	return func(root string, _ int64) wire.SubRequest { return f(root) }
}

// paths are the nodes of programs, below their root. They are few, so that operations meet.
var paths = []string{
	"", "/a", "/b", "/a/x", "/a/y", "/a/x/deep", "/q", "/q/s-0000000000", "/q/s-0000000001",
	"/q/s-0000000002", "/q/s-0000000004", "/c",
}

// lists are the access lists of programs. All of them let every client read, because exists of an unreadable node is
// a declared difference.
var lists = [][]wire.ACL{
	open, open, open, reading,
	{acl(wire.PermRead|wire.PermCreate, "world", "anyone")},
	{acl(wire.PermRead, "world", "anyone"), acl(wire.PermAll, "digest", digestUP)},
	{acl(wire.PermRead, "world", "anyone"), acl(wire.PermAll, "auth", "")},
	nil,
}

// A generator makes one program. A private program has nodes that not every client may read. It does not use exists,
// which differs without the right to read, as declared.
type generator struct {
	*rand.Rand
	private bool
}

// hidden are the additional access lists of private programs.
var hidden = [][]wire.ACL{
	{acl(wire.PermAll, "digest", digestUP)},
	{acl(wire.PermAll, "auth", "")},
	{acl(wire.PermAll&^wire.PermRead, "world", "anyone")},
	{
		acl(wire.PermRead, "digest", digestUP),
		acl(wire.PermWrite|wire.PermCreate|wire.PermDelete|wire.PermAdmin, "world", "anyone"),
	},
}

func (g *generator) list() []wire.ACL {
	if g.private && g.IntN(2) == 0 {
		return pick(g, hidden)
	}
	return pick(g, lists)
}

func pick[E any](g *generator, from []E) E { return from[g.IntN(len(from))] }

func randomPath(g *generator) string {
	if g.IntN(40) == 0 {
		return pick(g, []string{"/", "/a/", "//a", "/a/.", "/none/none", "/a/x/deep/er"})
	}
	return pick(g, paths)
}

func version(g *generator) int32 {
	return pick(g, []int32{-1, -1, -1, 0, 0, 1, 2, 3, -2})
}

// quotaStep sets a quota on the program's nodes, in some programs.
func quotaStep(g *generator) step {
	on := g.IntN(2) == 0
	return step{build: func(root string, _ int64) []wire.SubRequest {
		if !on {
			return []wire.SubRequest{ping()}
		}
		q := "/zookeeper/quota" + root
		return []wire.SubRequest{
			create(q, "", 0), create(q+"/zookeeper_limits", "count=3,bytes=10", 0),
			create(q+"/zookeeper_stats", "", 0),
		}
	}}
}

func randomStep(g *generator) step {
	session := g.IntN(sessionsOfOne)
	switch g.IntN(resumeAfterSteps) {
	case 0:
		return step{kind: reopen, session: session}
	case 1:
		return step{kind: resume, session: session}
	case 2:
		return step{kind: remember}
	}
	switch g.IntN(60) {
	case 0: // auth alone, because its answer may overtake others
		credentials := pick(g, []string{"u:p", "v:q"})
		return step{session: session, build: func(string, int64) []wire.SubRequest {
			return []wire.SubRequest{auth("digest", credentials)}
		}}
	case 1, 2: // setACL alone, because ZooKeeper checks requests right behind it by the old list
		p, v, list := randomPath(g), version(g), g.list()
		return step{session: session, build: func(root string, _ int64) []wire.SubRequest {
			return []wire.SubRequest{setACL(root+p, v, list...)}
		}}
	}
	var list []requestFor
	for range 1 + g.IntN(3)*g.IntN(2) {
		list = append(list, randomRequest(g, session))
	}
	return step{session: session, build: func(root string, seen int64) []wire.SubRequest {
		var out []wire.SubRequest
		for _, f := range list {
			out = append(out, f(root, seen))
		}
		return out
	}}
}

func randomRequest(g *generator, session int) requestFor {
	p, v := randomPath(g), version(g)
	oneShot := session < oneShotSessions
	watch := oneShot && g.IntN(2) == 0
	switch n := g.IntN(100); {
	case n < 44:
		return randomWrite(g, p, v, false)
	case n < 52:
		return plain(func(root string) wire.SubRequest { return get(root+p, watch) })
	case n < 58 && !g.private:
		return plain(func(root string) wire.SubRequest { return exists(root+p, watch) })
	case n < 63:
		return plain(func(root string) wire.SubRequest { return children(root+p, watch) })
	case n < 68:
		return plain(func(root string) wire.SubRequest { return children2(root+p, watch) })
	case n < 78:
		return randomMulti(g)
	case n < 81:
		return randomMultiRead(g)
	case n < 85:
		return plain(func(root string) wire.SubRequest { return getACL(root + p) })
	case n < 86:
		return plain(func(root string) wire.SubRequest { return syncPath(root + p) })
	case n < 87:
		return plain(func(root string) wire.SubRequest { return count(root + p) })
	case n < 88:
		return plain(func(root string) wire.SubRequest { return ephemerals(root + p) })
	case n < 89:
		return plain(func(string) wire.SubRequest { return whoAmI() })
	case n < 92:
		return plain(func(root string) wire.SubRequest {
			return get("/zookeeper/quota"+root+"/zookeeper_stats", false)
		})
	default:
		return randomWatch(g, session, p)
	}
}

func randomWatch(g *generator, session int, p string) requestFor {
	kind := wire.WatcherAny
	if session < oneShotSessions {
		kind = pick(g, []int32{wire.WatcherChildren, wire.WatcherData, wire.WatcherAny})
	}
	switch n := g.IntN(8); {
	case n <= 1:
		return plain(func(root string) wire.SubRequest { return removeWatches(root+p, kind) })
	case session == persistentSlot:
		return plain(func(root string) wire.SubRequest { return addWatch(root+p, persistentMode) })
	case session == recursiveSlot:
		return plain(func(root string) wire.SubRequest { return addWatch(root+p, recursiveMode) })
	default:
		data, exist, child := some(g), some(g), some(g)
		return func(root string, seen int64) wire.SubRequest {
			return setWatches(seen, below(root, data), below(root, exist), below(root, child))
		}
	}
}

func some(g *generator) []string {
	var out []string
	for range g.IntN(3) {
		out = append(out, pick(g, paths))
	}
	return out
}

func below(root string, list []string) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, root+p)
	}
	return out
}

// randomWrite returns a create, delete or setData. Inside a multi it uses only what 3.8.0 answers as 3.9 does.
func randomWrite(g *generator, p string, v int32, inMulti bool) requestFor {
	data := strings.Repeat("d", g.IntN(8))
	list := open
	if g.IntN(6) == 0 {
		list = g.list()
	}
	switch n := g.IntN(20); {
	case n < 8:
		op, flags := wire.OpCreate, pick(g, []int32{0, 0, 1, 2, 3})
		if !inMulti && g.IntN(2) == 0 {
			op, flags = wire.OpCreate2, pick(g, []int32{0, 1, 2, 3, 4})
		}
		if !inMulti && g.IntN(20) == 0 {
			flags = pick(g, []int32{-1, 5, 6, 7})
		}
		if flags == wire.FlagSequential || flags == wire.FlagEphemeralSequential {
			p = pick(g, []string{"/q/s-", "/q/s-", "/a/s-", "/q/", "/s-"})
		}
		return plain(func(root string) wire.SubRequest {
			return wire.SubRequest{
				Op:      op,
				Request: &wire.CreateRequest{Path: root + p, Data: []byte(data), ACL: list, Flags: flags},
			}
		})
	case n < 9:
		return plain(func(root string) wire.SubRequest { return container(root+"/c", 4) })
	case n < 10:
		return plain(func(root string) wire.SubRequest { return ttl(root+p, 5, 3_600_000) })
	case n < 15:
		return plain(func(root string) wire.SubRequest { return del(root+p, v) })
	default:
		return plain(func(root string) wire.SubRequest { return set(root+p, data, v) })
	}
}

func randomMulti(g *generator) requestFor {
	var list []requestFor
	for range g.IntN(5) {
		p, v := randomPath(g), version(g)
		if g.IntN(4) == 0 {
			list = append(list, plain(func(root string) wire.SubRequest { return check(root+p, v) }))
		} else {
			list = append(list, randomWrite(g, p, v, true))
		}
	}
	return func(root string, seen int64) wire.SubRequest { return multi(built(list, root, seen)...) }
}

func randomMultiRead(g *generator) requestFor {
	var list []requestFor
	for range g.IntN(4) {
		p := randomPath(g)
		if g.IntN(2) == 0 {
			list = append(list, plain(func(root string) wire.SubRequest { return get(root+p, false) }))
		} else {
			list = append(list, plain(func(root string) wire.SubRequest { return children(root+p, false) }))
		}
	}
	return func(root string, seen int64) wire.SubRequest { return multiRead(built(list, root, seen)...) }
}

func built(list []requestFor, root string, seen int64) []wire.SubRequest {
	var out []wire.SubRequest
	for _, f := range list {
		out = append(out, f(root, seen))
	}
	return out
}
