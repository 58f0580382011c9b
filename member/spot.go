package member

// Nodes of one client at one path do not remove each other's node.

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A spot is where Nodes of one client keep the same node, because they have the same path, lifetime and access. One
// that is closed leaves the node to the others. One that begins while the node is being removed waits for that. Without
// this, a member that leaves a group and joins it again at once would be seen, vanish and come back.
//
// Nodes of other clients are told apart by their session, so a spot needs no more than this process.
type spot struct {
	of   spotKey
	turn chan struct{} // one slot: taken while the node is being removed

	open int // Nodes that are not closed; guarded by spots
	refs int // those, and goroutines that still clean up; guarded by spots
}

type spotKey struct {
	client  *zk.Client
	path    string
	lasting bool
	acl     string
}

// spots are those in use.
var spots struct {
	sync.Mutex // guards at, and the counts of each spot

	at map[spotKey]*spot
}

// spotOf returns the spot of a new Node, which closes and releases it. A Node whose name the server chooses has one of
// its own.
func spotOf(client *zk.Client, path string, cfg NodeConfig) *spot {
	of := spotKey{client: client, path: path, lasting: cfg.Mode.lasting(), acl: fmt.Sprint(cfg.ACL)}
	if cfg.Mode.numbered() {
		return &spot{turn: make(chan struct{}, 1), open: 1, refs: 1}
	}
	spots.Lock()
	defer spots.Unlock()
	s := spots.at[of]
	if s == nil {
		if spots.at == nil {
			spots.at = make(map[spotKey]*spot)
		}
		s = &spot{of: of, turn: make(chan struct{}, 1)}
		spots.at[of] = s
	}
	s.open++
	s.refs++
	return s
}

// begin waits until a removal that has begun before is over, or ctx ends.
func (s *spot) begin(ctx context.Context) {
	select {
	case s.turn <- struct{}{}:
		<-s.turn
	case <-ctx.Done():
	}
}

// close says that a Node does not keep the node any more.
func (s *spot) close() {
	spots.Lock()
	defer spots.Unlock()
	s.open--
}

// retain says that a goroutine will go on to clean up.
func (s *spot) retain() {
	spots.Lock()
	defer spots.Unlock()
	s.refs++
}

// release is the last call of a Node, and of each goroutine that cleans up.
func (s *spot) release() {
	spots.Lock()
	defer spots.Unlock()
	if s.refs--; s.refs == 0 && spots.at[s.of] == s {
		delete(spots.at, s.of)
	}
}

// remove calls f, which removes the node, unless another Node keeps it. None begins to meanwhile.
func (s *spot) remove(f func() error) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	spots.Lock()
	kept := s.open > 0
	spots.Unlock()
	if kept {
		return nil
	}
	return f()
}
