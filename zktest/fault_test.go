package zktest_test

import (
	"context"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// env is the environment of a fault test: a link, and a node dir that no other test uses.
type env struct {
	*testing.T
	*zktest.Link
	dir string
}

func (p env) newRaw() *raw {
	p.Helper()
	return newRaw(p.T, p.Link)
}

func (p env) dialRaw() *raw {
	p.Helper()
	return dialRaw(p.T, p.Link)
}

// withNode calls test with a new node.
func withNode(t *testing.T, l *zktest.Link, dir string, test func(env)) {
	t.Helper()
	newRaw(t, l).wantDo(wire.OK, create(dir))
	test(env{t, l, dir})
}

// faultTests test what each fault does. They run on sockets, over TLS, in a bubble and in front of an Apache
// ZooKeeper.
var faultTests = map[string]func(env){
	"PassLetsThrough":                            testPassLetsThrough,
	"RequestsAreCountedAndDecoded":               testRequestsAreCountedAndDecoded,
	"ControlNeedsNoLock":                         testControlNeedsNoLock,
	"DropReplyAppliesAndEndsTheConnection":       testDropReply,
	"DropReplyOfAHandshakeLeavesASession":        testDropReplyOfHandshake,
	"RefuseKeepsTheRequestFromTheServer":         testRefuse,
	"CutBeforeKeepsTheRequestFromTheServer":      testCutBefore,
	"CutAfterAnswersAndEndsTheConnection":        testCutAfter,
	"MuteAppliesWhatFollowsAndSaysNothing":       testMute,
	"AnswerStandsInForTheServer":                 testAnswer,
	"AnswersComeInTheirTurn":                     testAnswerInTurn,
	"StaleShowsWhatWasReadLast":                  testStale,
	"UntilHoldsTheRequest":                       testUntil,
	"ReplyUntilHoldsTheReply":                    testReplyUntil,
	"HeldWatchesComeInOrderAfterReplies":         testHoldWatches,
	"HeldWatchesOfOneSession":                    testHoldWatchesOfOneSession,
	"EventIsOvertakenByTheNext":                  testOvertake,
	"EventIsNotOvertakenByAReply":                testOvertakeByReply,
	"CutRefusesUntilHealed":                      testCut,
	"CutOfOneSessionSparesTheOthers":             testCutOfOneSession,
	"DropLetsTheClientComeBack":                  testDrop,
	"HalfOpenSwallowsBothWays":                   testHalfOpen,
	"HalfOpenHidesTheEndOfAConnection":           testHalfOpenHidesEnd,
	"MutedLinkStillApplies":                      testMutedLink,
	"ExpiredSessionLosesItsNodes":                testExpireSession,
	"FourLetterWordsPass":                        testFourLetterWords,
	"GarbagePasses":                              testGarbage,
	"LargeFramesPass":                            testLargeFrames,
	"CheckForNodesPassesWhenTheyAreGone":         testNoNodes,
	"CheckForWatchesPassesWhenTheyAreGone":       testNoWatches,
	"ConnectedTellsTheSessionsWithAConnection":   testConnected,
	"RepliesBeforeTheEndAreNotLost":              testRepliesBeforeTheEnd,
	"RequestsBehindOneThatEndsTheLinkAreDropped": testNothingBehind,
}

func TestFaultsOnSockets(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			withNode(t, srv.Link, "/t", test)
		})
	}
}

func TestFaultsOnDisk(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t, zktest.Durable())
			withNode(t, srv.Link, "/t", test)
		})
	}
}

func TestFaultsInABubble(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				withNode(t, srv.Link, "/t", test)
			})
		})
	}
}

func TestFaultsOverTLS(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		if name == "FourLetterWordsPass" || name == "GarbagePasses" {
			continue // the server's own tests cover them
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t, zktest.TLS())
			withNode(t, srv.Link, "/t", test)
		})
	}
}

