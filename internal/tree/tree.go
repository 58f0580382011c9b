package tree

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// WatcherID names a connection, which is what watches belong to. The server chooses it and does not use it twice.
type WatcherID uint64

// Caller is who asks: one value per connection, kept by the server. The tree remembers the pointer while the connection
// has watches, because events are shown only to those who may read the node; so identities that are added to IDs count
// for watches that were set before. The nil Caller is the server itself, who may do everything.
type Caller struct {
	Session int64
	Watcher WatcherID
	// IDs are the identities of the connection: {"ip", address}, {"digest", "user:hash"}, {"sasl", user}, {"x509", subject}.
	IDs []wire.ID
	// Kept is how many bytes its watches take, and whatever the server adds. Any goroutine may read it.
	Kept atomic.Int64
	// Super lets everything pass. An identity of the scheme "super" does the same.
	Super bool
}

// Config chooses how strict the tree is. The zero value is ZooKeeper's default.
type Config struct {
	ExtendedTypes bool     // TTL nodes may be created
	EnforceQuota  bool     // hard limits refuse writes
	SkipACL       bool     // everybody may do everything
	Schemes       []string // schemes that ACLs may name beside world, auth, digest and ip: "sasl", "x509"
	// NeverUsedAfter is the age in milliseconds after which a container that never had a child may be collected; never if 0.
	NeverUsedAfter int64
	MaxWatches     int // of one connection, with WatchPath bytes for the path of each; no limit if not above 0
	WatchPath      int
	MaxReply       int // bytes of the body of a reply, no limit if not above 0
	_              struct{}
}

// The nodes that are always there.
const (
	rootPath   = "/"
	systemPath = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// Tree is the state of one server.
type Tree struct {
	cfg      Config
	zxid     int64
	root     *node
	nodes    map[string]*node // by path
	peak     int              // the most nodes since the map was made: it never shrinks by itself
	size     int64            // bytes in paths and data
	sessions map[int64]*session
	mortal   map[*node]struct{} // containers and TTL nodes
	quotas   map[string]struct{}
	lists    map[string]*acl // access control lists by their encoding, so that equal ones share memory
	listed   int             // bytes of these
	key      []byte          // scratch, to look up lists
	open     *acl            // of nodes that everybody may do everything with
	tables   [2]table
	watchers map[WatcherID]*watcher
	met      Limit  // by a read
	stamp    uint64 // of the current trigger: a connection gets one copy of an event
	tx       transaction
}

// New returns a tree that holds the system nodes and no session, at zxid 0.
func New(cfg Config) *Tree {
	t := &Tree{
		cfg:      cfg,
		nodes:    map[string]*node{},
		sessions: map[int64]*session{},
		mortal:   map[*node]struct{}{},
		quotas:   map[string]struct{}{},
		lists:    map[string]*acl{},
		watchers: map[WatcherID]*watcher{},
	}
	for i := range t.tables {
		t.tables[i].heads = map[string]*watch{}
	}
	t.open = newACL(openList)
	readable := t.intern([]wire.ACL{{Perms: wire.PermRead, ID: anyone}})
	t.root = &node{path: rootPath, data: empty, acl: t.open}
	t.link(t.root)
	for _, path := range []string{systemPath, quotaPath, configPath} {
		t.link(&node{path: path, parent: t.parentOf(path), data: empty, acl: t.open})
	}
	config := t.nodes[configPath]
	config.acl, config.aversion = readable, -1
	return t
}

// Zxid returns the zxid of the last write, refused ones included.
func (t *Tree) Zxid() int64 { return t.zxid }

// lookup finds a node. The empty path is another name of the root.
func (t *Tree) lookup(path string) *node {
	if path == "" {
		return t.root
	}
	return t.nodes[path]
}

// parentOf finds the parent of the node that is or would be at path, by the text before the last slash, of which there is
// one. It returns nil if there is no such node.
func (t *Tree) parentOf(path string) *node {
	return t.lookup(path[:strings.LastIndexByte(path, '/')])
}

// link puts n into the tree, as the last of its parent's children.
func (t *Tree) link(n *node) {
	if n.parent != nil {
		n.parent.children.add(n, inParent)
	}
	t.register(n)
	if s := t.owner(n); s != nil {
		s.nodes.add(n, inSession)
	}
}

// unlink takes n, which has no children, out of the tree.
func (t *Tree) unlink(n *node) {
	n.parent.children.remove(n, inParent)
	if s := t.owner(n); s != nil {
		s.nodes.remove(n, inSession)
	}
	delete(t.nodes, n.path)
	t.size -= int64(len(n.path) + len(n.data))
	if n.kind == container || n.kind == ttl {
		delete(t.mortal, n)
	}
	if path, ok := limitsOf(n.path); ok {
		delete(t.quotas, path)
	}
	t.shrink()
}

// relink undoes unlink, if everything that came after it was undone: n stands where it stood.
func (t *Tree) relink(n *node) {
	n.parent.children.restore(n, inParent)
	t.register(n)
	if s := t.owner(n); s != nil {
		s.nodes.restore(n, inSession)
	}
}

func (t *Tree) register(n *node) {
	t.nodes[n.path] = n
	t.peak = max(t.peak, len(t.nodes))
	t.size += int64(len(n.path) + len(n.data))
	if n.kind == container || n.kind == ttl {
		t.mortal[n] = struct{}{}
	}
	if path, ok := limitsOf(n.path); ok {
		t.quotas[path] = struct{}{}
	}
}

// owner returns the session that n goes with, nil if there is none.
func (t *Tree) owner(n *node) *session {
	if n.kind != ephemeral {
		return nil
	}
	return t.sessions[n.owner]
}

// shrink gives memory back after a flood of nodes has gone.
func (t *Tree) shrink() {
	const worthIt = 1 << 13
	if t.peak < worthIt || len(t.nodes) > t.peak/8 {
		return
	}
	nodes := make(map[string]*node, len(t.nodes))
	maps.Copy(nodes, t.nodes)
	t.nodes, t.peak = nodes, len(nodes)
}
