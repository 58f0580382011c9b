package line

// What a creation without a reply has done.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// errLost is resolve's answer when the request was lost on its way.
var errLost = errors.New("line: the request was lost")

// A name is that of a node which a creation is to make, up to the number that the server gives it.
type name struct {
	dir    string
	prefix string // only this creation can have chosen it, and no two of its nodes share it (ZOOKEEPER-4695)
	fixed  bool   // the server adds no number
	// signature is in the ACL of the creation's node, if the name does not tell it from others; see Line.Signed.
	signature string
	// made tells the creation's node from another one of that name, by its data; nil if the name alone does.
	made func(data []byte) bool
}

// unusable ends the identity of an ACL entry by which a node is signed: no password gives a connection that identity.
const unusable = ":x"

// sign returns the ACL of the creation's node.
func (n name) sign(acl []zk.ACL) []zk.ACL {
	if n.signature == "" {
		return acl
	}
	if acl == nil {
		acl = zk.OpenACL()
	}
	id := zk.ID{Scheme: "digest", ID: n.signature + unusable}
	return append(slices.Clone(acl), zk.ACL{Perms: zk.PermRead, ID: id})
}

// signed reports whether a node has the creation's signature. Servers show users without their passwords to clients
// that may not administer a node, so the signature is the user's name.
func (n name) signed(ctx context.Context, sess *zk.Session, path string) (bool, error) {
	acl, _, err := sess.GetACL(ctx, path)
	return slices.ContainsFunc(acl, func(a zk.ACL) bool {
		return a.ID.Scheme == "digest" && a.ID.ID == n.signature+unusable
	}), err
}

// An answer waits for the answer to a creation. It may be called again after its ctx ended.
type answer func(ctx context.Context) ([]zk.Created, error)

func (n name) path() string { return join(n.dir, n.prefix) }

// resolve waits for the answer to a creation and returns the nodes that it made. It is the one place that finds out
// whether a creation was applied whose answer is lost: it looks for the nodes behind a barrier.
//
// It returns the server's refusal if nothing was made; ErrGone if another client has deleted some of the nodes, and
// releases the others. It returns errLost if the request was lost: the caller asks again, under other names, because a
// partition may still deliver the lost request; resolve has any node that comes of it removed, in the background.
//
// If ctx ends first it returns ctx's cause and decides nothing. The caller calls it again, or cancelCreation.
func resolve(ctx context.Context, sess *zk.Session, names []name, answer answer) ([]zk.Created, error) {
	nodes, err := answer(ctx)
	switch {
	case err == nil:
		return nodes, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case sess.Err() != nil:
		return nil, sess.Err() // the nodes, if they were made, end with the session
	case zk.OutcomeOf(err) != zk.Unknown:
		return nil, err
	}
	found, findErr := find(ctx, sess, names)
	switch {
	case findErr != nil:
		return nil, findErr
	case len(found) == len(names):
		return found, nil
	case len(found) > 0: // they were made together, so another client has deleted the others
		discard(sess, names, found)
		return nil, ErrGone
	default:
		go sweep(sess, names)
		return nil, errLost
	}
}

// discard removes nodes that were made of names.
func discard(sess *zk.Session, names []name, nodes []zk.Created) {
	own := &Own{sess: sess, shared: names[0].made != nil}
	own.made(nodes)
	own.Release()
}

// cancelCreation removes what a creation has made, or makes later. It takes until the answer is there, or the session's
// end.
func cancelCreation(sess *zk.Session, names []name, answer answer) {
	_, _ = answer(context.Background()) // also if the session ends: a merged release waits for it
	if nodes, err := resolve(sess.Context(), sess, names, answer); err == nil {
		discard(sess, names, nodes)
	}
}

// RemoveCreated removes, in the background, the node that a creation of unknown outcome has made, or makes later. Only
// the caller can have chosen the node's name, and it does not use it again.
func RemoveCreated(sess *zk.Session, dir, prefix string) {
	unknown := func(context.Context) ([]zk.Created, error) { return nil, errLost }
	go cancelCreation(sess, []name{{dir: dir, prefix: prefix}}, unknown)
}

