package tree

// Building a tree from records.

import (
	"fmt"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Loader builds a tree from the records of a store: first all sessions, then nodes in order of their paths, then data.
type Loader struct {
	t       *Tree
	indexed []*node // ephemeral and collectable ones, in the order of the store
	missing int     // data records that are still to come
}

// NewLoader returns a Loader without records, whose Tree is that of New.
func NewLoader(cfg Config) *Loader { return &Loader{t: New(cfg)} }

// Session adds a session.
func (l *Loader) Session(id int64, timeoutMs int32) { l.t.sessions[id] = &session{timeout: timeoutMs} }

// Node adds a node from its meta record. Parents must come before their children, as they do in order of paths. It
// returns an error if the record is damaged or does not fit into the tree. It keeps no reference to meta.
func (l *Loader) Node(path string, meta []byte) error {
	t := l.t
	if !validPath(path) {
		return fmt.Errorf("tree: invalid path %q", path)
	}
	var n node
	length, list, err := decodeRecord(meta, &n)
	if err != nil {
		return fmt.Errorf("%w at %s", err, path)
	}
	n.acl = t.intern(list)
	if isSystem(path) {
		old := t.nodes[path]
		n.path, n.parent, n.at, n.children = old.path, old.parent, old.at, old.children
		*old = n
		l.expect(old, length)
		return nil
	}
	parent := t.parentOf(path)
	switch {
	case parent == nil:
		return fmt.Errorf("tree: node %s has no parent", path)
	case parent.kind == ephemeral:
		return fmt.Errorf("tree: node %s is below an ephemeral node", path)
	case t.nodes[path] != nil:
		return fmt.Errorf("tree: duplicate node %s", path)
	}
	n.path, n.parent = strings.Clone(path), parent
	parent.children.add(&n, inParent)
	t.register(&n)
	l.expect(&n, length)
	if n.kind != persistent {
		l.indexed = append(l.indexed, &n)
	}
	return nil
}

// expect keeps the length of n's data record, in a field that is otherwise unused until the tree is complete.
func (l *Loader) expect(n *node, length int32) {
	switch {
	case length > 0:
		n.at[inSession] = length
		l.missing++
	case length == 0:
		n.data = empty
	}
}

// Data sets the data of a node that Node has added. It returns an error if there is no such node, or if its meta record
// states another length. It keeps no reference to data.
func (l *Loader) Data(path string, data []byte) error {
	n := l.t.nodes[path]
	switch {
	case n == nil:
		return fmt.Errorf("tree: data without a node: %s", path)
	case len(data) == 0 || int(n.at[inSession]) != len(data):
		return fmt.Errorf("tree: data of %s has %d bytes, its record says %d", path, len(data), n.at[inSession])
	}
	n.at[inSession] = 0
	l.missing--
	l.t.replace(n, clone(data))
	return nil
}

// Tree returns the tree as of zxid. It deletes ephemeral nodes whose session was not added, and returns the changes
// that do so in the store. They have the next zxid, which is the tree's then: a client that has seen zxid must be told
// of them when it sets its watches again. It returns an error if data is missing. The Loader must not be used again.
func (l *Loader) Tree(zxid int64) (*Tree, []Change, error) {
	t := l.t
	if l.missing > 0 {
		return nil, nil, l.errMissing()
	}
	var orphans []*node
	for _, n := range l.indexed {
		switch s := t.owner(n); {
		case n.collected():
			t.collectables.add(n, inSession)
		case s != nil:
			s.nodes.add(n, inSession)
			t.ephemerals++
		default:
			orphans = append(orphans, n)
		}
	}
	if len(orphans) > 0 {
		zxid++
	}
	t.begin(zxid, 0)
	t.recountAll()
	for _, n := range orphans {
		t.remove(n)
	}
	return t, t.finish(nil, wire.OK).Changes, nil
}

func (l *Loader) errMissing() error {
	var first string
	for path, n := range l.t.nodes {
		if n.at[inSession] > 0 && (first == "" || path < first) {
			first = path
		}
	}
	return fmt.Errorf("tree: data is missing for %d nodes, the first is %s", l.missing, first)
}
