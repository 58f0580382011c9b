package peer

// Who has which ephemeral node.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// Ephemerals returns the ephemeral nodes below a path, with their sessions. It ignores nodes that are deleted
// meanwhile.
func Ephemerals(ctx context.Context, sess *zk.Session, path string) ([]string, error) {
	names, _, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		node := path + "/" + name
		stat, ok, err := sess.Exists(ctx, node)
		if err != nil {
			return nil, err
		}
		if ok && stat.EphemeralOwner != 0 {
			found = append(found, fmt.Sprintf("%s of session %#x", node, stat.EphemeralOwner))
			continue
		}
		below, err := Ephemerals(ctx, sess, node)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}
