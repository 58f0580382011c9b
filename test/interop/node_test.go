package interop_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// nodes is a server behind a link, a client of ours with an observer beside it, and how to start Curator's.
type nodes struct {
	*testing.T

	link   *zktest.Link
	client *zk.Client
	seen   *zk.Session // an observer without a part in it
}

// onNodes runs f on Apache ZooKeeper and on the embedded server.
func onNodes(t *testing.T, f func(w *nodes)) {
	t.Helper()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		link := zktest.Proxy(t, h.addr)
		f(&nodes{
			T: t, link: link, client: link.Client(t, 30*time.Second), seen: link.Session(t, 30*time.Second),
		})
	})
}

// peer starts a process of Curator's.
func (w *nodes) peer() *queuePeer {
	w.Helper()
	return startQueuePeer(w.T, "java", ownArgs(w.T, "NodePeer", w.link.Addr(), millis(groupSession))...)
}

// session returns the session of a peer.
func (w *nodes) session(p *queuePeer) int64 {
	w.Helper()
	id, err := strconv.ParseInt(p.order(w.T, "session"), 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// own returns the session of our client.
func (w *nodes) own() int64 {
	w.Helper()
	sess, err := w.client.Session(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return sess.ID()
}

// expire ends a session. Its client may take it back in between.
func (w *nodes) expire(id int64) {
	w.Helper()
	for range 50 {
		if w.link.ExpireSession(id) {
			return
		}
	}
	w.Logf("session %x may have ended before", id)
}

// keep keeps a node of ours.
func (w *nodes) keep(path, data string, cfg member.NodeConfig) *member.Node {
	w.Helper()
	n, err := member.OpenNode(w.client, path, []byte(data), cfg)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { n.Close() })
	return n
}

func (w *nodes) within() context.Context {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), queuePatience)
	w.Cleanup(cancel)
	return ctx
}

func (w *nodes) inPlace(n *member.Node) {
	w.Helper()
	if err := n.Await(w.within()); err != nil {
		w.Fatalf("%s: %v", n.Path(), err)
	}
}

// a look is what the observer sees of a node.
type look struct {
	data  string
	stat  zk.Stat
	there bool
}

func (w *nodes) look(path string) look {
	w.Helper()
	data, stat, err := w.seen.Get(w.within(), path)
	if err != nil && !errors.Is(err, zk.NoNode) {
		w.Fatal(err)
	}
	return look{string(data), stat, err == nil}
}

// await waits until f is true of the node at path.
func (w *nodes) await(what, path string, f func(look) bool) look {
	w.Helper()
	ctx := w.within()
	watch, err := w.seen.Watch(ctx, path)
	if err != nil {
		w.Fatal(err)
	}
	defer watch.Close()
	for {
		l := w.look(path)
		if f(l) {
			return l
		}
		if _, err := watch.Next(ctx); err != nil {
			w.Fatalf("%s: %s is %+v: %v", what, path, l, err)
		}
	}
}

// back waits until another node than before is at path, with the data.
func (w *nodes) back(path string, before look, data string) look {
	w.Helper()
	return w.await("not back", path, func(l look) bool {
		return l.there && l.stat.Czxid != before.stat.Czxid && l.data == data
	})
}

// untouched checks that the node at path is the one of before.
func (w *nodes) untouched(path string, before look) {
	w.Helper()
	if now := w.look(path); !now.there || now.stat.Czxid != before.stat.Czxid || now.data != before.data {
		w.Errorf("%s was %+v and is %+v", path, before, now)
	}
}

func (w *nodes) delete(path string) {
	w.Helper()
	if err := w.seen.Delete(w.within(), path, -1); err != nil {
		w.Fatal(err)
	}
}

// modes are Curator's, and ours.
var nodeModes = map[string]member.NodeMode{
	"EPHEMERAL": member.Ephemeral, "EPHEMERAL_SEQUENTIAL": member.EphemeralSequential,
	"PERSISTENT": member.Persistent, "PERSISTENT_SEQUENTIAL": member.PersistentSequential,
}

