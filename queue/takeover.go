package queue

// Taking over a claim.

import "github.com/seed-a3166700/turnstile/zk"

// takeOver is what the transaction that takes a claim over does to its node: it removes it, so that the consumer that
// had the claim no longer has it.
func takeOver(path string, version int32) zk.Op { return zk.DeleteOp(path, version) }
