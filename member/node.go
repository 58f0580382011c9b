// Package member keeps nodes in place for as long as a program runs, and builds on that: groups of processes that see
// each other, items shared among them, and leases.
//
//	g, err := member.NewGroup(client, "/workers", member.GroupConfig{})
//	...
//	m, err := g.Join(ctx, "host-1", []byte("10.0.0.1:8080"))
//	...
//	defer m.Leave()
//	for members, err := range g.Watch(ctx) {
//		...
//	}
package member

// Node: a node that is kept in place, whatever happens.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of this package. All are found with errors.Is.
var (
	// ErrClosed is what the methods of a Node or a Membership return after Close or Leave.
	ErrClosed = errors.New("the member is closed")
	// ErrTaken reports that a node of another kind is at the path: a persistent one where an ephemeral one is to be, or
	// the other way round. The Node waits until it is gone.
	ErrTaken = errors.New("a node of another kind is at the path")
)

// NodeMode says how long a Node's node lasts by itself.
type NodeMode int

// The modes.
const (
	Ephemeral            NodeMode = iota // for as long as a session of the client lives
	EphemeralSequential                  // likewise, with a name to which the server has appended a number
	Persistent                           // until it is deleted
	PersistentSequential                 // likewise, with a name to which the server has appended a number
)

// lasting reports whether the node outlives its session.
func (m NodeMode) lasting() bool { return m == Persistent || m == PersistentSequential }

// numbered reports whether the server completes the name.
func (m NodeMode) numbered() bool { return m == EphemeralSequential || m == PersistentSequential }

// NodeConfig says how a Node behaves. The zero NodeConfig is ready to use.
type NodeConfig struct {
	Mode NodeMode
	// TTL makes the node last, without a session, for as long as the program runs, and about so long after that: the
	// layout of Curator's PersistentTtlNode. The node is a container, and its child "touch" is set every half TTL. The
	// server must have extended types enabled. Mode must be Persistent; Close leaves the node to its end. At least a
	// second.
	TTL time.Duration
	ACL []zk.ACL // of the node and of parents that are created for it; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	_      struct{}
}

func (c NodeConfig) check() error {
	if c.Mode < Ephemeral || c.Mode > PersistentSequential {
		return attempt.Bad("member: unknown mode %d; use Ephemeral, Persistent or one of their Sequentials", c.Mode)
	}
	if c.TTL != 0 && (c.TTL < time.Second || c.Mode != Persistent) {
		return attempt.Bad("member: TTL must be at least a second, and Mode Persistent: %v", c.TTL)
	}
	return nil
}

// Node keeps a node in place: it creates it, and creates it again, with the latest data, whenever it is gone: because
// the session has ended, or because another client has deleted it. It may be used by any number of goroutines.
//
// A node that is there already is adopted, and its data is set, if it is of this session, or if Mode is Persistent. An
// ephemeral node of another session is left alone: the Node waits until it is gone. That may be a former session of
// this program, whose node lasts until the server notices its end, or another program with the same path. So there are
// never two at a time, and no other program loses its node.
//
// Data that another client sets stays until the next Set or the next creation.
type Node struct {
	client *zk.Client
	cfg    NodeConfig
	access attempt.Access // of the node
	shared *sharedNode
	stop   context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // it ends with Close
	done   sync.WaitGroup
	kick   chan struct{} // one slot: Set was called

	mu      sync.Mutex
	path    string        // with the number, once it is known
	want    []byte        // the data, as it is to be
	wanted  int           // counts Set
	placed  int           // the Set that is in place; 0 if the node is not
	stays   bool          // after Detach
	err     error         // why it cannot be placed, as long as that lasts
	changed chan struct{} // closed, and replaced, when placed or err changes
}

// OpenNode starts to keep a node in place, and does not wait for the server: Await does. Parents that are missing are
// created as containers. It returns an error if the path or the configuration is invalid. Close the Node when the node
// is to go.
func OpenNode(client *zk.Client, nodePath string, data []byte, cfg NodeConfig) (*Node, error) {
	if err := attempt.Args("member", client, nodePath, cfg.ACL); err != nil {
		return nil, err
	}
	if most := attempt.MaxData(0, nodePath, cfg.ACL); len(data) > most {
		return nil, tooLarge(nodePath, len(data), most)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	n := &Node{
		client: client, cfg: cfg, kick: make(chan struct{}, 1), changed: make(chan struct{}),
		path: nodePath, want: bytes.Clone(data), wanted: 1,
		access: attempt.Access{ACL: cfg.ACL, AnyACL: cfg.AnyACL},
	}
	n.shared = shareNode(client, nodePath, cfg)
	n.ctx, n.stop = context.WithCancelCause(context.Background())
	n.done.Go((&keeper{node: n}).run)
	return n, nil
}

func tooLarge(path string, size, most int) error {
	const text = "member: %w: %d bytes of data for %s; use at most %d"
	return fmt.Errorf(text, zk.BadArguments, size, path, most)
}

// Path returns the node's path. With a Sequential mode, the number is missing until the node was created for the
// first time, which Await waits for; from then on the path stays the same, also when the node is created again.
func (n *Node) Path() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.path
}

