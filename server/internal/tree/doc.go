// Package tree implements the state machine of a ZooKeeper server: nodes, sessions, access lists, watches and quotas.
//
// It reads no clock, does no I/O and starts no goroutine. The caller gives every write its zxid and its time, and the
// same calls in the same order give the same tree, the same answers and the same events. One goroutine owns a Tree,
// which is not safe for concurrent use. Results are never written to again, so another goroutine may encode them.
//
// A write returns the Changes it made, each of which is one operation on a key-value store. A Loader rebuilds the tree
// from that store. DependsOn tells whether a read's answer could depend on a write that is not on disk yet.
package tree