func TestFaultsBeforeApacheZooKeeper(t *testing.T) { //nolint:tparallel // serial: some count the watches of all clients
	t.Parallel()
	zoo := peer.ZooKeeper(t, peer.Options{})
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			l := zktest.Proxy(t, zoo.ConnectString())
			withNode(t, l, "/"+name, test)
		})
	}
}

// once returns a control function that returns f for the first request of an operation.
func once(op zktest.Op, f zktest.Fault) func(zktest.Request) zktest.Fault {
	return func(r zktest.Request) zktest.Fault {
		if r.Op == op && r.Nth == 1 {
			return f
		}
		return zktest.Pass
	}
}

func testPassLetsThrough(p env) {
	r := p.newRaw()
	r.wantDo(wire.OK, create(p.dir+"/a"))
	r.wantDo(wire.NodeExists, create(p.dir+"/a"))
	before := p.Traffic()
	r.wantDo(wire.OK, exists(p.dir+"/a"))
	after := p.Traffic()
	if got := after.Requests[zktest.OpExists] - before.Requests[zktest.OpExists]; got != 1 {
		p.Errorf("got %d exists, want 1", got)
	}
	if got := after.Replies - before.Replies; got != 1 {
		p.Errorf("got %d replies, want 1", got)
	}
}

func testDropReply(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.DropReply))
	r.send(exists(p.dir), create(p.dir+"/a"))
	r.want(1, wire.OK)
	r.wantEnd()
	other.wantDo(wire.OK, exists(p.dir+"/a"))
	if _, err := r.resume(p.Link); err != nil {
		p.Errorf("resume the session: %v", err)
	}
}

func testDropReplyOfHandshake(p env) {
	before := p.Traffic()
	p.Control(once(zktest.OpConnect, zktest.DropReply))
	if err := p.dialRaw().connect(0, nil); err == nil {
		p.Error("got an answer to the handshake, want none")
	}
	if got := p.Traffic().Replies - before.Replies; got != 1 {
		p.Errorf("got %d replies of the server, want 1", got)
	}
	p.newRaw()
}

func testRefuse(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.Refuse))
	r.send(exists(p.dir), create(p.dir+"/a"), create(p.dir+"/b"))
	r.want(1, wire.OK)
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(p.dir+"/a"))
	other.wantDo(wire.NoNode, exists(p.dir+"/b"))
}

func testCutBefore(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.CutBefore))
	r.send(create(p.dir+"/a"), create(p.dir+"/b"))
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(p.dir+"/a"))
	other.wantDo(wire.NoNode, exists(p.dir+"/b"))
}

func testCutAfter(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.CutAfter))
	r.send(exists(p.dir), create(p.dir+"/a"))
	r.want(1, wire.OK)
	r.want(2, wire.OK)
	r.wantEnd()
	other.wantDo(wire.OK, exists(p.dir+"/a"))
}

func testNothingBehind(p env) {
	for _, f := range []zktest.Fault{zktest.DropReply, zktest.CutAfter} {
		r, other := p.newRaw(), p.newRaw()
		p.Control(once(zktest.OpSetData, f))
		r.send(set(p.dir, "x"), create(p.dir+"/b"))
		for {
			if _, err := r.receive(); err != nil {
				break
			}
		}
		other.wantDo(wire.NoNode, exists(p.dir+"/b"))
		p.Control(nil)
	}
}

func testRepliesBeforeTheEnd(p env) {
	r := p.newRaw()
	p.Control(once(zktest.OpDelete, zktest.Refuse))
	var many []request
	for range 200 {
		many = append(many, exists(p.dir), request{wire.OpPing, nil})
	}
	many = append(many, remove(p.dir))
	for range 200 {
		many = append(many, exists(p.dir)) // that no client has read when the connection ends
	}
	r.send(many...)
	for i := range int32(200) {
		r.want(2*i+1, wire.OK)
		r.want(wire.XidPing, wire.OK)
	}
	r.wantEnd()
}