// TestNodesAreKeptBesideThoseOfCurator has both sides keep nodes of every mode in one directory. Each node comes back,
// at its first name, after its deletion, after the end of its session and after a cut connection, and what happens to
// one side leaves the other's nodes as they are.
//
// Promise: 16
func TestNodesAreKeptBesideThoseOfCurator(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		p := w.peer()
		type pair struct {
			mode         string
			ours, theirs string // paths
			first, other look
		}
		var all []*pair
		kept := map[string]*member.Node{}
		for name, mode := range nodeModes {
			x := &pair{mode: name}
			n := w.keep("/dir/ours-"+name, "ours", member.NodeConfig{Mode: mode})
			w.inPlace(n)
			p.order(w.T, "keep %s %s false /dir/theirs-%s theirs", name, name, name)
			x.ours, x.theirs = n.Path(), p.order(w.T, "await %s", name)
			x.first, x.other = w.look(x.ours), w.look(x.theirs)
			if x.first.data != "ours" || x.other.data != "theirs" ||
				(x.first.stat.EphemeralOwner == 0) != (x.other.stat.EphemeralOwner == 0) {
				w.Errorf("%s: ours is %+v, theirs %+v", name, x.first, x.other)
			}
			all, kept[name] = append(all, x), n
		}
		for _, x := range all {
			w.delete(x.ours)
			x.first = w.back(x.ours, x.first, "ours")
			w.untouched(x.theirs, x.other)
			w.delete(x.theirs)
			x.other = w.back(x.theirs, x.other, "theirs")
			w.untouched(x.ours, x.first)
		}
		mine, his := w.own(), w.session(p)
		w.link.Drop(mine, his) // both reconnect
		for _, x := range all {
			if err := kept[x.mode].Set(w.within(), []byte("ours")); err != nil {
				w.Fatal(err)
			}
			// After a reconnect Curator writes the data that it has then, maybe after a set that comes meanwhile.
			x.other = w.await("not written again", x.theirs, func(l look) bool {
				return l.stat.Version > x.other.stat.Version
			})
			p.order(w.T, "set %s again", x.mode)
			x.other = w.await("not set", x.theirs, func(l look) bool { return l.data == "again" })
			w.untouched(x.ours, x.first)
		}
		w.expire(mine)
		for _, x := range all {
			if x.first.stat.EphemeralOwner != 0 {
				x.first = w.back(x.ours, x.first, "ours")
			}
			w.untouched(x.ours, x.first)
			w.untouched(x.theirs, x.other)
		}
		w.expire(his)
		for _, x := range all {
			if x.other.stat.EphemeralOwner != 0 {
				x.other = w.back(x.theirs, x.other, "again")
			}
			w.untouched(x.ours, x.first)
			w.untouched(x.theirs, x.other)
		}
		p.kill()
		for _, x := range all {
			w.await("a killed process", x.theirs, func(l look) bool {
				return l.there == (x.other.stat.EphemeralOwner == 0)
			})
			w.untouched(x.ours, x.first)
			if err := kept[x.mode].CloseWait(w.within()); err != nil {
				w.Error(err)
			}
			if w.look(x.ours).there {
				w.Errorf("%s is there after Close", x.ours)
			}
		}
		children, _, err := w.seen.Children(w.within(), "/dir")
		if err != nil || len(children) != 2 { // the lasting ones of the killed process
			w.Errorf("%v are left, %v", children, err)
		}
	})
}

