//go:build unix

package partitions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// noEphemerals waits until no session owns a node below root.
func noEphemerals(t *testing.T, client *zk.Client, root string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), beginLimit)
	defer cancel()
	session, err := client.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for {
		owned, err := ephemerals(ctx, session, root)
		if err == nil && len(owned) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("got ephemeral nodes %v, %v, want none", owned, err)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ephemerals returns the ephemeral nodes at and below a path.
func ephemerals(ctx context.Context, session *zk.Session, path string) ([]string, error) {
	_, stat, err := session.Get(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != 0 {
		return []string{path}, nil
	}
	children, _, err := session.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	var all []string
	for _, child := range children {
		below, childErr := ephemerals(ctx, session, path+"/"+child)
		all, err = append(all, below...), errors.Join(err, childErr)
	}
	return all, err
}