// InPlace reports whether the node was there, with the latest data, when this client last heard of it.
func (n *Node) InPlace() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.placed == n.wanted
}

// Await waits until the node is in place with the latest data. It returns ctx's cause if ctx ends first, ErrClosed
// after Close, the client's error if the client was closed, ErrTaken, or the server's refusal: of the access to the
// path, or of the list in ACL. After a refusal the Node tries again with the next Set, under the next session, and
// after pauses that grow to seconds (CURATOR-53).
func (n *Node) Await(ctx context.Context) error {
	n.mu.Lock()
	wanted := n.wanted
	n.mu.Unlock()
	return n.await(ctx, wanted)
}

// Set changes the data and waits until it is in place. If it returns an error, the data will still be set when that is
// possible, unless the Node is closed or another Set comes first. Its errors are those of Await.
func (n *Node) Set(ctx context.Context, data []byte) error {
	if most := attempt.MaxData(0, n.Path(), n.cfg.ACL); len(data) > most {
		return tooLarge(n.Path(), len(data), most)
	}
	n.mu.Lock()
	n.want = bytes.Clone(data)
	n.wanted++
	n.err = nil // it is tried again
	wanted := n.wanted
	n.mu.Unlock()
	select {
	case n.kick <- struct{}{}:
	default:
	}
	return n.await(ctx, wanted)
}

// await waits until the data of a Set, or later data, is in place.
func (n *Node) await(ctx context.Context, wanted int) error {
	for {
		n.mu.Lock()
		placed, err, changed := n.placed, n.err, n.changed
		n.mu.Unlock()
		switch {
		case n.ctx.Err() != nil:
			return n.failed(context.Cause(n.ctx)) //nolint:contextcheck // the end of the Node, not of the call
		case placed >= wanted:
			return nil
		case err != nil:
			return n.failed(err)
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
		case <-ctx.Done():
			return n.failed(attempt.Explain(n.client, context.Cause(ctx)))
		}
	}
}

// failed says of which node an error is.
func (n *Node) failed(err error) error { return fmt.Errorf("member: %s: %w", n.Path(), err) }

// Close stops keeping the node, and removes it, in the background: until it is gone or the session has ended. A
// creation that is on its way is waited for and undone, even if a partition delivers it late; with Persistent, though,
// what comes that late stays. With a TTL the node stays until that is over. If another Node of the same client keeps
// the same node, it stays as well, and the last one that is closed removes it. A second Close does nothing.
func (n *Node) Close() { n.stop(ErrClosed) }

// CloseWait closes the Node and waits until the node is gone, or is left to another Node. It returns the server's
// refusal to delete it, or ctx's cause if ctx ends first; the removal then goes on in the background.
func (n *Node) CloseWait(ctx context.Context) error {
	n.stop(ErrClosed)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		n.done.Wait()
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		return n.failed(context.Cause(ctx))
	}
	n.mu.Lock()
	err := n.err
	n.mu.Unlock()
	if err == nil || errors.Is(err, ErrClosed) {
		return nil
	}
	return n.failed(err)
}

// Detach stops keeping a Persistent or PersistentSequential node and leaves it where it is. An ephemeral one goes with
// its session. After a Close it does nothing.
func (n *Node) Detach() {
	n.mu.Lock()
	n.stays = n.stays || n.ctx.Err() == nil
	n.mu.Unlock()
	n.stop(ErrClosed)
	n.done.Wait()
}

// makeParents makes what is missing above the node.
func (n *Node) makeParents(sess *zk.Session) error {
	d := attempt.Dirs{ACL: n.cfg.ACL, AnyACL: n.cfg.AnyACL, Above: true}
	return d.Make(n.ctx, sess, path.Dir(n.Path()))
}

// latest returns the data as it is to be, and its number.
func (n *Node) latest() ([]byte, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.want, n.wanted
}

// report tells those that wait what has become of the node: the number of the data in place, or else an error, or
// neither while it is not known.
func (n *Node) report(placed int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.placed == placed && n.err == err { //nolint:errorlint // whether it is news
		return
	}
	n.placed, n.err = placed, err
	close(n.changed)
	n.changed = make(chan struct{})
}

// named records the path that the server has chosen.
func (n *Node) named(p string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.path = p
}
