package zktest

import "github.com/seed-a3166700/turnstile/internal/wire"

// Op is an operation of the protocol, by its name in ZooKeeper's documentation. Variants of one operation share an Op.
type Op string

// The operations of the protocol.
const (
	OpConnect       Op = "connect" // the handshake: a new session, or an old one on a new connection
	OpPing          Op = "ping"
	OpCreate        Op = "create" // also create2, createContainer and createTTL
	OpDelete        Op = "delete"
	OpExists        Op = "exists"
	OpGetData       Op = "getData"
	OpSetData       Op = "setData"
	OpGetACL        Op = "getACL"
	OpSetACL        Op = "setACL"
	OpGetChildren   Op = "getChildren" // also getChildren2
	OpSync          Op = "sync"
	OpCheck         Op = "check" // only inside a multi
	OpMulti         Op = "multi"
	OpMultiRead     Op = "multiRead"
	OpAddWatch      Op = "addWatch"
	OpCheckWatches  Op = "checkWatches"
	OpRemoveWatches Op = "removeWatches"
	OpSetWatches    Op = "setWatches" // also setWatches2
	OpAuth          Op = "auth"
	OpSASL          Op = "sasl"
	OpWhoAmI        Op = "whoAmI"
	OpGetEphemerals Op = "getEphemerals"
	OpCountChildren Op = "getAllChildrenNumber"
	OpReconfig      Op = "reconfig"
	OpCloseSession  Op = "closeSession"
)

// opOf returns the Op of an operation code. An unknown code becomes its number, as in op(23).
func opOf(code wire.Op) Op {
	switch code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return OpCreate
	case wire.OpGetChildren, wire.OpGetChildren2:
		return OpGetChildren
	case wire.OpSetWatches, wire.OpSetWatches2:
		return OpSetWatches
	default:
		return Op(code.String())
	}
}
