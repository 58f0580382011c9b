package line

// A contender of ours.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// ErrGone says that another client deleted a node of ours: the session lives, but our turn in the line is lost.
var ErrGone = attempt.ErrGone

// An Own is a contender of ours: one or more nodes under one session, made in one transaction and removed in one. It
// has a position in each line that it waits in. It ends with Release, or with its session.
//
// One goroutine at a time may use it, except that Release may interrupt Watch.
type Own struct {
	sess      *zk.Session
	watcher   *watcher    // of the line that it was made for
	nodes     []*node     // in the order of the lines
	positions []*position // empty for nodes that wait for nothing: permits, and the node lock's
	shared    bool        // its one node has a name that nodes of other contenders have, too, or had, or will have

	firstAt time.Time // when Await has ended well; it is written before anybody else knows the contender

	mu       sync.Mutex // guards released and the watches of the nodes; never held while anything is waited for
	released bool
}

// A node is one of a contender's nodes.
type node struct {
	path string
	stat zk.Stat   // as the server told it with the creation; without times if the server is old
	own  *zk.Watch // the own-node watch; nil while there is none
	// changed says that the node was changed before own was set, and its data not looked at: an event told of it, or
	// the version that was read with the watch, as every write raises it.
	changed bool
}

// made says which nodes were made. Positions take theirs in order.
func (o *Own) made(nodes []zk.Created) {
	o.nodes = make([]*node, len(nodes))
	for i, n := range nodes {
		o.nodes[i] = &node{path: n.Path, stat: n.Stat}
	}
	rest := o.nodes
	for _, p := range o.positions {
		p.nodes, rest = rest[:p.line.width()], rest[p.line.width():]
	}
}

// Path returns the path of the first node.
func (o *Own) Path() string { return o.nodes[0].path }

// Paths returns the paths of the nodes, in the order of their lines.
func (o *Own) Paths() []string { return paths(o.nodes) }

func paths(nodes []*node) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.path
	}
	return list
}

// Stat returns what the server told about the first node when it was made. Its Czxid is that of all.
func (o *Own) Stat() zk.Stat { return o.nodes[0].stat }

// Session returns the session that the nodes belong to.
func (o *Own) Session() *zk.Session { return o.sess }

// First reports whether the contender was first in all of its lines when these were last listed.
func (o *Own) First() bool {
	for _, p := range o.positions {
		if p.ahead > 0 {
			return false
		}
	}
	return true
}

// Self returns our contender in the first line.
func (o *Own) Self() Contender { return o.positions[0].self }

// FirstAt returns when the contender came to be first in its lines, the zero time if it waits in none.
func (o *Own) FirstAt() time.Time { return o.firstAt }

// Certify returns nil if the session is certain to live and the nodes are there. Otherwise it releases them and returns
// why: ErrGone if one of them is missing.
//
// Without that, a client whose server is cut off from the others would believe that it owns what another client has.
func (o *Own) Certify(ctx context.Context) error {
	err := o.sess.Certify(ctx, o.Paths()...)
	if err == nil && o.shared && len(o.positions) > 0 {
		// What has let us believe that we are first, a list of the line or the proof above, knows names alone. They may
		// be another contender's, if our node was deleted, and the line with it, and was made again: then numbers begin
		// anew. A node stands from its creation until its deletion. So if ours stands now, it stood then, and as there
		// is no number twice while it stands, it was first. A NodeLock's node was the answer to its creation instead.
		err = o.check(ctx)
	}
	if err == nil {
		return nil
	}
	o.Release()
	if errors.Is(err, zk.NoNode) {
		return ErrGone
	}
	return err
}

// check returns ErrGone unless all of the nodes are there.
func (o *Own) check(ctx context.Context) error {
	_, err := attempt.Ask(ctx, o.sess, func() (none struct{}, err error) {
		b := o.sess.Batch()
		seen := make([]*zk.Future[zk.Existence], len(o.nodes))
		for i, n := range o.nodes {
			seen[i] = b.Exists(n.path)
		}
		b.Send()
		for i, n := range o.nodes {
			e, err := seen[i].Get(ctx)
			if err != nil {
				return none, err
			}
			if !e.Exists || e.Stat.Czxid != n.stat.Czxid {
				return none, ErrGone
			}
		}
		return none, nil
	})
	return err
}

// watch adds a watch on the node to b, unless there is one.
func (o *Own) watch(b *zk.Batch, n *node) *zk.Future[zk.WatchedData] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.own != nil || o.released {
		return nil
	}
	return b.GetW(n.path)
}

// watched waits for the answer to watch and keeps the watch. It returns ErrGone if the node does not exist.
func (o *Own) watched(ctx context.Context, n *node, f *zk.Future[zk.WatchedData]) error {
	if f == nil {
		return nil
	}
	w, err := f.Get(ctx)
	switch {
	case errors.Is(err, zk.NoNode):
		return ErrGone
	case err != nil:
		f.Abandon()
		return err
	}
	o.mu.Lock()
	keep := !o.released
	// Where the server did not tell how the node was made, the name is ours alone.
	another := n.stat.Czxid != 0 && w.Stat.Czxid != n.stat.Czxid
	if keep && !another {
		n.own, n.changed = w.Watch, n.changed || w.Stat.Version > 0
	}
	o.mu.Unlock()
	switch {
	case another:
		w.Watch.Close()
		return ErrGone
	case !keep:
		w.Watch.Close()
	}
	return nil
}

