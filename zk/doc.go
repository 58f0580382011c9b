// Package zk is a client for Apache ZooKeeper and for every server that speaks its protocol.
//
// A Client keeps one live Session at a time. A session survives reconnects and ends exactly once: its context ends with
// the cause, every request sent or queued under it fails with that cause, and none is ever executed under another
// session. The client then opens a new session, which is a new *Session value.
//
//	client, err := zk.Open(ctx, zk.Config{Servers: "zk1:2181,zk2:2181/app", Timeout: 10 * time.Second})
//	sess, err := client.Session(ctx)
//	<-sess.Context().Done() // context.Cause: zk.ErrExpired, zk.ErrLost, zk.ErrClosed, zk.ErrAuthFailed
//
// A session also ends by the client's own clock, with ErrLost, when the last answered request is older than the
// negotiated timeout less a margin (Session.Deadline). That is too late for what a session owns by its nodes, such as a
// lock, because a server that is cut off from the others goes on answering. Session.Certain returns until when no other
// session can have acquired it, and an Ownership ends then.
//
// Every request takes a context. Canceling it detaches the caller, not the request. OutcomeOf reports whether the
// request never left this process (NotSent), may have been executed (Unknown) or was refused by the server (Refused).
// No request is sent twice.
package zk
