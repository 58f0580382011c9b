//go:build plantedbug

package queue

import "github.com/seed-a3166700/turnstile/zk"

// takeOver is a bug: it leaves the claim's node there, for the next consumer to take over, too. It is planted for
// package lin, which builds with this tag to show that its judges find two consumers of one item; nothing else does.
func takeOver(path string, version int32) zk.Op { return zk.CheckOp(path, version) }
