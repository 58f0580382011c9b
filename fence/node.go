package fence

// Node, a fence in ZooKeeper.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Node is a fence in a znode whose data is the largest token, as a decimal number. The multi that writes also checks
// and raises the token.
//
// Like the guard of lock.Hold it is for writes to the same ensemble, but it is stronger. The guard refuses a write once
// the hold's node is gone. A Node also tells apart holds that share a node because goroutines of one process passed the
// lock on, and it admits writes of any session, such as that of a service whose client holds the lock.
type Node struct {
	// AnyACL accepts nodes at path and above it that exist and grant more than the ACL asked for. Otherwise they are
	// refused. Set it before the Node is used.
	AnyACL bool

	path    string
	access  attempt.Access
	secured atomic.Bool // the servers do not remove the node, although it has had children
}

// NewNode returns the fence at path. The first token creates the node and missing parents as persistent nodes with the
// given ACL; a nil ACL allows everything to all clients. The node must not be below a lock's path, and deleting it
// would forget the token: so an ephemeral node is refused with zk.NodeExists, and one with a TTL must not be there. If
// the node has children, or another recipe has made it, Write gives it a child, __keep__, without which servers may
// remove it. NewNode returns an error if path is invalid.
func NewNode(path string, acl []zk.ACL) (*Node, error) {
	if err := attempt.PathArgs("fence", path, acl); err != nil {
		return nil, err
	}
	return &Node{path: path, access: attempt.Access{ACL: slices.Clone(acl)}}, nil
}

// Path returns the fence's path.
func (n *Node) Path() string { return n.path }

// Write executes ops in one multi with the check of the token, and returns their results. It returns a *StaleError, and
// executes nothing, if the fence has seen a larger token. If the server refuses one of ops, Write returns the
// *zk.MultiError of ops alone, and does not raise the token.
//
// After a lost reply zk.OutcomeOf returns zk.Unknown for the error. Write does not repeat the multi; either both the
// writes and the token are in effect, or neither.
func (n *Node) Write(ctx context.Context, sess *zk.Session, token Token, ops ...zk.Op) ([]zk.Result, error) {
	if err := checkToken(token); err != nil {
		return nil, err
	}
	for {
		newest, stat, exists, err := n.read(ctx, sess)
		if err != nil {
			return nil, err
		}
		if !n.AnyACL {
			if err := n.access.Check(ctx, sess, n.path); err != nil {
				return nil, fmt.Errorf("fence: %w", err)
			}
		}
		if err := admit(n.path, token, newest); err != nil {
			return nil, err
		}
		if exists && (newest == 0 || stat.Cversion != 0 && !n.secured.Load()) {
			err := attempt.Secure(ctx, sess, n.path, n.access.ACL)
			if errors.Is(err, zk.NoNode) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("fence: %s: %w", n.path, err)
			}
			n.secured.Store(true)
		}
		results, err := sess.Multi(ctx, append([]zk.Op{n.raise(token, newest, stat, exists)}, ops...)...)
		if err == nil {
			return results[min(1, len(results)):], nil
		}
		multi, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case zk.Temporary(err) && zk.OutcomeOf(err) != zk.Unknown:
			if err := attempt.Again(ctx, sess, err); err != nil {
				return nil, fmt.Errorf("fence: %s: %w", n.path, err)
			}
		case !refused || zk.OutcomeOf(err) != zk.Refused:
			return nil, fmt.Errorf("fence: %s: %w", n.path, err)
		case multi.Index > 0:
			return nil, multiOf(ops, multi)
		case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NodeExists), exists && errors.Is(err, zk.NoNode):
			// Another client has raised, created or deleted the node since the read. Each round means progress of
			// another client, also at a follower that lags behind: the refusal is ordered among the writes, and the
			// follower has applied all earlier ones before it passes the refusal on.
		case errors.Is(err, zk.NoNode):
			d := attempt.Dirs{Keep: attempt.Forever, ACL: n.access.ACL, AnyACL: n.AnyACL, Above: true}
			if err := d.Make(ctx, sess, path.Dir(n.path)); err != nil {
				return nil, fmt.Errorf("fence: %s: %w", n.path, err)
			}
		default:
			return nil, fmt.Errorf("fence: %s: %w", n.path, err)
		}
	}
}

// Raise shows the fence the token and writes nothing else, so that it refuses smaller ones from then on. Call it before
// you read what a write depends on.
func (n *Node) Raise(ctx context.Context, sess *zk.Session, token Token) error {
	_, err := n.Write(ctx, sess, token)
	return err
}

// Newest returns the largest token that the fence has seen, or zero. A server that lags behind may return an older one,
// which does not affect Write.
func (n *Node) Newest(ctx context.Context, sess *zk.Session) (Token, error) {
	newest, _, _, err := n.read(ctx, sess)
	return newest, err
}

func (n *Node) read(ctx context.Context, sess *zk.Session) (newest Token, stat zk.Stat, exists bool, err error) {
	var data []byte
	err = attempt.Do(ctx, sess, func() error {
		var err error
		data, stat, err = sess.Get(ctx, n.path)
		return err
	})
	if errors.Is(err, zk.NoNode) {
		return 0, zk.Stat{}, false, nil
	}
	if err != nil {
		return 0, zk.Stat{}, false, fmt.Errorf("fence: %w", err)
	}
	if err := attempt.Lasting(n.path, stat); err != nil {
		return 0, zk.Stat{}, false, fmt.Errorf("fence: %w", err)
	}
	if stat.Version == -1 { // in a request, version -1 means any version, so no write could depend on it
		return 0, zk.Stat{}, false,
			fmt.Errorf("fence: version of %s is -1 and cannot be checked; set its data once, unchanged", n.path)
	}
	if len(data) == 0 { // created by hand, or as a parent
		return 0, stat, true, nil
	}
	if newest, err = ParseToken(string(data)); err != nil {
		return 0, zk.Stat{}, false,
			fmt.Errorf("fence: data of %s is not a token; repair it or use another path: %w", n.path, err)
	}
	return newest, stat, true, nil
}

// raise returns the operation that stores the token if the node has not changed since it was read.
func (n *Node) raise(token, newest Token, stat zk.Stat, exists bool) zk.Op {
	switch {
	case !exists:
		return zk.CreateNodeOp(zk.Node{Path: n.path, Data: []byte(FormatToken(token)), ACL: n.access.ACL})
	case token == newest:
		return zk.CheckOp(n.path, stat.Version)
	default:
		return zk.SetOp(n.path, []byte(FormatToken(token)), stat.Version)
	}
}

// multiOf returns multi without the check of the token that preceded ops.
func multiOf(ops []zk.Op, multi *zk.MultiError) error {
	e := *multi
	e.Index--
	e.Results = e.Results[min(1, len(e.Results)):]
	if e.Path == "" && e.Index < len(ops) {
		e.Path = ops[e.Index].Path()
	}
	return &e
}