// TestNodeOfALiveCuratorIsWaitedFor has both sides keep one ephemeral node.
//
// Promise: 16
func TestNodeOfALiveCuratorIsWaitedFor(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		const path = "/one/node"
		p := w.peer()
		p.order(w.T, "keep a EPHEMERAL false %s theirs", path)
		p.order(w.T, "await a")
		theirs := w.look(path)
		n := w.keep(path, "ours", member.NodeConfig{})
		waits := func() {
			w.Helper()
			ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
			defer cancel()
			if err := n.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
				w.Fatalf("got %v while Curator's node lives", err)
			}
			w.untouched(path, theirs)
		}
		waits()
		w.link.Drop(w.own(), theirs.stat.EphemeralOwner)
		waits()
		w.expire(w.own())
		waits()
		p.order(w.T, "set a more")
		theirs = w.await("not set", path, func(l look) bool { return l.data == "more" })
		waits()

		p.kill()
		w.inPlace(n)
		ours := w.look(path)
		if ours.stat.EphemeralOwner != w.own() || ours.data != "ours" {
			w.Fatalf("after the kill: %+v", ours)
		}

		// Now Curator comes second. It writes its data into our node, and deletes that when it is closed, as it does to
		// another one of its own.
		p = w.peer()
		p.order(w.T, "keep b EPHEMERAL false %s theirs", path)
		p.order(w.T, "await b")
		if now := w.await("not adopted", path, func(l look) bool {
			return l.data == "theirs"
		}); now.stat.Czxid != ours.stat.Czxid {
			w.Errorf("Curator has another node: %+v", now)
		}
		p.order(w.T, "close b")
		ours = w.back(path, ours, "ours")

		// The end of our session gives the node to the one that is first. The other leaves it alone, or writes to it.
		p.order(w.T, "keep c EPHEMERAL false %s theirs", path)
		p.order(w.T, "await c")
		w.expire(w.own())
		now := w.await("not back", path, func(l look) bool { return l.there && l.stat.Czxid != ours.stat.Czxid })
		if owner := now.stat.EphemeralOwner; owner != w.own() && owner != w.session(p) {
			w.Errorf("the node is of session %x", owner)
		}
		w.link.Cut(w.own())
		w.link.Heal(w.own())
		p.kill()
		w.await("ours is not in place after the kill", path, func(l look) bool {
			return l.there && l.stat.EphemeralOwner == w.own()
		})
		if err := n.CloseWait(w.within()); err != nil || w.look(path).there {
			w.Errorf("after Close: %v, there: %v", err, w.look(path).there)
		}
	})
}

// TestCuratorTreatsItsOwnNodeAsItTreatsOurs is what the promise about live nodes is measured by: the second
// PersistentNode of Curator's at a path writes into the first one's node, and deletes it when it is closed.
func TestCuratorTreatsItsOwnNodeAsItTreatsOurs(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		const path = "/theirs/node"
		first, second := w.peer(), w.peer()
		first.order(w.T, "keep a EPHEMERAL false %s first", path)
		first.order(w.T, "await a")
		before := w.look(path)
		second.order(w.T, "keep b EPHEMERAL false %s second", path)
		second.order(w.T, "await b")
		if now := w.await("not set", path, func(l look) bool {
			return l.data == "second"
		}); now.stat.Czxid != before.stat.Czxid {
			w.Errorf("the second has another node: %+v", now)
		}
		second.order(w.T, "close b")
		w.back(path, before, "first")
	})
}

