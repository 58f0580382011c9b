package member

// The goroutine that keeps a node in place. It is the only one that creates the node, so nothing is done twice
// (CURATOR-209).

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// keeper keeps a Node's node.
type keeper struct {
	node  *Node
	named bool // the path has its number, if it is to have one

	// Under the session that is followed:
	unsure bool // a creation of unknown outcome may still make the node
	stat   zk.Stat
	have   bool // stat is that of our node
	set    int  // the number of the data that it has from us
}

func (k *keeper) run() {
	n := k.node
	k.named = n.cfg.Mode != EphemeralSequential
	for n.ctx.Err() == nil {
		sess, err := n.client.Session(n.ctx)
		if err != nil {
			if n.ctx.Err() == nil {
				n.report(0, err) // the client is closed, and so are its sessions
				n.stop(err)
			}
			return
		}
		k.unsure, k.have, k.set = false, false, 0
		k.follow(sess)
		if n.ctx.Err() != nil {
			k.leave(sess)
			return
		}
		n.report(0, nil)
	}
}

// follow keeps the node in place until the session or the Node ends.
func (k *keeper) follow(sess *zk.Session) {
	n := k.node
	// The session's server may lag behind the one that was asked before.
	if err := sess.Sync(n.ctx, n.Path()); err != nil && !k.retry(sess, err) {
		k.refused(sess, nil, err)
	}
	for n.ctx.Err() == nil && sess.Context().Err() == nil {
		watch, err := k.place(sess)
		switch {
		case err == nil && watch == nil: // something has changed meanwhile
		case err == nil:
			k.await(sess, watch)
		case k.retry(sess, err):
		default:
			k.refused(sess, watch, err)
		}
		if watch != nil {
			watch.Close()
		}
	}
}

// retry waits and returns true if the same may be asked again after err.
func (k *keeper) retry(sess *zk.Session, err error) bool {
	return line.Transient(err) && line.AwaitRetry(k.node.ctx, sess, err) == nil
}

// refused waits after a refusal until it makes sense to try again: under the next session, with the next Set, or when
// what is there changes.
func (k *keeper) refused(sess *zk.Session, watch *zk.Watch, err error) {
	if k.node.ctx.Err() != nil || sess.Context().Err() != nil {
		return
	}
	k.node.report(0, err)
	k.await(sess, watch)
}

// await waits until the node or the data to have changes, or the session or the Node ends.
func (k *keeper) await(sess *zk.Session, watch *zk.Watch) {
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
	case <-sess.Context().Done():
	case <-k.node.ctx.Done():
	}
}

// place looks for the node, creates it if there is none, and sets its data if it has not the latest of ours. When all
// is well it returns a watch, under which it has looked. With an error it may return one, too: nothing can be done
// before the watch fires.
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
		if k.foreign(stat) {
			n.report(0, nil) // an ephemeral node of another session: it goes when that ends
			k.await(sess, watch)
			return watch, nil
		}
		return watch, ErrTaken
	}
	if !k.have || k.stat.Czxid != stat.Czxid {
		k.have, k.set = true, 0 // adopted, or created again by a request that came late
	}
	k.stat = stat
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
	if k.node.cfg.Mode == Persistent {
		return stat.EphemeralOwner == 0
	}
	return stat.EphemeralOwner == sess.ID()
}

// foreign reports whether an ephemeral node of another session stands where ours is to stand.
func (k *keeper) foreign(stat zk.Stat) bool {
	return k.node.cfg.Mode != Persistent && stat.EphemeralOwner != 0
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
	want, number := n.latest()
	node := zk.Node{Path: n.Path(), Data: want, Mode: k.mode(), ACL: n.cfg.ACL}
	created, err := sess.CreateNode(n.ctx, node)
	switch {
	case err == nil:
		k.stat, k.have, k.set = created.Stat, true, number
		return nil
	case errors.Is(err, zk.NodeExists):
		return nil
	case errors.Is(err, zk.NoNode):
		return n.line.MakeDir(n.ctx, sess)
	case zk.OutcomeOf(err) == zk.Unknown:
		k.unsure = true
	}
	return err
}

func (k *keeper) mode() zk.Mode {
	switch {
	case k.node.cfg.TTL > 0:
		return zk.Container
	case k.node.cfg.Mode == Persistent:
		return zk.Persistent
	default:
		return zk.Ephemeral
	}
}

