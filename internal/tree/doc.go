// Package tree is what a ZooKeeper server knows: nodes, sessions, access rights, watches and quotas, as one state machine.
//
// It is pure. It reads no clock, does no I/O and starts no goroutine: the caller gives every write its zxid and its time,
// and the same calls in the same order give the same tree, the same answers and the same events. It is not safe for
// concurrent use: one goroutine owns a Tree. What a call returns is never written to again, so that another goroutine may
// encode it.
//
// A write answers with the Changes it made, each one operation on a key-value store. Load makes the same tree out of what
// the store holds. A read whose answer could depend on a write that is not on disk yet is found with Sees.
package tree
