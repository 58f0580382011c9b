// Package fence refuses late writes to what a lock protects, by the lock's fencing tokens.
//
// A process that holds a lock may be stopped just before its write, and continue after another client has acquired the
// lock. A check of the lock before the write does not help: the process may be stopped right after the check. Only what
// is written to can refuse the write. A fence remembers the largest token that it has seen and refuses smaller ones.
// Each later hold of a lock has a larger token, so no earlier holder can write once the fence has seen the new holder's
// token.
//
// The fences differ in where they keep the token, which is best next to the data:
//
//   - Table: in a table of the same SQL database, in the transaction that writes (PostgreSQL, MySQL and MariaDB,
//     SQLite);
//   - Node: in a znode, in the multi that writes;
//   - File: next to the file that is written, on one machine;
//   - Gate and HTTP: in front of a service that is written to by HTTP requests.
//
// All of them admit a token that equals the largest seen, because a holder may write more than once. All are safe for
// concurrent use by goroutines, and all but Gate by processes. While an admitted write is running they admit no larger
// token, so that two writes never interleave.
//
// # Read under the fence, too
//
// A holder that reads, decides and then writes must show its token before it reads. Otherwise a late write of the
// previous holder can come between its read and its write, because the fence has not seen the new token yet. The
// functions given to the Do methods run after the token is admitted, so no late writer changes what they read.
//
// # Waiting
//
// A holder that is stopped in the middle of an admitted write makes the next holder wait, because a half-done write is
// nothing to build on. The wait ends when the stopped process continues, is killed, or is cut off: databases limit idle
// transactions (PostgreSQL's idle_in_transaction_session_timeout, MySQL's wait_timeout), a Gate cancels the work's
// context, and HTTP ends the request's body. A Node never waits, because a multi is one step.
//
// # Tokens
//
// Tokens come from hold.Token(). Show a fence the tokens of one lock only; tokens of different
// locks do not compare. The lock must be exclusive: of concurrent holders, such as a semaphore's, the one with the
// largest token would shut out the others. A fence that forgets its token (a dropped table, a deleted node or file)
// admits late writers until it sees a newer token.
//
// # Lost replies
//
// Showing a token again changes nothing, so a call that only shows a token (the Raise methods) may be repeated after
// any error. A write whose reply was lost may have been done; no fence repeats it. While the fence admits the caller's
// token no later holder has written, so the caller can check what it wrote before it writes again.
package fence

// Tokens and errors.

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-a3166700/turnstile/zk"
)

// Token is a fencing token, of a lock.Hold, an elect.Leadership or a queue.Item.
type Token = zk.Token

var (
	// ErrStale means that the fence has seen a larger token: the lock has passed to a later holder, and the write was
	// not done. A *StaleError has the details.
	ErrStale = errors.New("the lock has passed to a later holder")
	// ErrBadToken means that a token is not a positive number.
	ErrBadToken = errors.New("not a fencing token; pass hold.Token(), which is positive")
)

// StaleError describes a refused token. errors.Is finds ErrStale in it.
type StaleError struct {
	Resource string // the resource of the write
	Token    Token  // the refused token
	Newest   Token  // the largest token that the fence has seen
}

// Error returns the tokens and the resource.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: %v: token %d for %q is older than %d", ErrStale, e.Token, e.Resource, e.Newest)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// ParseToken parses the output of FormatToken. It returns ErrBadToken for anything else, including a sign, spaces and
// leading zeros.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	token := Token(n)
	if err != nil || token <= 0 || FormatToken(token) != s {
		return 0, fmt.Errorf("fence: %w: %.40q", ErrBadToken, s)
	}
	return token, nil
}

// FormatToken returns the decimal form of a token.
func FormatToken(token Token) string { return strconv.FormatInt(int64(token), 10) }

// admit returns a *StaleError if token is smaller than newest, the largest seen.
func admit(resource string, token, newest Token) error {
	if err := checkToken(token); err != nil {
		return err
	}
	if token < newest {
		return &StaleError{Resource: resource, Token: token, Newest: newest}
	}
	return nil
}

// checkWork refuses a function that is nil before its token is seen.
func checkWork(missing bool) error {
	if missing {
		return fmt.Errorf("fence: %w: the function to run is nil", zk.BadArguments)
	}
	return nil
}

func checkToken(token Token) error {
	if token <= 0 {
		return fmt.Errorf("fence: %w: %d", ErrBadToken, token)
	}
	return nil
}
