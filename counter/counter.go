// Package counter provides numbers and values that many processes share: a Counter, a Sequence of unique ids, and a
// Value that can be watched. Their nodes are those of Curator's and kazoo's recipes.
//
//	visits, err := counter.New(client, "/visits", counter.Config{})
//	n, err := visits.Add(ctx, 1)
//
// # Lost replies
//
// A write whose reply is lost may have been done, and may still be done later. The originals repeat it and count twice,
// or give up. Here each write goes into one transaction with the change of a receipt, a node of this process's own
// below the one that it writes to, in PATH/__receipts__. It tells afterwards whether the write was done. Nothing is
// repeated before that is known, across connections and sessions. To delete a counter is to delete its node and what is
// below. Close removes the receipts of this process; otherwise others do, an hour after its last write.
//
// A client that may write to the node, and not create nodes below it, does without receipts. A write whose reply is
// lost is then ErrUnresolved.
package counter

// Counter.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Counter is a number that many processes change. Its methods may be called from several goroutines at once, and those
// that change it then leave as one write: while one write is in flight, later calls gather for the next.
type Counter struct {
	reg    *register
	layout Layout
	calls  combiner
}

// New returns the counter at path. It does not contact the server: a node that is missing counts as 0, and the first
// change creates it, and its parents. It returns an error if the path or the configuration is invalid.
func New(client *zk.Client, path string, config Config) (*Counter, error) {
	if err := config.Layout.check(); err != nil {
		return nil, err
	}
	reg, err := newRegister(client, path, config.ACL)
	if err != nil {
		return nil, err
	}
	c := &Counter{reg: reg, layout: config.Layout}
	c.calls = combiner{reg: reg, layout: config.Layout}
	return c, nil
}

// Close removes the receipts that this process keeps below the counter's node. It returns ctx's cause or the client's
// error if that ends first. The Counter can still be used; it makes new receipts then.
func (c *Counter) Close(ctx context.Context) error { return c.reg.close(ctx) }

// Path returns the path of the counter's node.
func (c *Counter) Path() string { return c.reg.path }

// Get returns the value, which is 0 if the node is missing or empty. It is at least as new as what any call that ended
// before has returned, with one exception: a server that has been cut off from the others without noticing may answer
// with an older value. Get returns an error that is ErrUnreadable if the node holds no number of the counter's layout.
func (c *Counter) Get(ctx context.Context) (int64, error) {
	v, err := attempt.Run(ctx, c.reg.client, func(sess *zk.Session) (int64, error) {
		now, err := c.reg.readSynced(ctx, sess)
		if err != nil {
			return 0, err
		}
		return c.layout.decode(c.reg.path, now.data)
	})
	return v, c.reg.failed("get", err)
}

// Add adds n and returns the value after it. Concurrent calls of one Counter are added in the order of their calls, and
// each gets its own value.
//
// A lost connection, or an end of the session, does not make it fail, and never adds n twice. If ctx ends before n was
// sent, n is not added. If it ends later, Add waits for the outcome, at most until the session ends; the error is then
// ErrUnresolved, and n may have been added. It returns ErrOverflow if the layout has no such value, ErrUnreadable if
// the node holds no number of the layout, and ErrVersions if the node has been written too often. After those nothing
// was added.
func (c *Counter) Add(ctx context.Context, n int64) (int64, error) {
	r, err := c.calls.do(ctx, newCall(opAdd, n, 0))
	return r.value, c.reg.failed("add", err)
}

// AddUpTo adds n unless the value would then be past limit: above it, or for a negative n below it. It returns the
// value, and whether n was added. Its errors are those of Add.
func (c *Counter) AddUpTo(ctx context.Context, n, limit int64) (value int64, added bool, err error) {
	r, err := c.calls.do(ctx, newCall(opAddUpTo, n, limit))
	return r.value, r.done, c.reg.failed("add", err)
}

// CompareAndSet sets the value to next if it is old, and reports whether it was. Its errors are those of Add.
func (c *Counter) CompareAndSet(ctx context.Context, old, next int64) (bool, error) {
	r, err := c.calls.do(ctx, newCall(opCompare, next, old))
	return r.done, c.reg.failed("compare and set", err)
}

// Set sets the value, whatever it is, also if it is unreadable. Its errors are those of Add.
func (c *Counter) Set(ctx context.Context, value int64) error {
	_, err := c.calls.do(ctx, newCall(opSet, value, 0))
	return c.reg.failed("set", err)
}

// failed adds to err which node it is about and, if a wait was cut short without a server in reach, why there was none.
func (r *register) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrUnreadable) {
		return fmt.Errorf("counter: %s: %w", what, err) // which names the node
	}
	return fmt.Errorf("counter: %s %s: %w", what, r.path, attempt.Explain(r.client, err))
}
