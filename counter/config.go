package counter

// Configuration.

import "github.com/seed-a3166700/turnstile/zk"

// Config says how a Counter behaves. The zero Config is ready to use.
type Config struct {
	Layout Layout   // how the node holds the number; Long if zero
	ACL    []zk.ACL // of created nodes; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool

	_ struct{}
}

// SequenceConfig says how a Sequence behaves. The zero SequenceConfig is ready to use.
type SequenceConfig struct {
	Layout Layout   // as in Config; Long if zero
	ACL    []zk.ACL // as in Config
	AnyACL bool     // as in Config

	// Block is how many ids are claimed at a time; 1,000 if zero. A busy process claims several blocks at a time. Those
	// that it has not used when it ends are lost.
	Block int

	_ struct{}
}

// ValueConfig says how a Value behaves. The zero ValueConfig is ready to use.
type ValueConfig struct {
	ACL    []zk.ACL // as in Config
	AnyACL bool     // as in Config

	// MaxPacket is the largest request that the servers accept, in bytes: their jute.maxbuffer; 1,048,575 if zero.
	MaxPacket int

	_ struct{}
}
