package member

// The goroutine that keeps a node in place. It is the only one that creates the node, so nothing is done twice
// (CURATOR-209).

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// keeper keeps a Node's node.
type keeper struct {
	node    *Node
	named   bool // the path has its number, if it is to have one
	refused int  // refusals since the node was last in order

	// Under the session that is followed, or under any if the mode is lasting:
	sent    int    // creations
	unsure  bool   // one of them, of unknown outcome, may still make the node
	written []byte // the data of that creation
	left    bool   // the Node has ended, and its node is gone
	guess   string // the path that the node has without its number, after a numbered creation of unknown outcome
	stat    zk.Stat
	have    bool  // stat is that of our node
	birth   int64 // the czxid of the node that this keeper has made last
	secured int64 // the czxid of a node that may have been a container, and that servers do not remove any more
	set     int   // the number of the data that it has from us
}

func (k *keeper) run() {
	n := k.node
	defer n.shared.release()
	n.shared.begin(n.ctx)
	k.named = !n.cfg.Mode.numbered()
	sess := k.keep()
	n.shared.close()
	if sess != nil {
		k.leave(sess)
	}
}

// keep follows the client's sessions. When the Node ends it returns a session under which to remove the node, or nil if
// there is nothing to remove.
func (k *keeper) keep() *zk.Session {
	n := k.node
	for n.ctx.Err() == nil {
		sess, err := n.client.Session(n.ctx)
		if err != nil && n.ctx.Err() == nil {
			n.report(0, err) // the client is closed, and so are its sessions
			n.stop(err)
			return nil
		}
		if err != nil {
			break
		}
		if !n.cfg.Mode.lasting() {
			k.sent, k.unsure, k.guess, k.have, k.set = 0, false, "", false, 0
		}
		k.follow(sess)
		if n.ctx.Err() != nil {
			return sess
		}
		n.report(0, nil)
	}
	if !n.cfg.Mode.lasting() || !k.leftover() {
		return nil
	}
	// What an ended session has made is removed under the next one.
	sess, err := n.client.Session(context.Background())
	if err != nil {
		n.report(0, err)
		return nil
	}
	return sess
}

// follow keeps the node in place until the session or the Node ends.
func (k *keeper) follow(sess *zk.Session) {
	n := k.node
	// The session's server may lag behind the one that was asked before.
	if err := sess.Sync(n.ctx, n.Path()); err != nil && !k.retry(sess, err) {
		k.pause(sess, nil, err)
	}
	for n.ctx.Err() == nil && sess.Context().Err() == nil {
		watch, err := k.place(sess)
		switch {
		case err == nil && watch == nil: // something has changed meanwhile
		case err == nil:
			k.refused = 0
			k.await(sess, watch, nil)
		case k.retry(sess, err):
		default:
			k.pause(sess, watch, err)
		}
		if watch != nil {
			watch.Close()
		}
	}
}

// retry waits and returns true if the same may be asked again after err.
func (k *keeper) retry(sess *zk.Session, err error) bool {
	return attempt.Again(k.node.ctx, sess, err) == nil
}

// pause waits after a refusal until it makes sense to try again: under the next session, with the next Set, when what
// is there changes, and after a while, as a right that is given back shows in no watch.
func (k *keeper) pause(sess *zk.Session, watch *zk.Watch, err error) {
	n := k.node
	if n.ctx.Err() != nil || sess.Context().Err() != nil {
		return
	}
	n.report(0, err)
	k.await(sess, watch, time.After(attempt.PauseTime(k.refused)))
	k.refused++
}

// await waits until the node or the data to have changes, over fires, or the session or the Node ends.
func (k *keeper) await(sess *zk.Session, watch *zk.Watch, over <-chan time.Time) {
	fired := make(chan struct{})
	if watch != nil {
		watch.AfterFunc(func() { close(fired) })
	}
	var touch <-chan time.Time
	if ttl := k.node.cfg.TTL; ttl > 0 {
		timer := time.NewTimer(ttl / 2)
		defer timer.Stop()
		touch = timer.C
	}
	select {
	case <-fired:
	case <-touch:
	case <-k.node.kick:
	case <-over:
	case <-sess.Context().Done():
	case <-k.node.ctx.Done():
	}
}

