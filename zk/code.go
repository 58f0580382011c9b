package zk

// The error codes of servers.

import "github.com/seed-a3166700/turnstile/internal/wire"

// A Code says why a server refused a request. It is an error, so errors.Is(err, zk.NoNode) works.
type Code int32

// The codes that servers send.
const (
	SystemError              = Code(wire.SystemError)
	RuntimeInconsistency     = Code(wire.RuntimeInconsistency) // in a failed multi: this operation was not tried
	DataInconsistency        = Code(wire.DataInconsistency)
	MarshallingError         = Code(wire.MarshallingError)
	Unimplemented            = Code(wire.Unimplemented) // the server is too old, or the feature is switched off
	OperationTimeout         = Code(wire.OperationTimeout)
	BadArguments             = Code(wire.BadArguments)
	UnknownSession           = Code(wire.UnknownSession)
	NewConfigNoQuorum        = Code(wire.NewConfigNoQuorum)
	ReconfigInProgress       = Code(wire.ReconfigInProgress)
	NoNode                   = Code(wire.NoNode)
	NoAuth                   = Code(wire.NoAuth)
	BadVersion               = Code(wire.BadVersion)
	NoChildrenForEphemerals  = Code(wire.NoChildrenForEphemerals)
	NodeExists               = Code(wire.NodeExists)
	NotEmpty                 = Code(wire.NotEmpty)
	SessionExpired           = Code(wire.SessionExpired)
	InvalidACL               = Code(wire.InvalidACL)
	AuthFailed               = Code(wire.AuthFailed)
	SessionMoved             = Code(wire.SessionMoved)
	NotReadOnly              = Code(wire.NotReadOnly)
	EphemeralOnLocalSession  = Code(wire.EphemeralOnLocalSession)
	NoWatcher                = Code(wire.NoWatcher)
	RequestTimeout           = Code(wire.RequestTimeout)
	ReconfigDisabled         = Code(wire.ReconfigDisabled)
	SessionClosedRequireAuth = Code(wire.SessionClosedRequireAuth)
	QuotaExceeded            = Code(wire.QuotaExceeded)
	ThrottledOp              = Code(wire.ThrottledOp)
)

// Error returns what the code means in a few words.
func (c Code) Error() string { return wire.Code(c).String() }

// codeError returns the error for a code from the server, or nil if it is OK.
func codeError(c wire.Code) error {
	if c == wire.OK {
		return nil
	}
	return Code(c)
}
