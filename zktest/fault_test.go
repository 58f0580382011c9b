package zktest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zktest"
)

// faultTests show that each fault does what it says. They run on sockets, in a bubble and before an Apache ZooKeeper; dir is a
// node of theirs.
var faultTests = map[string]func(t *testing.T, l *zktest.Link, dir string){
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
	"UntilHoldsTheRequest":                       testUntil,
	"ReplyUntilHoldsTheReply":                    testReplyUntil,
	"HeldWatchesComeInOrderAfterReplies":         testHoldWatches,
	"HeldWatchesOfOneSession":                    testHoldWatchesOfOneSession,
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
			newRaw(t, srv.Link).wantDo(wire.OK, create("/t"))
			test(t, srv.Link, "/t")
		})
	}
}

func TestFaultsInABubble(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n zktest.Net
				srv := zktest.Run(t, zktest.On(&n))
				newRaw(t, srv.Link).wantDo(wire.OK, create("/t"))
				test(t, srv.Link, "/t")
			})
		})
	}
}

func TestFaultsOverTLS(t *testing.T) {
	t.Parallel()
	for name, test := range faultTests {
		if name == "FourLetterWordsPass" || name == "GarbagePasses" {
			continue // the servers' own tests of a link without TLS are enough
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t, zktest.TLS())
			newRaw(t, srv.Link).wantDo(wire.OK, create("/t"))
			test(t, srv.Link, "/t")
		})
	}
}

func TestFaultsBeforeApacheZooKeeper(t *testing.T) {
	t.Parallel()
	zoo := peer.ZooKeeper(t, peer.Options{})
	for name, test := range faultTests {
		t.Run(name, func(t *testing.T) { // one after the other: some ask the server for all its watches
			l := zktest.Proxy(t, zoo.ConnectString())
			newRaw(t, l).wantDo(wire.OK, create("/"+name))
			test(t, l, "/"+name)
		})
	}
}

// once returns a control function that does f to the first request of an operation.
func once(op zktest.Op, f zktest.Fault) func(zktest.Request) zktest.Fault {
	return func(r zktest.Request) zktest.Fault {
		if r.Op == op && r.Nth == 1 {
			return f
		}
		return zktest.Pass
	}
}

func testPassLetsThrough(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	r.wantDo(wire.OK, create(dir+"/a"))
	r.wantDo(wire.NodeExists, create(dir+"/a"))
	before := l.Traffic()
	r.wantDo(wire.OK, exists(dir+"/a"))
	after := l.Traffic()
	if got := after.Requests[zktest.OpExists] - before.Requests[zktest.OpExists]; got != 1 {
		t.Errorf("%d exists were counted, want 1", got)
	}
	if got := after.Replies - before.Replies; got != 1 {
		t.Errorf("%d replies were counted, want 1", got)
	}
}

func testDropReply(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.DropReply))
	r.send(exists(dir), create(dir+"/a"))
	r.want(1, wire.OK)
	r.wantEnd()
	other.wantDo(wire.OK, exists(dir+"/a"))
	if _, err := r.resume(l); err != nil {
		t.Errorf("the session cannot be resumed: %v", err)
	}
}

func testDropReplyOfHandshake(t *testing.T, l *zktest.Link, _ string) {
	before := l.Traffic()
	l.Control(once(zktest.OpConnect, zktest.DropReply))
	if err := dialRaw(t, l).connect(0, nil); err == nil {
		t.Error("the handshake was answered")
	}
	if got := l.Traffic().Replies - before.Replies; got != 1 {
		t.Errorf("the server answered %d times, want 1", got)
	}
	newRaw(t, l)
}

func testRefuse(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.Refuse))
	r.send(exists(dir), create(dir+"/a"), create(dir+"/b"))
	r.want(1, wire.OK)
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(dir+"/a"))
	other.wantDo(wire.NoNode, exists(dir+"/b"))
}

func testCutBefore(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.CutBefore))
	r.send(create(dir+"/a"), create(dir+"/b"))
	r.wantEnd()
	other.wantDo(wire.NoNode, exists(dir+"/a"))
	other.wantDo(wire.NoNode, exists(dir+"/b"))
}

