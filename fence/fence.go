// Package fence refuses writers that come too late: it guards what a lock protects by the lock's fencing tokens.
//
// A process that holds a lock may be stopped at any moment, a microsecond before its write, and go on after the lock has passed to
// somebody else. No look at the lock can help it: the stop may come right after the look. What is written to can help. It remembers the
// largest token that it has seen, and refuses a smaller one. Each later hold of a lock has a larger token, so once the new
// holder has shown itself, no earlier one gets through.
//
// The checkers differ in where they remember the token, which is best where the data is:
//
//   - Table: in a table of the same SQL database, in the transaction that writes (PostgreSQL, MySQL and MariaDB, SQLite);
//   - Node: in a znode, in the multi that writes;
//   - File: beside a file that is written, on one machine;
//   - Gate and HTTP: before a service that is written to by HTTP requests.
//
// All of them admit a token that equals the largest seen: a holder may write more than once. All can be used by any number of goroutines,
// and all but Gate by any number of processes: while an admitted write is under way, no larger token is admitted, so
// that two writes never interleave, whoever they are from.
//
// # Read under the fence, too
//
// A holder that reads, decides, and then writes must show its token before it reads. Otherwise a late write of the holder before can
// fall between its read and its write: nobody has told the fence yet that there is a newer one. The functions that the Do methods
// call run after the token was admitted; what they read is not changed by anybody late.
//
// # Who waits for whom
//
// A holder that is stopped in the middle of an admitted write, not before it, keeps the next holder waiting: half a write is not
// something to build on. It ends when the stopped one goes on, is killed, or is cut off: databases have a limit for transactions that
// nobody works on (PostgreSQL's idle_in_transaction_session_timeout, MySQL's wait_timeout); a Gate tells its work's context, and HTTP cuts off
// the request's body. A Node has nothing to wait for, because a multi happens at once.
//
// # Tokens
//
// Tokens come from hold.Token(). A fence must see the tokens of one lock only; those of different
// locks say nothing about each other. The lock must be an exclusive one: of holders that may hold at the same time, such as those of a semaphore, the
// one with the largest token would shut out the others. Forgetting the largest token (dropping the table, deleting the node or the file) lets late
// writers in until a newer token is shown.
//
// # When the answer is lost
//
// Showing a token again changes nothing, so a call of which only the token matters (the Raise methods) may be repeated after any error. A write whose
// answer was lost may have been done; no checker repeats it. As long as the caller's token is admitted nobody later has written, so it
// can look for what it wrote before it writes again.
package fence

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-a3166700/turnstile/zk"
)

// Token is a fencing token, of a lock.Hold, an elect.Leadership or a queue.Item.
type Token = zk.Token

var (
	// ErrStale reports that a larger token has been seen: the lock has passed to a later holder, and the write was not
	// done. A *StaleError has the details.
	ErrStale = errors.New("fence: the lock has passed to a later holder")
	// ErrBadToken reports a number that is not a token: tokens are positive.
	ErrBadToken = errors.New("fence: not a fencing token; pass hold.Token(), which is positive")
)

// StaleError says which token was refused, and by which. errors.Is finds ErrStale in it.
type StaleError struct {
	Resource string // what the token was shown for
	Token    Token  // the token that was refused
	Newest   Token  // the largest that has been seen
}

// Error returns the tokens and the resource.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: token %d for %q is older than %d", ErrStale, e.Token, e.Resource, e.Newest)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// ParseToken reads a token from its decimal form, as FormatToken writes it and nothing else: no sign, no spaces, no leading zeros. It
// returns ErrBadToken otherwise.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	token := Token(n)
	if err != nil || token <= 0 || FormatToken(token) != s {
		return 0, fmt.Errorf("%w: %.40q", ErrBadToken, s)
	}
	return token, nil
}

// FormatToken returns a token's decimal form.
func FormatToken(token Token) string { return strconv.FormatInt(int64(token), 10) }

// admit compares a token with the largest seen.
func admit(resource string, token, newest Token) error {
	if err := checkToken(token); err != nil {
		return err
	}
	if token < newest {
		return &StaleError{Resource: resource, Token: token, Newest: newest}
	}
	return nil
}

func checkToken(token Token) error {
	if token <= 0 {
		return fmt.Errorf("%w: %d", ErrBadToken, token)
	}
	return nil
}
