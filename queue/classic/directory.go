package classic

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// maxTries bounds how often it creates anew what vanished in between.
const maxTries = 10

// makeDir creates a directory, and what is missing above it in the mode above. It works from the leaf upward, because
// the ancestors may be closed to us. If the directory exists already, that is success, so that it may be repeated.
func makeDir(ctx context.Context, sess *zk.Session, dir zk.Node, above zk.Mode) error {
	for range maxTries {
		_, err := sess.CreateNode(ctx, dir)
		switch {
		case err == nil || errors.Is(err, zk.NodeExists):
			return nil
		case errors.Is(err, zk.NoNode) && path.Dir(dir.Path) != dir.Path:
			parent := zk.Node{Path: path.Dir(dir.Path), Mode: above, ACL: dir.ACL}
			if err := makeDir(ctx, sess, parent, above); err != nil {
				return err
			}
		case errors.Is(err, zk.Unimplemented) && dir.Mode == zk.Container:
			dir.Mode = zk.Persistent // a server before 3.5.3
		default:
			return err
		}
	}
	return &zk.Error{Op: "create", Path: dir.Path, Err: zk.NoNode, Outcome: zk.Refused}
}

// pause waits a little after err if err may pass: not at all after a lost connection, since requests wait for the
// next one by themselves. It returns an error if it is useless to ask again.
func pause(ctx context.Context, sess *zk.Session, err error) error {
	switch {
	case sess.Err() != nil:
		return sess.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, zk.ErrConnectionLost):
		return nil
	case errors.Is(err, zk.NoAuth), errors.Is(err, zk.ErrReplyTooLarge):
		return err
	}
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-sess.Context().Done():
		return sess.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