func testCutAfter(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.CutAfter))
	r.send(exists(dir), create(dir+"/a"))
	r.want(1, wire.OK)
	r.want(2, wire.OK)
	r.wantEnd()
	other.wantDo(wire.OK, exists(dir+"/a"))
}

func testNothingBehind(t *testing.T, l *zktest.Link, dir string) {
	for _, f := range []zktest.Fault{zktest.DropReply, zktest.CutAfter} {
		r, other := newRaw(t, l), newRaw(t, l)
		l.Control(once(zktest.OpSetData, f))
		r.send(set(dir, "x"), create(dir+"/b"))
		for {
			if _, err := r.receive(); err != nil {
				break
			}
		}
		other.wantDo(wire.NoNode, exists(dir+"/b"))
		l.Control(nil)
	}
}

func testRepliesBeforeTheEnd(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	l.Control(once(zktest.OpDelete, zktest.Refuse))
	var many []request
	for range 200 {
		many = append(many, exists(dir), request{wire.OpPing, nil})
	}
	many = append(many, remove(dir))
	for range 200 {
		many = append(many, exists(dir)) // unread by anybody when the connection ends
	}
	r.send(many...)
	for i := range int32(200) {
		r.want(2*i+1, wire.OK)
		r.want(wire.XidPing, wire.OK)
	}
	r.wantEnd()
}

func testMute(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.Mute))
	other.wantDo(wire.NoNode, watchFor(dir+"/b"))
	r.send(exists(dir), create(dir+"/a"))
	r.want(1, wire.OK)
	r.send(create(dir+"/b"), exists(dir))
	other.wantEvent(wire.EventCreated, dir+"/b")
	other.wantDo(wire.OK, exists(dir+"/a"))
	l.Heal()
	r.wantEnd()
}

func testAnswer(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	l.Control(once(zktest.OpCreate, zktest.Answer(int32(wire.NoAuth))))
	r.wantDo(wire.NoAuth, create(dir+"/a"))
	r.wantDo(wire.NoNode, exists(dir+"/a"))
	r.wantDo(wire.OK, create(dir+"/a"))
}

func testAnswerInTurn(t *testing.T, l *zktest.Link, dir string) {
	r := newRaw(t, l)
	l.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpCreate {
			return zktest.Answer(int32(wire.QuotaExceeded))
		}
		return zktest.Pass
	})
	r.send(create(dir+"/a"), exists(dir), create(dir+"/b"), create(dir+"/c"), exists(dir+"/a"), create(dir+"/d"))
	for i, want := range []wire.Code{wire.QuotaExceeded, wire.OK, wire.QuotaExceeded, wire.QuotaExceeded, wire.NoNode, wire.QuotaExceeded} {
		r.want(int32(i+1), want)
	}
}

func testUntil(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	ctx, proceed := context.WithCancel(t.Context())
	defer proceed()
	l.Control(once(zktest.OpCreate, zktest.Until(ctx)))
	r.send(exists(dir), create(dir+"/a"), exists(dir+"/a"))
	r.want(1, wire.OK)
	other.wantDo(wire.NoNode, exists(dir+"/a"))
	proceed()
	r.want(2, wire.OK)
	r.want(3, wire.OK)
}

func testReplyUntil(t *testing.T, l *zktest.Link, dir string) {
	r, other := newRaw(t, l), newRaw(t, l)
	ctx, proceed := context.WithCancel(t.Context())
	defer proceed()
	l.Control(once(zktest.OpCreate, zktest.ReplyUntil(ctx)))
	other.wantDo(wire.NoNode, watchFor(dir+"/a"))
	r.send(create(dir+"/a"), exists(dir+"/a"))
	other.wantEvent(wire.EventCreated, dir+"/a")
	other.wantDo(wire.OK, remove(dir+"/a"))
	proceed()
	r.want(1, wire.OK)
	r.want(2, wire.OK)
}
