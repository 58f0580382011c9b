// Package zktest is for everybody's tests: a ZooKeeper server in one line, and what goes wrong with one in one call.
//
//	func TestReplyLost(t *testing.T) {
//		srv := zktest.Run(t)
//		srv.Control(func(r zktest.Request) zktest.Fault {
//			if r.Op == zktest.OpCreate && r.Nth == 1 {
//				return zktest.DropReply // applied, but the client never hears
//			}
//			return zktest.Pass
//		})
//		app := start(t, srv.Addr()) // any ZooKeeper client, in any language
//		…
//		srv.NoNodes(t, "/locks")
//		srv.NoWatches(t)
//	}
//
// # The server
//
// Run starts a server for one test: a real one, with every operation, sessions that expire, watches and access control, in this
// process and in memory. Nothing has to be installed. Server.Client and Server.Session make clients of package zk.
//
// Proxy puts the same faults before servers that run elsewhere, such as an Apache ZooKeeper ensemble.
//
// # Faults
//
// Between clients and servers stands a Link, which knows the protocol. A fault at one request is a Fault that the function given to
// Link.Control returns: lose the request, lose its reply, cut before or after, answer with an error, hold either until the test
// goes on. A fault of the whole way, or of the connections of one session, is a method: Cut, Drop, HalfOpen,
// Mute, Freeze, Delay, HoldWatches, Overtake.
// What happens in the server itself is a method of Server: ExpireSession, StopClock, PresetSequence, Stop, Start, Restart, Wipe.
//
// A control function sees requests in the order in which they come, with counts, so that a test can put a fault at every step
// of what it tests, one after the other, until there is no step left:
//
//	for step := 1; ; step++ {
//		reached := false
//		srv.Control(func(r zktest.Request) zktest.Fault {
//			if r.Seq != step {
//				return zktest.Pass
//			}
//			reached = true
//			return zktest.DropReply
//		})
//		lockAndUnlock(t)
//		srv.Control(nil)
//		if !reached {
//			break
//		}
//	}
//
// # Time
//
// On a Net, a network in memory, server and clients run in a testing/synctest bubble: a session of an hour expires in no time, and
// a delay is exact.
//
//	synctest.Test(t, func(t *testing.T) {
//		var net zktest.Net
//		srv := zktest.Run(t, zktest.On(&net))
//		sess := srv.Session(t, 30*time.Second)
//		net.Cut()
//		<-sess.Context().Done() // no real second passes
//	})
//
// In a bubble use srv.Client or set zk.Config.Dial to srv.Dial, and close every client before the bubble ends.
package zktest
