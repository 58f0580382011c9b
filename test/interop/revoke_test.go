package interop_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestRevocationIsHeardByCuratorAndByUs revokes the lock of a revocable InterProcessMutex, and then lets Curator's
// Revoker revoke ours.
//
// Promise: 2
func TestRevocationIsHeardByCuratorAndByUs(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path, theirs, ours = "/revocable", "/revocable-theirs", "/revocable-ours"
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		done := make(chan error, 1)
		args := ownArgs(t, "Revocation", h.addr, path, theirs, ours)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			_, err := output(ctx, patience, "", "java", args...)
			done <- err
		})
		client, err := zk.Open(ctx, zk.Config{Servers: h.addr, Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		awaitNode(ctx, t, client, theirs)
		revoked, err := lock.Revoke(ctx, client, path, lock.RevokeOptions{Reason: "maintenance", Grace: time.Minute})
		if err != nil || len(revoked) != 1 || revoked[0].Ending != lock.EndingReleased || revoked[0].Holder.Known {
			t.Fatalf("revoke Curator's lock: got %+v, %v", revoked, err)
		}

		m, err := lock.NewMutex(client, path, lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		hold, err := m.Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hold.Session().Create(ctx, ours, nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		select {
		case <-hold.Context().Done():
		case err := <-done:
			t.Fatalf("revoke our lock: got no revocation; Curator ended with %v", err)
		}
		if cause := context.Cause(hold.Context()); !errors.Is(cause, lock.ErrRevoked) {
			t.Errorf("revoke our lock: got cause %v, want lock.ErrRevoked", cause)
		}
		if err := hold.Unlock(); err != nil { // it was held until then
			t.Errorf("unlock: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// awaitNode waits until there is a node at path.
func awaitNode(ctx context.Context, t *testing.T, client *zk.Client, path string) {
	t.Helper()
	sess, err := client.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, exists, watch, err := sess.ExistsW(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if !exists {
		if _, err := watch.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
