package cli

import (
	"errors"
	"syscall"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Exit codes of turnstile itself. "turnstile lock" otherwise exits as its command did: with its code, or 128+N when signal N ended it.
// They follow sysexits(3) where no custom is older.
const (
	ExitOK          = 0
	ExitNotAcquired = 1   // the lock is held by somebody else, or no item is ready, and --no-wait or --wait said not to wait longer; -E chooses another
	ExitUsage       = 64  // the command line or an environment variable is wrong; nothing was done
	ExitData        = 65  // what was to be put is too large
	ExitNoServer    = 69  // no server answers, or the server to be started cannot run
	ExitSoftware    = 70  // the server refused what should have worked
	ExitLost        = 75  // the lock, or the claim of an item, was lost while the command ran
	ExitNoAccess    = 77  // the server refuses these credentials, or these credentials that path
	ExitConfig      = 78  // a configuration file is wrong
	ExitNoExec      = 126 // the command is there and cannot be executed
	ExitNotFound    = 127 // the command is not there
	ExitSignal      = 128 // plus N: signal N ended the command, or the wait for the lock
)

// exitError ends a command with an exit code. Without err nothing is said.
type exitError struct {
	code   int
	err    error
	hint   string         // what to do next
	signal syscall.Signal // what ended the command, or the wait for the lock; 0 if no signal did
	typed  bool           // signal came from the terminal, to the command's process group and not to ours
}

func (e *exitError) Error() string {
	switch {
	case e.err == nil:
		return ""
	case e.hint == "":
		return e.err.Error()
	}
	return e.err.Error() + "; " + e.hint
}

func (e *exitError) Unwrap() error { return e.err }

// failed gives an error of the client or the server its exit code.
func failed(err error) error {
	var exit *exitError
	var sig signalled
	switch {
	case err == nil, errors.As(err, &exit):
		return err
	case errors.As(err, &sig):
		return &exitError{code: sig.exitCode(), signal: sig.number()}
	case errors.Is(err, zk.SessionClosedRequireAuth):
		hint := "the server wants a login: see --sasl-user, --auth and --tls-cert"
		return &exitError{code: ExitNoAccess, err: err, hint: hint}
	case errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.AuthFailed):
		return &exitError{code: ExitNoAccess, err: err, hint: "check --auth, --sasl-user and --sasl-password-file"}
	case errors.Is(err, zk.InvalidACL):
		hint := "the server does not take this --acl: has it the scheme, and creator the credentials?"
		return &exitError{code: ExitNoAccess, err: err, hint: hint}
	case errors.Is(err, zk.NoAuth):
		return &exitError{code: ExitNoAccess, err: err, hint: "the path's ACL asks for other credentials: see --auth"}
	case errors.Is(err, lock.ErrWrap): // which says what to delete, and when
		return &exitError{code: ExitSoftware, err: err, hint: "turnstile who shows who is there, zkCli.sh delete deletes it once it is empty"}
	case errors.Is(err, zk.ErrLost), errors.Is(err, zk.ErrUncertain), errors.Is(err, zk.ErrExpired), errors.Is(err, zk.ErrConnectionLost):
		return &exitError{code: ExitNoServer, err: err, hint: "see whether the server runs, and try again"}
	}
	return &exitError{code: ExitSoftware, err: err}
}
