package attempt

// What a creation without a reply has done.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// ErrLost is Creation.Resolve's answer when the request was lost on its way: the caller asks again, under other names.
var ErrLost = errors.New("the request was lost")

// A Name is that of a node which a creation is to make, up to the number that the server gives it.
type Name struct {
	Dir    string
	Prefix string // only this creation can have chosen it, and no two of its nodes share it (ZOOKEEPER-4695)
	Fixed  bool   // the server adds no number
	// Signature is in the ACL of the creation's node, if the name does not tell it from others; see Sign.
	Signature string
	// Made tells the creation's node from another one of that name, by its data; nil if the name alone does.
	Made func(data []byte) bool
}

// Path returns the node's path, up to the number.
func (n Name) Path() string { return Join(n.Dir, n.Prefix) }

// unusable ends the identity of an ACL entry by which a node is signed: no password gives a connection that identity.
const unusable = ":x"

// Sign returns the ACL of the creation's node: acl, with an entry for a user that cannot log in if there is a
// Signature.
func (n Name) Sign(acl []zk.ACL) []zk.ACL {
	if n.Signature == "" {
		return acl
	}
	if acl == nil {
		acl = zk.OpenACL()
	}
	id := zk.ID{Scheme: "digest", ID: n.Signature + unusable}
	return append(slices.Clone(acl), zk.ACL{Perms: zk.PermRead, ID: id})
}

// signed reports whether a node has the creation's signature. Servers show users without their passwords to clients
// that may not administer a node, so the signature is the user's name.
func (n Name) signed(ctx context.Context, sess *zk.Session, path string) (bool, error) {
	acl, _, err := sess.GetACL(ctx, path)
	return slices.ContainsFunc(acl, func(a zk.ACL) bool {
		return a.ID.Scheme == "digest" && a.ID.ID == n.Signature+unusable
	}), err
}

// A Creation makes ephemeral nodes under names that no other client chooses, all or none. It was sent once, and tells
// what became of it.
type Creation struct {
	Sess  *zk.Session
	Names []Name
	// Answer waits for the answer. It may be called again after its ctx ended.
	Answer func(ctx context.Context) ([]zk.Created, error)
}

// NewCreation adds to b the creation of the nodes behind the operations before, in one transaction if there are
// several. Done is closed when there is an answer, or none to come. An error of before's has their index in its
// MultiError.
func NewCreation(
	b *zk.Batch, sess *zk.Session, names []Name, before []zk.Op, nodes []zk.Node,
) (c *Creation, done <-chan struct{}) {
	c = &Creation{Sess: sess, Names: names}
	if len(before) == 0 && len(nodes) == 1 {
		one := b.CreateNode(nodes[0])
		c.Answer = func(ctx context.Context) ([]zk.Created, error) {
			node, err := one.Get(ctx)
			return []zk.Created{node}, err
		}
		return c, one.Done()
	}
	ops := slices.Clone(before)
	for _, n := range nodes {
		ops = append(ops, zk.CreateNodeOp(n))
	}
	all := b.Multi(ops...)
	c.Answer = func(ctx context.Context) ([]zk.Created, error) {
		results, err := all.Get(ctx)
		if err != nil {
			return nil, err
		}
		if len(results) != len(ops) {
			return nil, fmt.Errorf("%d results for a transaction of %d operations", len(results), len(ops))
		}
		made := make([]zk.Created, len(nodes))
		for i, r := range results[len(before):] {
			made[i] = zk.Created{Path: r.Path, Stat: r.Stat}
			if r.Stat.Czxid == 0 { // servers before 3.8.4 tell a node's path alone; the rest that we need is known
				made[i].Stat.Czxid, made[i].Stat.EphemeralOwner = r.Zxid, sess.ID()
			}
		}
		return made, nil
	}
	return c, all.Done()
}

// Resolve waits for the answer and returns the nodes that were made. If the answer is lost it looks for the nodes
// behind a fence.
//
// It returns the server's refusal if nothing was made; ErrGone if another client has deleted some of the nodes, and
// removes the others. It returns ErrLost if the request was lost: the caller asks again, under other names, because a
// partition may still deliver the lost request; Resolve has any node that comes of it removed, in the background.
//
// If ctx ends first it returns ctx's cause and decides nothing. The caller calls it again, or Cancel.
func (c *Creation) Resolve(ctx context.Context) ([]zk.Created, error) {
	nodes, err := c.Answer(ctx)
	switch {
	case err == nil:
		return nodes, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case c.Sess.Err() != nil:
		return nil, c.Sess.Err() // the nodes, if they were made, end with the session
	case zk.OutcomeOf(err) != zk.Unknown:
		return nil, err
	}
	found, findErr := c.find(ctx)
	switch {
	case findErr != nil:
		return nil, findErr
	case len(found) == len(c.Names):
		return found, nil
	case len(found) > 0: // they were made together, so another client has deleted the others
		c.discard(found)
		return nil, ErrGone
	default:
		go c.sweep()
		return nil, ErrLost
	}
}

