// Package zktest provides ZooKeeper servers for tests, and faults for them.
//
//	func TestReplyLost(t *testing.T) {
//		srv := zktest.Run(t)
//		srv.Control(func(r zktest.Request) zktest.Fault {
//			if r.Op == zktest.OpCreate && r.Nth == 1 {
//				return zktest.DropReply // applied, but the client gets no reply
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
// Run starts a complete server for one test, in this process and in memory: with all operations, watches, access
// control and sessions that expire. Nothing has to be installed. Server.Client and Server.Session return clients of
// package zk.
//
// Proxy puts the same faults in front of servers that run elsewhere, such as an Apache ZooKeeper ensemble.
//
// # Faults
//
// A Link stands between clients and servers and decodes the protocol. The function given to Link.Control returns the
// Fault for one request: lose the request, lose its reply, end the connection before or after it, answer with an error,
// or delay either one until the test goes on. Methods of Link inject faults into all connections, or into those of one
// session: Cut, Drop, HalfOpen, Mute, Freeze, Delay, HoldWatches, Overtake. Methods of Server change the server itself:
// ExpireSession, StopClock, PresetSequence, Stop, Start, Restart, Wipe.
//
// A control function sees requests in the order of their arrival, with counts. So a test can inject a fault at each
// step of what it tests, one run after the other, until there are no more steps:
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
// A Net is an in-memory network. On it, server and clients run in a testing/synctest bubble, where a session of an hour
// expires without waiting and a delay is exact.
//
//	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
//		sess := srv.Session(t, 30*time.Second)
//		srv.Cut(sess.ID())
//		<-sess.Context().Done() // no real second passes
//	})
//
// In a bubble use srv.Client, or set zk.Config.Dial to srv.Dial, and close every client before the bubble ends.
package zktest
