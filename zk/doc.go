// Package zk is a client of Apache ZooKeeper, and of everything that speaks its protocol.
//
// A Client keeps one live Session at a time. A session survives reconnects and ends exactly once: its context ends with the
// cause, every request that was sent or queued under it fails with that cause, and none is ever executed under another
// session. The client then opens a new session, which is a new *Session value.
//
//	client, err := zk.Open(ctx, zk.Config{Servers: "zk1:2181,zk2:2181/app", Timeout: 10 * time.Second})
//	sess, err := client.Session(ctx)
//	<-sess.Context().Done() // context.Cause: zk.ErrExpired, zk.ErrLost, zk.ErrClosed, zk.ErrAuthFailed
//
// A session also ends by the client's own clock, with ErrLost, when the last request that was answered is older than the
// negotiated timeout less a margin (Session.Deadline). That is not soon enough for what a session owns by its nodes, such as
// a lock: a server that is cut off from the others goes on answering. Session.Certain tells how long no other session
// can have been given it, and an Ownership ends then.
//
// Every request takes a context. Cancelling it detaches the caller, not the request: OutcomeOf tells whether the request never
// left this process (NotSent), may have been executed (Unknown) or was refused by the server (Refused). Nothing is sent twice.
package zk