// discard removes nodes that were made.
func (c *Creation) discard(nodes []zk.Created) {
	if c.Names[0].Made != nil || c.Names[0].Signature != "" { // others may have made a node of that name since
		for _, n := range nodes {
			RemoveMade(c.Sess, n.Path, n.Stat.Czxid)
		}
		return
	}
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = n.Path
	}
	Remove(c.Sess, paths...)
}

// Cancel removes, in the background, what the creation has made or makes later. It continues until the answer is there,
// or the session ends. It may also be called after Resolve has failed.
func (c *Creation) Cancel() {
	go func() {
		_, _ = c.Answer(context.Background()) // also if the session ends: a merged release waits for it
		if nodes, err := c.Resolve(c.Sess.Context()); err == nil {
			c.discard(nodes)
		}
	}()
}

// RemoveCreated removes, in the background, the node that a creation of unknown outcome has made, or makes later. Only
// the caller can have chosen the node's name, or what Made tells it by, and it does not use that again.
func RemoveCreated(sess *zk.Session, name Name) {
	c := Creation{Sess: sess, Names: []Name{name}}
	c.Answer = func(context.Context) ([]zk.Created, error) { return nil, ErrLost }
	c.Cancel()
}

// find looks for the nodes that were made. It looks behind a fence: what was on its way when the connection broke has
// been applied by then, or never will be, except in the case that sweep is for.
func (c *Creation) find(ctx context.Context) ([]zk.Created, error) {
	for tries := 0; ; tries++ {
		found, err := c.findOnce(ctx)
		if err == nil {
			return found, nil
		}
		err = again(ctx, c.Sess, err, tries)
		switch {
		case err == nil:
		case ctx.Err() == nil && c.Sess.Err() == nil && zk.OutcomeOf(err) != zk.NotSent && !errors.Is(err, zk.NoAuth):
			// Giving up would leave a node behind. The server may have sent an invalid answer, after which the client
			// has closed the connection.
			if err := Pause(ctx, c.Sess, tries); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func (c *Creation) findOnce(ctx context.Context) ([]zk.Created, error) {
	candidates, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	b := c.Sess.Batch()
	seen, data := make([]*zk.Future[zk.Existence], len(candidates)), make([]*zk.Future[zk.Data], len(candidates))
	for i, n := range candidates {
		seen[i] = b.Exists(n.Path())
		if n.Made != nil { // otherwise it takes no right to read the node
			data[i] = b.Get(n.Path())
		}
	}
	b.Send()
	var found []zk.Created
	for i, n := range candidates {
		node, err := seen[i].Get(ctx)
		ours := err == nil && node.Exists && node.Stat.EphemeralOwner == c.Sess.ID()
		if ours && n.Made != nil {
			var read zk.Data
			read, err = data[i].Get(ctx)
			ours = err == nil && read.Stat.Czxid == node.Stat.Czxid && n.Made(read.Data)
		}
		if ours && n.Signature != "" {
			ours, err = n.signed(ctx, c.Sess, n.Path())
		}
		switch {
		case err != nil && !errors.Is(err, zk.NoNode):
			return nil, err
		case ours:
			found = append(found, zk.Created{Path: n.Path(), Stat: node.Stat})
		}
	}
	return found, nil
}

// list returns the whole names of nodes that may be those of the creation, as they are now, whatever the server knew
// before.
func (c *Creation) list(ctx context.Context) ([]Name, error) {
	b := c.Sess.Batch()
	passed, listed := Fence(b), map[string]*zk.Future[zk.Children]{}
	for _, n := range c.Names {
		if listed[n.Dir] == nil && !n.Fixed {
			listed[n.Dir] = b.Children(n.Dir)
		}
	}
	b.Send()
	if err := passed(ctx); err != nil {
		return nil, err
	}
	var whole []Name
	for _, n := range c.Names {
		if n.Fixed {
			whole = append(whole, n)
			continue
		}
		children, err := listed[n.Dir].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		for _, child := range children.Names {
			if strings.HasPrefix(child, n.Prefix) {
				whole = append(whole, Name{Dir: n.Dir, Prefix: child, Signature: n.Signature})
			}
		}
	}
	return whole, nil
}

// sweep removes nodes that a lost creation makes after find has found none. That takes a partition. The creation is
// held up between a follower and its leader; the client tries in vain to come back to that follower, and continues with
// another server. When the link heals, the creation and the attempt arrive together, and the leader may take the
// attempt for a return before it checks whether the creation still counts
// (TestCreationMayBeDoneAfterALaterWriteOfItsSession).
//
// A link that stays silent for longer than a server bears (syncLimit) is closed, and what it held is lost. The last
// look is after fifteen session timeouts. Sweep returns then, or when it has found a node, or when the session ends,
// which takes the nodes along.
func (c *Creation) sweep() {
	for wait := c.Sess.Timeout(); wait <= 8*c.Sess.Timeout(); wait *= 2 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.Sess.Context().Done():
			timer.Stop()
			return
		}
		nodes, err := c.find(c.Sess.Context())
		if len(nodes) > 0 {
			c.discard(nodes)
		}
		if err != nil || len(nodes) > 0 {
			return
		}
	}
}
