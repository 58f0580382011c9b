package member

// Nodes of one client at one path do not remove each other's node.

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A sharedNode is a node that Nodes of one client keep, because they have the same path, lifetime and access. One that
// is closed leaves the node to the others. One that begins while the node is being removed waits for that. Without
// this, a member that leaves a group and joins it again at once would be seen, vanish and come back.
//
// Nodes of other clients are told apart by their session, so a sharedNode needs no more than this process.
type sharedNode struct {
	of   sharedKey
	turn chan struct{} // one slot: taken while the node is being removed

	open int // Nodes that are not closed; guarded by sharedNodes
	refs int // those, and goroutines that still clean up; guarded by sharedNodes
}

type sharedKey struct {
	client  *zk.Client
	path    string
	lasting bool
	acl     string
}

// sharedNodes are those in use.
var sharedNodes struct {
	sync.Mutex // guards at, and the counts of each node

	at map[sharedKey]*sharedNode
}

// shareNode returns the sharedNode of a new Node, which closes and releases it. A Node whose name the server completes
// has one of its own.
func shareNode(client *zk.Client, path string, cfg NodeConfig) *sharedNode {
	of := sharedKey{client: client, path: path, lasting: cfg.Mode.lasting(), acl: fmt.Sprint(cfg.ACL)}
	if cfg.Mode.numbered() {
		return &sharedNode{turn: make(chan struct{}, 1), open: 1, refs: 1}
	}
	sharedNodes.Lock()
	defer sharedNodes.Unlock()
	s := sharedNodes.at[of]
	if s == nil {
		if sharedNodes.at == nil {
			sharedNodes.at = make(map[sharedKey]*sharedNode)
		}
		s = &sharedNode{of: of, turn: make(chan struct{}, 1)}
		sharedNodes.at[of] = s
	}
	s.open++
	s.refs++
	return s
}

// begin waits until a removal that has begun before is over, or ctx ends.
func (s *sharedNode) begin(ctx context.Context) {
	select {
	case s.turn <- struct{}{}:
		<-s.turn
	case <-ctx.Done():
	}
}

// close says that a Node does not keep the node any more.
func (s *sharedNode) close() {
	sharedNodes.Lock()
	defer sharedNodes.Unlock()
	s.open--
}

// retain says that a goroutine will go on to clean up.
func (s *sharedNode) retain() {
	sharedNodes.Lock()
	defer sharedNodes.Unlock()
	s.refs++
}

// release is the last call of a Node, and of each goroutine that cleans up.
func (s *sharedNode) release() {
	sharedNodes.Lock()
	defer sharedNodes.Unlock()
	if s.refs--; s.refs == 0 && sharedNodes.at[s.of] == s {
		delete(sharedNodes.at, s.of)
	}
}

// remove calls f, which removes the node, unless another Node keeps it. None begins to meanwhile.
func (s *sharedNode) remove(f func() error) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	sharedNodes.Lock()
	kept := s.open > 0
	sharedNodes.Unlock()
	if kept {
		return nil
	}
	return f()
}
