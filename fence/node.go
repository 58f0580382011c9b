package fence

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

// Node is a fence in a znode whose data is the largest token, as a decimal number. A token is checked and raised in the multi that
// writes.
//
// It is for writes to the same ensemble, as lock.Hold's guard is, and stronger: the guard refuses a write once the hold's node is gone, the
// fence also tells apart the holds that goroutines of one process hand to each other, and it takes writes from
// a session other than the hold's: a service's, which is told the token by its client.
type Node struct {
	path string
	acl  []zk.ACL
}

// maxParents is how often missing parents are made before that is given up: somebody deletes them all the time.
const maxParents = 10

// NewNode returns the fence at path. The node and missing parents are made with the first token, persistent, with the given ACL, open to
// everybody if that is nil. It must not lie below a lock's path, and must not be deleted: that would forget the token. It
// returns an error for a path that is none.
func NewNode(path string, acl []zk.ACL) (*Node, error) {
	if err := zk.ValidatePath(path); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	if path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return nil, fmt.Errorf("fence: %s belongs to the server; name a path of the fence's own, such as /fences/stock", path)
	}
	return &Node{path: path, acl: slices.Clone(acl)}, nil
}

// Path returns the fence's path.
func (n *Node) Path() string { return n.path }

// Write executes ops in one multi with the check of the token, and returns their results. It returns a *StaleError, and executes nothing,
// if a larger token has been seen. If one of ops is refused, the error is the *zk.MultiError of ops alone, and the token is not raised.
//
// Whether a write happened whose answer was lost is unknown, as zk.OutcomeOf says of the error; it is not repeated. If it happened its token was
// raised, if not then not: both are in one transaction.
func (n *Node) Write(ctx context.Context, sess *zk.Session, token Token, ops ...zk.Op) ([]zk.Result, error) {
	if err := checkToken(token); err != nil {
		return nil, err
	}
	for parents := 0; ; {
		newest, stat, exists, err := n.read(ctx, sess)
		if err != nil {
			return nil, err
		}
		if err := admit(n.path, token, newest); err != nil {
			return nil, err
		}
		results, err := sess.Multi(ctx, append([]zk.Op{n.raise(token, newest, stat, exists)}, ops...)...)
		if err == nil {
			return results[min(1, len(results)):], nil
		}
		multi, refused := errors.AsType[*zk.MultiError](err)
		switch {
		case !refused || zk.OutcomeOf(err) != zk.Refused:
			return nil, fmt.Errorf("fence: %s: %w", n.path, err)
		case multi.Index > 0:
			return nil, multiOf(ops, multi)
		case errors.Is(err, zk.BadVersion), errors.Is(err, zk.NodeExists), exists && errors.Is(err, zk.NoNode):
			// Somebody else has raised it, or made it, or deleted it, in between. Each round is somebody's progress. That is so at a follower which lags
			// behind, too: the refusal has its place among the writes, and the server that passes it on has applied all before it.
		case errors.Is(err, zk.NoNode) && parents < maxParents:
			parents++
			if err := n.makeParents(ctx, sess, path.Dir(n.path)); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("fence: %s: %w", n.path, err)
		}
	}
}

// Raise shows the token and writes nothing else: what later tries a smaller one is refused. Call it before reading what a write
// depends on.
func (n *Node) Raise(ctx context.Context, sess *zk.Session, token Token) error {
	_, err := n.Write(ctx, sess, token)
	return err
}

// Newest returns the largest token that has been seen, zero if none has. A server that lags behind may answer with an older one; Write does
// not rely on it.
func (n *Node) Newest(ctx context.Context, sess *zk.Session) (Token, error) {
	newest, _, _, err := n.read(ctx, sess)
	return newest, err
}

func (n *Node) read(ctx context.Context, sess *zk.Session) (newest Token, stat zk.Stat, exists bool, err error) {
	data, stat, err := sess.Get(ctx, n.path)
	if errors.Is(err, zk.NoNode) {
		return 0, zk.Stat{}, false, nil
	}
	if err != nil {
		return 0, zk.Stat{}, false, fmt.Errorf("fence: %w", err)
	}
	if stat.Version == -1 { // servers take it for any version, so nothing could be made conditional on it
		return 0, zk.Stat{}, false, fmt.Errorf("fence: %s has been raised 2^32 times, and its version cannot be checked; set its data once, to itself", n.path)
	}
	if len(data) == 0 { // made by hand, or as a parent
		return 0, stat, true, nil
	}
	if newest, err = ParseToken(string(data)); err != nil {
		return 0, zk.Stat{}, false, fmt.Errorf("fence: %s is in use by somebody else, or damaged: %w", n.path, err)
	}
	return newest, stat, true, nil
}

// raise returns the operation that succeeds if nothing has changed since the node was read, and then leaves it with the token.
func (n *Node) raise(token, newest Token, stat zk.Stat, exists bool) zk.Op {
	switch {
	case !exists:
		return zk.CreateNodeOp(zk.Node{Path: n.path, Data: []byte(FormatToken(token)), Mode: zk.Persistent, ACL: n.acl})
	case token == newest:
		return zk.Check(n.path, stat.Version)
	default:
		return zk.SetData(n.path, []byte(FormatToken(token)), stat.Version)
	}
}

func (n *Node) makeParents(ctx context.Context, sess *zk.Session, dir string) error {
	_, err := sess.CreateNode(ctx, zk.Node{Path: dir, Mode: zk.Persistent, ACL: n.acl})
	if errors.Is(err, zk.NoNode) && path.Dir(dir) != dir {
		if err := n.makeParents(ctx, sess, path.Dir(dir)); err != nil {
			return err
		}
		_, err = sess.CreateNode(ctx, zk.Node{Path: dir, Mode: zk.Persistent, ACL: n.acl})
	}
	if err != nil && !errors.Is(err, zk.NodeExists) && !errors.Is(err, zk.NoNode) { // NoNode: the caller goes round again
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// multiOf returns the failure of ops as if the check of the token had not been before them.
func multiOf(ops []zk.Op, multi *zk.MultiError) error {
	e := *multi
	e.Index--
	e.Results = e.Results[min(1, len(e.Results)):]
	if e.Path == "" && e.Index < len(ops) {
		e.Path = ops[e.Index].Path()
	}
	return &e
}
