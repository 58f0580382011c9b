package attempt

// Nodes that last although another recipe may have made them as containers.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// keep is the name of the child that Secure makes.
var keep = Mark("keep")

func keeper(path string) string { return Join(path, keep) }

// IsKeeper reports whether a child of a node is the one that Secure has made.
func IsKeeper(name string) bool { return name == keep }

// Secure makes sure that no server removes a node which is to hold what lasts, and which its caller has not made. It
// may be a container that another recipe has made for its own nodes: no request tells, and servers remove one when its
// last child has gone. So Secure gives it a persistent child, which DeleteSecured deletes.
//
// It returns NoNode if the node is gone. It returns an error, and the node is not to be used, if this client may not
// create children and the node has had some.
func Secure(ctx context.Context, sess *zk.Session, path string, acl []zk.ACL) error {
	err := Do(ctx, sess, func() error {
		_, err := sess.CreateNode(ctx, zk.Node{Path: keeper(path), ACL: acl})
		return err
	})
	switch {
	case errors.Is(err, zk.NodeExists):
		return nil
	case errors.Is(err, zk.NoAuth):
		return mayLast(ctx, sess, path)
	default:
		return err
	}
}

// Lasting returns an error if a node that exists is to hold what lasts, but goes with a session. Nodes with a TTL look
// like others, as containers do.
func Lasting(path string, stat zk.Stat) error {
	if stat.EphemeralOwner == 0 {
		return nil
	}
	const text = "%w: %s is an ephemeral node that another program has made (session 0x%x); use a path of its own"
	return fmt.Errorf(text, zk.NodeExists, path, uint64(stat.EphemeralOwner))
}

// Secured asks whether the node at path has the child that Secure gives it.
func Secured(b *zk.Batch, path string) *zk.Future[zk.Existence] { return b.Exists(keeper(path)) }

// mayLast returns an error if the node at path has had children, and so may be removed by the servers.
func mayLast(ctx context.Context, sess *zk.Session, path string) error {
	stat, err := Ask(ctx, sess, func() (zk.Stat, error) {
		stat, _, err := sess.Exists(ctx, path)
		return stat, err
	})
	if err == nil && stat.Cversion != 0 {
		const text = "%w: the node has had children and may be a container, which servers remove when it is empty: " +
			"use another path, or grant the right to create nodes below it"
		return fmt.Errorf(text, zk.NoAuth)
	}
	return err
}

// DeleteSecured deletes a node, given its version, together with the child that Secure may have given it. Asked twice,
// it deletes what another client has made meanwhile.
func DeleteSecured(ctx context.Context, sess *zk.Session, path string, version int32) error {
	err := sess.Delete(ctx, path, version)
	if !errors.Is(err, zk.NotEmpty) {
		return err
	}
	_, both := sess.Multi(ctx, zk.DeleteOp(keeper(path), -1), zk.DeleteOp(path, version))
	if refusal, ok := errors.AsType[*zk.MultiError](both); ok && refusal.Index == 0 && refusal.Err == zk.NoNode {
		return err // the children are others'
	}
	return both
}
