package zk

// Token is a fencing token. Packages lock, elect and queue make it, and it grows: a later hold of a lock, a later
// leadership, a later delivery of an item has a larger token than every earlier one of the same path. Pass it to what
// the lock protects, and let that refuse a token smaller than the largest it has seen (package fence does): so a holder
// that was paused past the end of its hold cannot do harm.
//
// Tokens come from the server's transaction ids, so they grow across crashes, restarts, changes of the leader and the
// deletion of the path. Tokens of different paths mean nothing to each other.
type Token int64