// createNumbered creates the node for the first time, under a name with a number. The name begins with a random
// identifier, by which the node is found after a lost reply; one that is made after that is removed. Curator recognises
// the form as its own (CURATOR-190).
func (k *keeper) createNumbered(sess *zk.Session) error {
	n := k.node
	dir, base := path.Split(n.Path())
	dir = strings.TrimSuffix(dir, "/")
	want, number := n.latest()
	prefix := "_c_" + line.NewGUID() + "-" + base
	created, err := sess.CreateNode(n.ctx, zk.Node{
		Path: dir + "/" + prefix, Data: want, Mode: zk.EphemeralSequential, ACL: n.cfg.ACL,
	})
	switch {
	case err == nil:
		n.named(created.Path)
		k.named, k.have, k.stat, k.set = true, true, created.Stat, number
		return nil
	case errors.Is(err, zk.NoNode):
		return n.line.MakeDir(n.ctx, sess)
	case zk.OutcomeOf(err) == zk.Unknown:
		// Another name is used for the next attempt, so that what becomes of this one does not matter.
		line.RemoveCreated(sess, n.line.Dir, prefix)
	}
	return err
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
		_, err = sess.CreateNode(n.ctx, zk.Node{Path: p, Mode: zk.PersistentTTL, TTL: n.cfg.TTL, ACL: n.cfg.ACL})
	}
	if errors.Is(err, zk.NodeExists) || errors.Is(err, zk.NoNode) {
		return nil // the next touch sets it; or the node itself has gone, which the watch tells
	}
	return err
}

// leave removes the node under the session. It repeats that until it is done or the session has ended.
func (k *keeper) leave(sess *zk.Session) {
	n := k.node
	n.mu.Lock()
	stays := n.stays
	n.mu.Unlock()
	if stays || n.cfg.TTL > 0 || !k.have && !k.unsure {
		n.report(0, ErrClosed)
		return
	}
	for {
		err := k.remove(sess)
		switch {
		case err == nil:
			n.report(0, ErrClosed)
			if k.unsure && n.cfg.Mode != Persistent {
				go sweep(sess, n.Path())
			}
			return
		case sess.Context().Err() != nil:
			if n.cfg.Mode != Persistent {
				n.report(0, ErrClosed)
				return // it went with the session
			}
			if sess, err = n.client.Session(context.Background()); err != nil {
				n.report(0, err)
				return
			}
		case line.Transient(err), zk.OutcomeOf(err) == zk.Unknown:
			_ = line.AwaitRetry(sess.Context(), sess, err)
		default:
			n.report(0, err)
			return
		}
	}
}

// remove deletes the node if it is ours. It looks behind a barrier: a creation that was on its way is over by then.
func (k *keeper) remove(sess *zk.Session) error {
	ctx, p := sess.Context(), k.node.Path()
	b := sess.Batch()
	passed := line.Barrier(b, p)
	look := b.Get(p)
	b.Send()
	if err := passed(ctx); err != nil {
		look.Abandon()
		return err
	}
	seen, err := look.Get(ctx)
	if err == nil && k.ours(sess, seen.Stat) && (k.node.cfg.Mode != Persistent || k.made(seen)) {
		err = sess.Delete(ctx, p, seen.Stat.Version)
	}
	switch {
	case errors.Is(err, zk.NoNode):
		return nil
	case errors.Is(err, zk.BadVersion): // set meanwhile
		return k.remove(sess)
	}
	return err
}

// made reports whether a persistent node is the one that was kept, or that a creation of unknown outcome has made.
func (k *keeper) made(seen zk.Data) bool {
	if k.have {
		return seen.Stat.Czxid == k.stat.Czxid
	}
	want, _ := k.node.latest()
	return seen.Stat.Version == 0 && bytes.Equal(seen.Data, want)
}

// sweep removes a node that a lost creation of the session makes after its Node was closed. That takes a partition; see
// sweep in internal/line, which does the same for nodes whose names are used once. A Node that this client has made
// meanwhile at the same path creates its node again.
func sweep(sess *zk.Session, p string) {
	k := &keeper{node: &Node{path: p}}
	for wait := sess.Timeout(); wait <= 8*sess.Timeout(); wait *= 2 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sess.Context().Done():
			timer.Stop()
			return
		}
		_ = k.remove(sess) // the next look tries again
	}
}