// place looks for the node, creates it if there is none, and sets its data if it has not the latest of ours. When all
// is well, or nothing can be done before the node changes, it returns a watch, under which it has looked. With an error
// it may return one, too.
func (k *keeper) place(sess *zk.Session) (*zk.Watch, error) {
	n := k.node
	if !k.named {
		return nil, k.createNumbered(sess)
	}
	data, stat, watch, err := sess.GetW(n.ctx, n.Path())
	if errors.Is(err, zk.NoNode) {
		k.have = false
		n.report(0, nil)
		return nil, k.create(sess)
	}
	if err != nil {
		return nil, err
	}
	if !k.ours(sess, stat) {
		k.have = false
		var taken error // an ephemeral node of another session goes when that ends
		if !k.foreign(stat) {
			taken = ErrTaken
		}
		n.report(0, taken)
		return watch, nil
	}
	if err := n.access.Check(n.ctx, sess, n.Path()); err != nil {
		return watch, err
	}
	if k.unsure && k.sent == 1 && k.made(zk.Data{Data: data, Stat: stat}) {
		k.unsure = false // that is what it has made
	}
	if !k.have || k.stat.Czxid != stat.Czxid {
		k.have, k.set = true, 0 // adopted, or created again by a request that came late
	}
	k.stat = stat
	// A directory of another recipe's holds no data. What has some, and has had no child, may be Curator's, which
	// cannot remove a node with a child.
	directory := stat.Cversion != 0 || len(data) == 0 && stat.Czxid != k.birth
	if n.cfg.Mode.lasting() && n.cfg.TTL == 0 && directory && k.secured != stat.Czxid {
		if err := attempt.Secure(n.ctx, sess, n.Path(), n.cfg.ACL); err != nil && !errors.Is(err, zk.NoNode) {
			return watch, err
		}
		k.secured = stat.Czxid
	}
	want, number := n.latest()
	if k.set != number {
		if bytes.Equal(data, want) {
			k.set = number
		} else {
			watch.Close()
			return nil, k.update(sess, want, number)
		}
	}
	if err := k.touch(sess); err != nil {
		return watch, err
	}
	n.report(number, nil)
	return watch, nil
}

// ours reports whether a node may be kept by us: it is of this session, or it belongs to none and is to.
func (k *keeper) ours(sess *zk.Session, stat zk.Stat) bool {
	if k.node.cfg.Mode.lasting() {
		return stat.EphemeralOwner == 0
	}
	return stat.EphemeralOwner == sess.ID()
}

// foreign reports whether an ephemeral node of another session stands where ours is to stand.
func (k *keeper) foreign(stat zk.Stat) bool {
	return !k.node.cfg.Mode.lasting() && stat.EphemeralOwner != 0
}

// update sets the data, unless it has been set since it was read. If the reply is lost, the next look finds out. A set
// that comes late is refused, because its version is out of date, or it came before ours, which is refused then and
// tried again (CURATOR-154).
func (k *keeper) update(sess *zk.Session, want []byte, number int) error {
	stat, err := sess.Set(k.node.ctx, k.node.Path(), want, k.stat.Version)
	switch {
	case err == nil:
		k.stat, k.set = stat, number
		return nil
	case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NoNode):
		return nil
	}
	return err
}

// create creates the node. Its name is fixed and its owner tells whose it is, so what became of a request whose reply
// is lost need not be known: the next look finds the node, or creates it.
func (k *keeper) create(sess *zk.Session) error {
	n := k.node
	if err := n.access.Check(n.ctx, sess, n.Path()); err != nil {
		return err
	}
	want, number := n.latest()
	node := zk.Node{Path: n.Path(), Data: want, Mode: k.mode(), ACL: n.cfg.ACL}
	k.sent++
	var created zk.Created
	var err error
	if n.cfg.TTL > 0 {
		// Together, because servers never remove a container that has had no child.
		_, err = sess.Multi(n.ctx, zk.CreateNodeOp(node), zk.CreateNodeOp(k.touched()))
	} else {
		created, err = sess.CreateNode(n.ctx, node)
	}
	switch {
	case err == nil:
		k.stat, k.have, k.set = created.Stat, n.cfg.TTL == 0, number // the next look reads what it lacks
		k.birth = created.Stat.Czxid
		return nil
	case errors.Is(err, zk.NodeExists):
		return nil
	case errors.Is(err, zk.NoNode):
		return n.makeParents(sess)
	case zk.OutcomeOf(err) == zk.Unknown:
		k.unsure, k.written = true, want
	}
	return err
}

func (k *keeper) mode() zk.Mode {
	switch {
	case k.node.cfg.TTL > 0:
		return zk.Container
	case k.node.cfg.Mode.lasting():
		return zk.Persistent
	default:
		return zk.Ephemeral
	}
}

// touchName is the child that keeps a node with a TTL alive. Watchers of the node itself do not see it set.
const touchName = "/touch"

// touch sets the child of a node with a TTL.
func (k *keeper) touch(sess *zk.Session) error {
	n := k.node
	if n.cfg.TTL == 0 {
		return nil
	}
	p := n.Path() + touchName
	_, err := sess.Set(n.ctx, p, nil, -1)
	if errors.Is(err, zk.NoNode) {
		_, err = sess.CreateNode(n.ctx, k.touched())
	}
	if errors.Is(err, zk.NodeExists) || errors.Is(err, zk.NoNode) {
		return nil // the next touch sets it; or the node itself has gone, which the watch tells
	}
	return err
}

// touched is the child of a node with a TTL.
func (k *keeper) touched() zk.Node {
	n := k.node
	return zk.Node{Path: n.Path() + touchName, Mode: zk.PersistentTTL, TTL: n.cfg.TTL, ACL: n.cfg.ACL}
}