// find looks for the nodes that the session has made of names. It looks behind a barrier: what was on its way when the
// connection broke has been applied by then, or never will be, except in the case that sweep is for.
func find(ctx context.Context, sess *zk.Session, names []name) ([]zk.Created, error) {
	for {
		found, err := findOnce(ctx, sess, names)
		if err == nil {
			return found, nil
		}
		err = AwaitRetry(ctx, sess, err)
		switch {
		case err == nil:
		case ctx.Err() == nil && sess.Err() == nil && zk.OutcomeOf(err) != zk.NotSent && !errors.Is(err, zk.NoAuth):
			// Giving up would leave a node behind. The server may refuse for now, or may have sent an invalid answer,
			// after which the client has closed the connection.
			if err := pause(ctx, sess); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func findOnce(ctx context.Context, sess *zk.Session, names []name) ([]zk.Created, error) {
	candidates, err := list(ctx, sess, names)
	if err != nil {
		return nil, err
	}
	b := sess.Batch()
	seen, data := make([]*zk.Future[zk.Existence], len(candidates)), make([]*zk.Future[zk.Data], len(candidates))
	for i, c := range candidates {
		seen[i] = b.Exists(c.path())
		if c.made != nil { // otherwise it takes no right to read the node
			data[i] = b.Get(c.path())
		}
	}
	b.Send()
	var found []zk.Created
	for i, c := range candidates {
		node, err := seen[i].Get(ctx)
		ours := err == nil && node.Exists && node.Stat.EphemeralOwner == sess.ID()
		if ours && c.made != nil {
			var read zk.Data
			read, err = data[i].Get(ctx)
			ours = err == nil && read.Stat.Czxid == node.Stat.Czxid && c.made(read.Data)
		}
		if ours && c.signature != "" {
			ours, err = c.signed(ctx, sess, c.path())
		}
		switch {
		case err != nil && !errors.Is(err, zk.NoNode):
			return nil, err
		case ours:
			found = append(found, zk.Created{Path: c.path(), Stat: node.Stat})
		}
	}
	return found, nil
}

// list returns the whole names of nodes that may be those of names, as they are now, whatever the server knew before.
func list(ctx context.Context, sess *zk.Session, names []name) ([]name, error) {
	b := sess.Batch()
	passed, listed := Barrier(b, names[0].path()), map[string]*zk.Future[zk.Children]{}
	for _, n := range names {
		if listed[n.dir] == nil && !n.fixed {
			listed[n.dir] = b.Children(n.dir)
		}
	}
	b.Send()
	if err := passed(ctx); err != nil {
		return nil, err
	}
	var whole []name
	for _, n := range names {
		if n.fixed {
			whole = append(whole, n)
			continue
		}
		children, err := listed[n.dir].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		for _, child := range children.Names {
			if strings.HasPrefix(child, n.prefix) {
				whole = append(whole, name{dir: n.dir, prefix: child, signature: n.signature})
			}
		}
	}
	return whole, nil
}

// Barrier adds to b a request that is answered when everything that its session has asked for before was applied or
// never will be, over whichever connection and by whichever server; passed waits for that. What b asks for behind it
// sees all of it. Path is any name of the caller's own.
//
// It is a write without effect: the deletion of a node that no client makes. A session that has moved to a new
// connection is no longer served over the old one, so none of its old requests can still reach the leader, and writes
// are applied in the order in which they reach it. A sync would not do. The leader answers one at once to its own
// clients, as a read, although a write that came by way of another server is still on its way through the quorum
// (ZOOKEEPER-1675).
func Barrier(b *zk.Batch, path string) (passed func(context.Context) error) {
	done := b.Delete(path+"-none", -1)
	return func(ctx context.Context) error {
		_, err := done.Get(ctx)
		if errors.Is(err, zk.NoNode) || errors.Is(err, zk.NoAuth) { // the reads behind it find out which of the two
			return nil
		}
		return err
	}
}

// sweep removes nodes that a lost creation makes after find has found none. That takes a partition. The creation is
// held up between a follower and its leader; the client tries in vain to come back to that follower, and goes on with
// another server. When the link heals, the creation and the attempt arrive together, and the leader may take the
// attempt for a return before it checks whether the creation still counts
// (TestCreationMayBeDoneAfterALaterWriteOfItsSession).
//
// A link that stays silent for longer than a server bears (syncLimit) is closed, and what it held is lost. The last
// look is after fifteen session timeouts. Sweep returns then, or when it has found a node, or when the session ends,
// which takes the nodes along.
func sweep(sess *zk.Session, names []name) {
	for wait := sess.Timeout(); wait <= 8*sess.Timeout(); wait *= 2 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sess.Context().Done():
			timer.Stop()
			return
		}
		nodes, err := find(sess.Context(), sess, names)
		if len(nodes) > 0 {
			discard(sess, names, nodes)
		}
		if err != nil || len(nodes) > 0 {
			return
		}
	}
}
