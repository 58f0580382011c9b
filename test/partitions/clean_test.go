//go:build unix

package partitions_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// noEphemerals waits until no session owns a node below root.
func noEphemerals(t *testing.T, client *zk.Client, root string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), beginLimit)
	defer cancel()
	for {
		var owned []string
		session, err := client.Session(ctx) // each time: a server with other limits may have ended the one before
		if err == nil {
			owned, err = peer.Ephemerals(ctx, session, root)
		}
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
