package zk

import "context"

// Held is what the recipes have in common that give something out: a lock (lock.Hold), a leadership (elect.Leadership),
// an item of a queue (queue.Item), a share of the work (member.Share). What takes a Held works under each of them:
//
//	func save(ctx context.Context, h zk.Held, state []byte) error {
//		_, err := h.Session().Multi(ctx, append(h.Guards(), zk.SetOp("/state", state, -1))...)
//		return err
//	}
//
// It belongs to one session and never outlives it. Its methods may be called from any goroutine.
type Held interface {
	// Context ends when what is held is lost or released, with the reason as its cause: before another client can have
	// it.
	Context() context.Context
	// Token is the fencing token: larger than that of everyone who has held the same before.
	Token() Token
	// Session is whose it is. Guarded writes go through it.
	Session() *Session
	// Path is the path of the node by which it is held, or of the first of several.
	Path() string
	// Guard is the operation to put first in a Multi: the server refuses it all once that node is gone.
	Guard() Op
	// Guards are those of all nodes, if there are several.
	Guards() []Op
}
