package tree

// The tree and its configuration.

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// WatcherID identifies a connection, which owns its watches. The server chooses it and never reuses it.
type WatcherID uint64

// Caller describes the connection that makes a request. The server keeps one value per connection. The tree keeps the
// pointer while the connection has watches, because events go only to connections that may read the node; so identities
// added to IDs later count for watches that exist already. The nil Caller is the server itself, which may do
// everything.
type Caller struct {
	Session int64
	Watcher WatcherID
	// IDs are the identities of the connection: {"ip", address}, {"digest", "user:hash"}, {"sasl", user}, {"x509",
	// subject}. It only grows.
	IDs []wire.ID
	// Kept is how many bytes its watches take, plus what the server adds. Any goroutine may read it.
	Kept atomic.Int64
	// Super passes every access check. An identity of the scheme "super" does the same.
	Super bool

	seen verdicts
}

// Config selects optional features and limits. The zero value is ZooKeeper's default.
type Config struct {
	ExtendedTypes bool     // TTL nodes may be created
	EnforceQuota  bool     // hard limits refuse writes
	SkipACL       bool     // access lists are not checked
	Schemes       []string // schemes allowed in access lists beside world, auth, digest and ip: "sasl", "x509"
	// NeverUsedAfter is the age in milliseconds after which a container that never had a child may be collected; never
	// if 0.
	NeverUsedAfter int64
	MaxWatches     int // of one connection, with WatchPath bytes of path for each; no limit if 0
	WatchPath      int
	MaxReply       int // bytes of a reply's body; no limit if 0
	MaxLists       int // bytes of access lists that one multi may store; no limit if 0
	MaxEvents      int // of one write; no limit if 0
	_              struct{}
}

// The system nodes, which always exist.
const (
	rootPath   = "/"
	systemPath = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	configPath = "/zookeeper/config"
)

// Tree is the state of one server.
type Tree struct {
	cfg          Config
	zxid         int64
	root         *node
	nodes        map[string]*node // by path
	peak         int              // the most nodes since the map was made, which never shrinks by itself
	size         int64            // bytes in paths and data
	sessions     map[int64]*session
	ending       map[int64]*session // have ended, but for some of their nodes
	collectables nodeSet            // containers and TTL nodes
	ephemerals   int                // nodes of sessions
	quotas                          // see quota.go
	lists        map[string]*acl    // access lists by their encoding, so that equal ones share memory
	listed       int                // bytes of their encodings
	key          []byte             // scratch, to look up lists
	open         *acl               // the value of openList
	tables       [2]table
	watchers     map[WatcherID]*watcher
	deep         map[string]*deep // the recursive watches of each path
	deepAt       map[*node]*deep  // the same for paths that have a node, to find those of a node's ancestors
	longLists    bool             // there was a list of more than longList bytes
	limitHit     Limit            // since the last TakeLimit
	stamp        uint64           // of the current trigger: a connection gets one copy of an event
	tx           transaction
}

// New returns a tree that holds the system nodes and no session, at zxid 0.
func New(cfg Config) *Tree {
	t := &Tree{
		cfg:      cfg,
		nodes:    map[string]*node{},
		ending:   map[int64]*session{},
		sessions: map[int64]*session{},
		quotas:   newQuotas(),
		lists:    map[string]*acl{},
		watchers: map[WatcherID]*watcher{},
		deep:     map[string]*deep{},
		deepAt:   map[*node]*deep{},
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

// lookup returns the node at path, nil if there is none. The empty path is another name of the root.
func (t *Tree) lookup(path string) *node {
	if path == "" {
		return t.root
	}
	return t.nodes[path]
}

// parentOf returns the node at the part of path before its last slash, nil if there is none. The path must contain a
// slash.
func (t *Tree) parentOf(path string) *node {
	return t.lookup(path[:strings.LastIndexByte(path, '/')])
}

// link adds n to the tree, as the last of its parent's children.
func (t *Tree) link(n *node) {
	if n.parent != nil {
		n.parent.children.add(n, inParent)
	}
	t.register(n)
	switch s := t.owner(n); {
	case n.collected():
		t.collectables.add(n, inSession)
	case s != nil:
		s.nodes.add(n, inSession)
		t.ephemerals++
	}
}

// unlink removes n, which has no children, from the tree.
func (t *Tree) unlink(n *node) {
	n.parent.children.remove(n, inParent)
	switch s := t.owner(n); {
	case n.collected():
		t.collectables.remove(n, inSession)
	case s != nil:
		s.nodes.remove(n, inSession)
		t.ephemerals--
	}
	delete(t.nodes, n.path)
	t.size -= int64(len(n.path) + len(n.data))
	t.unregisterQuota(n)
	t.shrink()
}

// relink undoes unlink and restores the order of children. Everything that came after must have been undone before.
func (t *Tree) relink(n *node) {
	n.parent.children.restore(n, inParent)
	t.register(n)
	switch s := t.owner(n); {
	case n.collected():
		t.collectables.restore(n, inSession)
	case s != nil:
		s.nodes.restore(n, inSession)
		t.ephemerals++
	}
}

func (t *Tree) register(n *node) {
	t.nodes[n.path] = n
	t.peak = max(t.peak, len(t.nodes))
	t.size += int64(len(n.path) + len(n.data))
	if len(t.deep) > 0 {
		if d := t.deep[n.path]; d != nil {
			t.deepAt[n] = d
		}
	}
	t.registerQuota(n)
}

// owner returns the session of an ephemeral node, nil if n is not ephemeral or the session and all its nodes are gone.
func (t *Tree) owner(n *node) *session {
	if n.kind != ephemeral {
		return nil
	}
	if s := t.sessions[n.owner]; s != nil {
		return s
	}
	return t.ending[n.owner]
}

// shrink gives memory back after most of very many nodes are gone.
func (t *Tree) shrink() {
	const atLeast = 1 << 13
	if t.peak < atLeast || len(t.nodes) > t.peak/8 {
		return
	}
	nodes := make(map[string]*node, len(t.nodes))
	maps.Copy(nodes, t.nodes)
	t.nodes, t.peak = nodes, len(nodes)
}
