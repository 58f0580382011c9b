// Package wire has the records of ZooKeeper's client protocol, as of 3.9, for clients and servers. Each record is a
// struct that appends itself to a buffer and decodes itself from one.
package wire

// The operation codes, and the record of each request.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/jute"
)

// A Record is the body of a message. After Decode the caller checks the decoder's Err.
type Record interface {
	Append(b []byte) []byte
	Decode(d *jute.Decoder)
}

// Op is an operation code.
type Op int32

// The operations of the client protocol. OpCloseSession is the only negative one that clients send.
const (
	OpError           Op = -1
	OpCreateSession   Op = -10
	OpCloseSession    Op = -11
	OpNotification    Op = 0
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpReconfig        Op = 16
	OpCheckWatches    Op = 17
	OpRemoveWatches   Op = 18
	OpCreateContainer Op = 19
	OpDeleteContainer Op = 20
	OpCreateTTL       Op = 21
	OpMultiRead       Op = 22
	OpAuth            Op = 100
	OpSetWatches      Op = 101
	OpSASL            Op = 102
	OpGetEphemerals   Op = 103
	OpGetAllChildren  Op = 104 // getAllChildrenNumber
	OpSetWatches2     Op = 105
	OpAddWatch        Op = 106
	OpWhoAmI          Op = 107
)

// The xids of messages that are not numbered requests.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

type opInfo struct {
	name    string // in ZooKeeper's documentation
	short   string // in the output of the four-letter word cons
	request func() Record
}

var ops = map[Op]opInfo{
	OpCreateSession:   {"createSession", "SESS", nil},
	OpCloseSession:    {"closeSession", "CLOS", newEmpty},
	OpCreate:          {"create", "CREA", func() Record { return new(CreateRequest) }},
	OpDelete:          {"delete", "DELE", func() Record { return new(DeleteRequest) }},
	OpExists:          {"exists", "EXIS", newPathWatch},
	OpGetData:         {"getData", "GETD", newPathWatch},
	OpSetData:         {"setData", "SETD", func() Record { return new(SetDataRequest) }},
	OpGetACL:          {"getACL", "GETA", newPath},
	OpSetACL:          {"setACL", "SETA", func() Record { return new(SetACLRequest) }},
	OpGetChildren:     {"getChildren", "GETC", newPathWatch},
	OpSync:            {"sync", "SYNC", newPath},
	OpPing:            {"ping", "PING", newEmpty},
	OpGetChildren2:    {"getChildren2", "GETC", newPathWatch},
	OpCheck:           {"check", "CHEC", func() Record { return new(CheckRequest) }},
	OpMulti:           {"multi", "MULT", func() Record { return new(MultiRequest) }},
	OpCreate2:         {"create2", "CREA", func() Record { return new(CreateRequest) }},
	OpReconfig:        {"reconfig", "RECO", func() Record { return new(ReconfigRequest) }},
	OpCheckWatches:    {"checkWatches", "CHKW", newWatcherType},
	OpRemoveWatches:   {"removeWatches", "REMW", newWatcherType},
	OpCreateContainer: {"createContainer", "CREA", func() Record { return new(CreateRequest) }},
	OpDeleteContainer: {"deleteContainer", "DELC", newPath},
	OpCreateTTL:       {"createTTL", "CREA", func() Record { return new(CreateTTLRequest) }},
	OpMultiRead:       {"multiRead", "MLTR", func() Record { return &MultiRequest{Read: true} }},
	OpAuth:            {"auth", "AUTH", func() Record { return new(AuthRequest) }},
	OpSetWatches:      {"setWatches", "SETW", func() Record { return new(SetWatchesRequest) }},
	OpSASL:            {"sasl", "SASL", func() Record { return new(SASLToken) }},
	OpGetEphemerals:   {"getEphemerals", "GETE", func() Record { return new(EphemeralsRequest) }},
	OpGetAllChildren:  {"getAllChildrenNumber", "GETACN", newPath},
	OpSetWatches2:     {"setWatches2", "STW2", func() Record { return &SetWatchesRequest{Two: true} }},
	OpAddWatch:        {"addWatch", "ADDW", func() Record { return new(AddWatchRequest) }},
	OpWhoAmI:          {"whoAmI", "HOMI", newEmpty},
}

func newEmpty() Record       { return new(Empty) }
func newPath() Record        { return new(PathRequest) }
func newPathWatch() Record   { return new(PathWatchRequest) }
func newWatcherType() Record { return new(WatcherTypeRequest) }

// String returns the operation's name in ZooKeeper's documentation.
func (o Op) String() string {
	if i, ok := ops[o]; ok {
		return i.name
	}
	return fmt.Sprintf("op(%d)", int32(o))
}

// Short returns the operation's abbreviation in the output of the four-letter word cons, or "NA" if it has none.
func (o Op) Short() string {
	if i, ok := ops[o]; ok {
		return i.short
	}
	return "NA"
}

// Writes reports whether a leader proposes o to its quorum, so that a reply with OK shows that the quorum accepted it.
// The leader also proposes a multi of which it refuses an operation.
func (o Op) Writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL,
		OpMulti, OpReconfig:
		return true
	default:
		return false
	}
}

// NewRequest returns an empty record for the request of o, or nil if clients must not send o.
func NewRequest(o Op) Record {
	if i, ok := ops[o]; ok && i.request != nil {
		return i.request()
	}
	return nil
}

// Empty is the body of a message without one.
type Empty struct{}

// Append appends nothing.
func (*Empty) Append(b []byte) []byte { return b }

// Decode reads nothing.
func (*Empty) Decode(*jute.Decoder) {}