func testMute(p env) {
	r, other := p.newRaw(), p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.Mute))
	other.wantDo(wire.NoNode, watchFor(p.dir+"/b"))
	r.send(exists(p.dir), create(p.dir+"/a"))
	r.want(1, wire.OK)
	r.send(create(p.dir+"/b"), exists(p.dir))
	other.wantEvent(wire.EventCreated, p.dir+"/b")
	other.wantDo(wire.OK, exists(p.dir+"/a"))
	p.Heal()
	r.wantEnd()
}

func testAnswer(p env) {
	r := p.newRaw()
	p.Control(once(zktest.OpCreate, zktest.Answer(zk.NoAuth)))
	r.wantDo(wire.NoAuth, create(p.dir+"/a"))
	r.wantDo(wire.NoNode, exists(p.dir+"/a"))
	r.wantDo(wire.OK, create(p.dir+"/a"))
}

func testAnswerInTurn(p env) {
	r := p.newRaw()
	p.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate {
			return zktest.Answer(zk.QuotaExceeded)
		}
		return zktest.Pass
	})
	r.send(create(p.dir+"/a"), exists(p.dir), create(p.dir+"/b"), create(p.dir+"/c"), exists(p.dir+"/a"),
		create(p.dir+"/d"))
	for i, want := range []wire.Code{
		wire.QuotaExceeded, wire.OK, wire.QuotaExceeded, wire.QuotaExceeded, wire.NoNode, wire.QuotaExceeded,
	} {
		r.want(int32(i+1), want)
	}
}

func testUntil(p env) {
	r, other := p.newRaw(), p.newRaw()
	ctx, proceed := context.WithCancel(p.Context())
	defer proceed()
	p.Control(once(zktest.OpCreate, zktest.Until(ctx)))
	r.send(exists(p.dir), create(p.dir+"/a"), exists(p.dir+"/a"))
	r.want(1, wire.OK)
	other.wantDo(wire.NoNode, exists(p.dir+"/a"))
	proceed()
	r.want(2, wire.OK)
	r.want(3, wire.OK)
}

func testReplyUntil(p env) {
	r, other := p.newRaw(), p.newRaw()
	ctx, proceed := context.WithCancel(p.Context())
	defer proceed()
	p.Control(once(zktest.OpCreate, zktest.ReplyUntil(ctx)))
	other.wantDo(wire.NoNode, watchFor(p.dir+"/a"))
	r.send(create(p.dir+"/a"), exists(p.dir))
	other.wantEvent(wire.EventCreated, p.dir+"/a")
	other.wantDo(wire.OK, remove(p.dir+"/a"))
	proceed()
	r.want(1, wire.OK)
	r.want(2, wire.OK)
}

func testStale(p env) {
	r, other := p.newRaw(), p.newRaw()
	node := p.dir + "/node"
	other.wantDo(wire.NoNode, exists(node))
	other.wantDo(wire.OK, create(node))
	p.Control(func(q zktest.Request) zktest.Fault {
		if q.Session == r.SessionID {
			return zktest.Stale
		}
		return zktest.Pass
	})
	r.wantDo(wire.NoNode, exists(node))
	r.wantDo(wire.OK, request{wire.OpGetData, &wire.PathWatchRequest{Path: node}}) // the first such read
	r.wantDo(wire.OK, watch(node))
	r.wantDo(wire.NoNode, exists(node)) // whatever other reads have returned
	other.wantDo(wire.OK, exists(node))
	r.wantDo(wire.OK, exists(node))
	other.wantDo(wire.OK, remove(node))
	r.wantEvent(wire.EventDeleted, node)
	r.send(exists(node), exists(p.dir), exists(node))
	for xid := range int32(3) {
		r.want(6+xid, wire.OK) // in order
	}
	p.Control(nil)
	r.wantDo(wire.NoNode, exists(node))
}