// TestPersistentNodeIsKeptByBothSides has both sides keep one node without an owner.
//
// Promise: 16
func TestPersistentNodeIsKeptByBothSides(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		const path = "/lasting/node"
		p := w.peer()
		p.order(w.T, "keep a PERSISTENT false %s theirs", path)
		p.order(w.T, "await a")
		node := w.look(path)
		n := w.keep(path, "ours", member.NodeConfig{Mode: member.Persistent})
		w.inPlace(n)
		if now := w.look(path); now.stat.Czxid != node.stat.Czxid || now.data != "ours" {
			w.Fatalf("not adopted: %+v", now)
		}
		p.order(w.T, "set a more")
		node = w.await("not set", path, func(l look) bool { return l.data == "more" })
		w.link.Drop(w.own(), w.session(p))
		w.expire(w.own())
		w.inPlace(n)
		w.untouched(path, node) // the next session does not set the data again
		w.delete(path)
		node = w.await("not back", path, func(l look) bool { return l.there && l.stat.Czxid != node.stat.Czxid })
		p.kill()
		w.inPlace(n)
		if now := w.look(path); now.stat.Czxid != node.stat.Czxid {
			w.Errorf("the node was %+v and is %+v", node, now)
		}
		w.delete(path)
		node = w.back(path, node, "ours")

		p = w.peer()
		p.order(w.T, "keep b PERSISTENT false %s theirs", path)
		p.order(w.T, "await b")
		if err := n.CloseWait(w.within()); err != nil { // it deletes the node, as Curator's does
			w.Fatal(err)
		}
		w.back(path, node, "theirs")
	})
}

// TestTTLNodeLastsWhileEitherSideKeepsIt has both sides keep one node with a TTL.
//
// Promise: 16
func TestTTLNodeLastsWhileEitherSideKeepsIt(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		// Both sides touch the node each half of the TTL, and a busy machine stalls.
		const path, ttl = "/ttl/node", 4 * time.Second
		touched := func(times int32) { // for longer than a TTL
			w.Helper()
			first := w.await("no touch", path+"/touch", func(l look) bool { return l.there })
			w.await("not touched", path+"/touch", func(l look) bool {
				return l.there && l.stat.Version >= first.stat.Version+times
			})
		}
		p := w.peer()
		p.order(w.T, "ttl a %s %s theirs", millis(ttl), path)
		p.order(w.T, "await a")
		node := w.look(path)
		n := w.keep(path, "ours", member.NodeConfig{Mode: member.Persistent, TTL: ttl})
		w.inPlace(n)
		touched(5)
		p.kill()
		touched(3)
		w.expire(w.own())
		touched(3)
		if now := w.look(path); now.stat.Czxid != node.stat.Czxid || now.data != "ours" {
			w.Errorf("the node was %+v and is %+v", node, now)
		}
		p = w.peer()
		p.order(w.T, "ttl b %s %s theirs", millis(ttl), path)
		p.order(w.T, "await b")
		if err := n.CloseWait(w.within()); err != nil {
			w.Fatal(err)
		}
		touched(3)
		if now := w.look(path); now.stat.Czxid != node.stat.Czxid || now.data != "theirs" {
			w.Errorf("the node was %+v and is %+v", node, now)
		}
		p.kill()
		w.await("it has outlived both sides", path, func(l look) bool { return !l.there })
	})
}

// TestProtectedNodesOfBothSidesHaveOneForm has both sides make sequential nodes with an identifier in their names.
func TestProtectedNodesOfBothSidesHaveOneForm(t *testing.T) {
	t.Parallel()
	onNodes(t, func(w *nodes) {
		p := w.peer()
		for _, mode := range []string{"EPHEMERAL_SEQUENTIAL", "PERSISTENT_SEQUENTIAL"} {
			p.order(w.T, "keep %s %s true /dirs/node- theirs", mode, mode)
			theirs := p.order(w.T, "await %s", mode)
			n := w.keep("/dirs/node-", "ours", member.NodeConfig{Mode: nodeModes[mode]})
			w.inPlace(n)
			for _, path := range []string{theirs, n.Path()} {
				name := strings.TrimPrefix(path, "/dirs/")
				if len(name) != len("_c_")+36+len("-node-0000000000") || !strings.HasPrefix(name, "_c_") ||
					name[39:45] != "-node-" {
					w.Errorf("%s: the name is %s", mode, name)
				}
			}
			ours, path := w.look(n.Path()), n.Path()
			other := w.look(theirs)
			w.delete(path)
			w.back(path, ours, "ours")
			w.untouched(theirs, other)
		}
	})
}