// touched reports whether the node was changed or deleted since its watch was set, or is not watched. A watch that has
// fired is dropped.
func (o *Own) touched(n *node) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.own == nil {
		return true
	}
	if _, fired := n.own.Poll(); !fired {
		return false
	}
	n.own, n.changed = nil, true
	return true
}

// onEvent arranges that f is called, on a goroutine of its own, when one of our nodes changes. It reports false if none
// of them is watched. A watch that was set while we waited costs nothing more. It reports at once if another client
// deletes our node in one transaction with the one ahead, whose event came first.
func (o *Own) onEvent(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.nodes[0]
	switch {
	case first.own == nil || o.released:
		return false
	case first.changed || len(o.nodes) > 1: // there is data to read, or another node to watch
		go f()
	default:
		first.own.AfterFunc(f)
	}
	return true
}

// Watch blocks until another client deletes a node of ours and then returns ErrGone. It returns ctx's cause or the
// session's error if that comes first. If changed is not nil, Watch calls it with a node's data after each change, and
// with the data that it finds first, unless the node was watched already. Calls for several nodes may come at a time.
func (o *Own) Watch(ctx context.Context, changed func(data []byte)) error {
	if len(o.nodes) == 1 {
		return o.watchNode(ctx, o.nodes[0], changed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(o.nodes))
	for _, n := range o.nodes {
		go func() { first <- o.watchNode(ctx, n, changed) }()
	}
	return <-first
}

func (o *Own) watchNode(ctx context.Context, n *node, changed func(data []byte)) error {
	o.mu.Lock()
	var unread *zk.Watch
	if n.changed && changed != nil {
		unread, n.own, n.changed = n.own, nil, false
	}
	o.mu.Unlock()
	if unread != nil {
		unread.Close()
	}
	for {
		b := o.sess.Batch()
		if f := o.watch(b, n); f != nil {
			b.Send()
			if err := o.watched(ctx, n, f); err != nil {
				if err := attempt.Again(ctx, o.sess, err); err != nil {
					return err
				}
				continue
			}
			if w, err := f.Get(ctx); err == nil && changed != nil {
				changed(w.Data)
			}
		}
		o.mu.Lock()
		n.changed = false // from here on changed hears of it
		own, released := n.own, o.released
		o.mu.Unlock()
		if released || own == nil {
			return context.Cause(ctx)
		}
		ev, err := own.Next(ctx)
		if err != nil {
			return err
		}
		if ev.Type == zk.EventDeleted {
			return ErrGone
		}
		o.mu.Lock()
		n.own = nil // it has fired
		o.mu.Unlock()
	}
}

// takeWatches ends the own-node watches, for good if the nodes are released, and returns them for the caller to close.
func (o *Own) takeWatches(released bool) []*zk.Watch {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.released = o.released || released
	var watches []*zk.Watch
	for _, n := range o.nodes {
		if n.own != nil {
			watches = append(watches, n.own)
			n.own = nil
		}
	}
	return watches
}

func closeAll(watches []*zk.Watch) {
	for _, w := range watches {
		w.Close()
	}
}

// Release gives the contender up. Its nodes are deleted in one transaction, together with the creation of the line's
// next contender if that comes right behind (see pendingRelease). The removal is repeated in the background until it is
// done or the session has ended. Releasing twice is releasing once.
//
// A node whose name others use is looked at before it is deleted, so that is no part of another write, and what the
// session is asked next may come before it.
func (o *Own) Release() *attempt.Removal {
	for _, p := range o.positions {
		p.cancelPrefetch()
	}
	watches := o.takeWatches(true)
	if len(o.positions) == 1 && o.positions[0].mark == "" && !o.shared {
		return o.positions[0].line.release(o, watches)
	}
	closeAll(watches) // before the removal, or the server would send an event for our own deletion
	switch {
	case o.shared:
		return attempt.RemoveMade(o.sess, o.nodes[0].path, o.nodes[0].stat.Czxid)
	case len(o.positions) > 0 && o.positions[0].mark != "": // either all positions have one, or none
		return o.releaseMarked()
	default:
		return attempt.Remove(o.sess, o.Paths()...)
	}
}

// Abandon is Release for a contender whose holder has not released it: its marks stay.
func (o *Own) Abandon() *attempt.Removal {
	if len(o.positions) == 0 || o.positions[0].mark == "" {
		return o.Release()
	}
	closeAll(o.takeWatches(true))
	return attempt.Remove(o.sess, o.Paths()...)
}

func (o *Own) String() string { return fmt.Sprintf("%v", o.Paths()) }
