package cache

// Tree, Children and Node.

import (
	"iter"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Tree is a cache of a node and all nodes below it. Its methods may be called from several goroutines at once.
type Tree struct{ *follower }

// OpenTree returns a cache of the tree at path and begins to read it, in the background and under one session after
// another, until Close. The path need not exist, may vanish, and may be created again. OpenTree returns an error if the
// path or the configuration is invalid; it does not wait: see WaitSynced.
//
// Nodes that the client may not read are left out, with all that is below them, until they change. So is what changes
// below them.
func OpenTree(client *zk.Client, path string, cfg Config) (*Tree, error) {
	depth := everything
	if cfg.MaxDepth > 0 {
		depth = cfg.MaxDepth
	}
	f, err := follow(client, path, depth, cfg)
	if err != nil {
		return nil, err
	}
	return &Tree{f}, nil
}

// Get returns the state of a node, as View().Get does.
func (t *Tree) Get(path string) (Entry, bool) { return t.View().Get(path) }

// Children yields the children of a node, as View().Children does.
func (t *Tree) Children(path string) iter.Seq[Entry] { return t.View().Children(path) }

// All yields all nodes of the current version, as View().All does.
func (t *Tree) All() iter.Seq[Entry] { return t.View().All() }

// Children is a cache of a node and its children. Its methods may be called from several goroutines at once.
type Children struct{ *follower }

// OpenChildren returns a cache of the children of path, as OpenTree does of a tree. The node at path is part of its
// View and of its Changes.
func OpenChildren(client *zk.Client, path string, cfg Config) (*Children, error) {
	f, err := follow(client, path, 1, cfg)
	if err != nil {
		return nil, err
	}
	return &Children{f}, nil
}

// Get returns the state of the child with the given name. It returns false if there is none.
func (c *Children) Get(name string) (Entry, bool) {
	if name == "" { // it would stand for the parent
		return Entry{}, false
	}
	return c.View().Get(join(c.root, name))
}

// All yields the children, ordered by name.
func (c *Children) All() iter.Seq[Entry] { return c.View().Children(c.root) }

// Node is a cache of one node. Its methods may be called from several goroutines at once.
type Node struct{ *follower }

// OpenNode returns a cache of the node at path, as OpenTree does of a tree.
func OpenNode(client *zk.Client, path string, cfg Config) (*Node, error) {
	f, err := follow(client, path, 0, cfg)
	if err != nil {
		return nil, err
	}
	return &Node{f}, nil
}

// Get returns the state of the node. It returns false if it does not exist.
func (n *Node) Get() (Entry, bool) { return n.View().Get(n.root) }
