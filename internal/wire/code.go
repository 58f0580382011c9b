package wire

// The error codes.

import "fmt"

// Code is a server's verdict on a request, 0 for success.
type Code int32

// The codes that servers send, and those that clients make for themselves.
const (
	OK                       Code = 0
	SystemError              Code = -1
	RuntimeInconsistency     Code = -2
	DataInconsistency        Code = -3
	ConnectionLoss           Code = -4
	MarshallingError         Code = -5
	Unimplemented            Code = -6
	OperationTimeout         Code = -7
	BadArguments             Code = -8
	UnknownSession           Code = -12
	NewConfigNoQuorum        Code = -13
	ReconfigInProgress       Code = -14
	APIError                 Code = -100
	NoNode                   Code = -101
	NoAuth                   Code = -102
	BadVersion               Code = -103
	NoChildrenForEphemerals  Code = -108
	NodeExists               Code = -110
	NotEmpty                 Code = -111
	SessionExpired           Code = -112
	InvalidCallback          Code = -113
	InvalidACL               Code = -114
	AuthFailed               Code = -115
	SessionMoved             Code = -118
	NotReadOnly              Code = -119
	EphemeralOnLocalSession  Code = -120
	NoWatcher                Code = -121
	RequestTimeout           Code = -122
	ReconfigDisabled         Code = -123
	SessionClosedRequireAuth Code = -124
	QuotaExceeded            Code = -125
	ThrottledOp              Code = -127
)

var codeNames = map[Code]string{
	OK: "ok", SystemError: "system error", RuntimeInconsistency: "runtime inconsistency", DataInconsistency: "data inconsistency",
	ConnectionLoss: "connection loss", MarshallingError: "malformed request", Unimplemented: "not implemented by this server",
	OperationTimeout: "operation timeout", BadArguments: "bad arguments", UnknownSession: "unknown session",
	NewConfigNoQuorum: "new configuration has no quorum", ReconfigInProgress: "another reconfiguration is in progress", APIError: "api error",
	NoNode: "node does not exist", NoAuth: "not authorized", BadVersion: "version does not match",
	NoChildrenForEphemerals: "ephemeral nodes have no children", NodeExists: "node exists", NotEmpty: "node has children",
	SessionExpired: "session expired", InvalidCallback: "invalid callback", InvalidACL: "invalid acl", AuthFailed: "authentication failed",
	SessionMoved: "session moved to another server", NotReadOnly: "server is read-only", EphemeralOnLocalSession: "ephemeral node on a local session",
	NoWatcher: "no such watch", RequestTimeout: "request timeout", ReconfigDisabled: "reconfiguration is disabled",
	SessionClosedRequireAuth: "server requires authentication", QuotaExceeded: "quota exceeded", ThrottledOp: "server is overloaded",
}

// String returns what the code means in a few words.
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("error code %d", int32(c))
}
