package counter

// Configuration.

import "github.com/seed-a3166700/turnstile/zk"

// Config says how a Counter behaves. The zero Config is ready to use.
type Config struct {
	Layout Layout   // how the node holds the number; Long if zero
	ACL    []zk.ACL // of created nodes; open to everyone if nil

	// Receipts is the directory of this process's own nodes by which it learns what became of a write whose reply was
	// lost: one node for each process, which others remove an hour after its last write. Counters may share it. If
	// empty, it is the counter's path with "-receipts" at the end. Processes with the same Receipts make each other's
	// calls when many compete; for that they use the counter's path with "-requests" at the end.
	Receipts string

	_ struct{}
}

// SequenceConfig says how a Sequence behaves. The zero SequenceConfig is ready to use.
type SequenceConfig struct {
	Layout   Layout   // as in Config; Long if zero
	ACL      []zk.ACL // as in Config
	Receipts string   // as in Config

	// Block is how many ids are claimed at a time; 1,000 if zero. A busy process claims several blocks at a time. Those
	// that it has not used when it ends are lost.
	Block int

	_ struct{}
}

// ValueConfig says how a Value behaves. The zero ValueConfig is ready to use.
type ValueConfig struct {
	ACL      []zk.ACL // as in Config
	Receipts string   // as in Config

	// MaxPacket is the largest request that the servers accept, in bytes: their jute.maxbuffer; 1,048,575 if zero.
	MaxPacket int

	_ struct{}
}
