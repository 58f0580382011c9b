// Package classic provides the queues of other projects, on their own nodes: ZooKeeper's and Curator's simple queues,
// Curator's family of distributed queues, and kazoo's. It is for programs that share a queue with Java or Python, and
// for users who come from there.
//
//	q, err := classic.NewCurator(client, "/queues/mail", classic.Config{LockPath: "/queues/mail-locks"})
//	err = q.Put(ctx, []byte("hello"))
//	item, err := q.Take(ctx)
//	err = item.Done(ctx)
//
// With a lock path, and in KazooLocking, an item is taken by a lock that goes with the session, and removed when it
// is done: it is delivered at least once. Without, it is removed when it is taken: it is delivered at most once, and
// lost if its consumer crashes.
//
// # Lost replies
//
// The layouts have no room for a mark by which a client could find out whether a request was executed whose reply is
// lost. The originals repeat it or give up: an item is put twice, or removed and never delivered. Here each such
// write goes into one transaction with the change of a receipt, an ephemeral node of this client's own beside the
// queue (Config.Receipts), which tells afterwards. Only if the session ends before the client has looked does it
// remain unknown, and then an UnresolvedError says so.
//
// # Limits
//
// The layouts keep all items of a queue in one directory, whose list must fit into one packet: about 10,000 items for
// the originals (1 MiB), and zk.Config.MaxFrame here, some 100,000 by default. A consumer of a longer one gets
// zk.ErrReplyTooLarge; puts go on.
package classic

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	defaultPacket = 0xfffff // jute.maxbuffer of servers by default
	overhead      = 1 << 10 // what a request has besides the bytes of its items, with room to spare
)

// Config configures a queue. The zero Config is that of the originals.
type Config struct {
	// LockPath makes Curator's queues deliver at least once: it is the directory of their locks. All consumers of a
	// queue must have the same. The other kinds of queue refuse it.
	LockPath string

	// OnError is what Consume does with an item whose function has failed. It needs a LockPath, except for kazoo's
	// queues.
	OnError ErrorMode

	// Receipts is the directory of this client's own ephemeral nodes by which it learns what became of a write whose
	// reply is lost: at most as many as it has writes in flight. Queues may share it. If empty, it is the queue's
	// path with "-__receipts__" at the end; for KazooLocking "__receipts__" below the queue's path, where kazoo does
	// not look.
	Receipts string

	// ACL is the access list of all created nodes; open if nil.
	ACL []zk.ACL
	// AnyACL accepts nodes at the paths and above them that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool

	// MaxPacket is the largest request that the servers accept, in bytes: their jute.maxbuffer; 1,048,575 if zero. A
	// larger request is refused before it is sent, because a server answers it by dropping the connection.
	MaxPacket int

	_ struct{}
}

// ErrorMode is what becomes of an item that could not be handled.
type ErrorMode int

// The modes.
const (
	// Requeue moves it to the end of its kind, with its priority, time or id: Curator's REQUEUE, which loses the first
	// two.
	Requeue ErrorMode = iota
	Drop              // it is removed: Curator's DELETE
	Release           // it stays in its old place: kazoo's release
)

// kind is what one of the originals does.
type kind struct {
	naming   naming
	format   format
	lockable bool // whether Config.LockPath makes sense
}

// newBase returns the queue whose items are at path, with its receipts in a directory unless cfg names one.
func newBase(client *zk.Client, path, receipts string, cfg Config, k kind) (*base, error) {
	if err := attempt.Args("classic", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	cfg.MaxPacket = cmp.Or(cfg.MaxPacket, defaultPacket)
	if err := cfg.check(path, k); err != nil {
		return nil, err
	}
	cfg.Receipts = cmp.Or(cfg.Receipts, receipts)
	d := &base{
		kind:     k,
		client:   client,
		dir:      path,
		locks:    cfg.LockPath,
		cfg:      cfg,
		access:   attempt.Access{ACL: cfg.ACL, AnyACL: cfg.AnyACL},
		own:      slices.DeleteFunc([]string{path, cfg.LockPath}, func(p string) bool { return p == "" }),
		receipts: newReceipts(client, cfg),
		turn:     make(chan *snapshot, 1),
		broken:   map[string]bool{},
	}
	d.turn <- new(snapshot)
	return d, nil
}

func (c Config) check(path string, k kind) error {
	switch {
	case c.LockPath != "" && !k.lockable:
		return fmt.Errorf("classic: %w: this kind of queue has no LockPath", zk.BadArguments)
	case c.LockPath == path || c.Receipts == path:
		return fmt.Errorf("classic: %w: LockPath and Receipts must not be the queue's path", zk.BadArguments)
	case c.OnError < Requeue || c.OnError > Release:
		return fmt.Errorf("classic: %w: unknown OnError %d", zk.BadArguments, c.OnError)
	case c.OnError != Requeue && k.lockable && c.LockPath == "":
		const text = "classic: %w: OnError needs a LockPath, without which an item is gone when it is taken"
		return fmt.Errorf(text, zk.BadArguments)
	case c.MaxPacket < 2*overhead:
		const text = "classic: %w: MaxPacket is too small: %d bytes; use %d or more"
		return fmt.Errorf(text, zk.BadArguments, c.MaxPacket, 2*overhead)
	}
	if c.Receipts != "" {
		if err := attempt.PathArgs("classic: Receipts", c.Receipts, nil); err != nil {
			return err
		}
	}
	if c.LockPath != "" {
		return attempt.PathArgs("classic: LockPath", c.LockPath, nil)
	}
	return nil
}
