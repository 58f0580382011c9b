package interop_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// TestMutexExcludesCurator lets our mutex and Curator's contend for one path. The holder creates a node that must not
// exist before.
func TestMutexExcludesCurator(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path, inside, clients, turns = "/contended", "/inside", 3, 60
		args := ownArgs(t, "Contender", h.addr, path, inside, strconv.Itoa(clients), strconv.Itoa(turns))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := output(t.Context(), 2*time.Minute, "", "java", args...); err != nil {
				t.Error(err)
			}
		})
		for range clients {
			wg.Go(func() {
				if err := contend(t, h.addr, path, inside, turns); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		left, err := lock.Inspect(t.Context(), client, path)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) != 0 {
			t.Errorf("got %d contenders at the end, want none: %v", len(left), left)
		}
	})
}

func contend(t *testing.T, addr, path, inside string, turns int) error {
	t.Helper()
	ctx := t.Context()
	client, err := zk.Open(ctx, zk.Config{Servers: addr, Timeout: 20 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	m, err := lock.NewMutex(client, path, lock.Config{})
	if err != nil {
		return err
	}
	for turn := range turns {
		hold, err := m.Lock(ctx)
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		sess := hold.Session()
		if _, err := sess.Create(ctx, inside, nil, zk.Ephemeral); err != nil {
			return fmt.Errorf("turn %d: another holder is inside: %w", turn, err)
		}
		if err := sess.Delete(ctx, inside, -1); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
		if err := hold.Unlock(); err != nil {
			return fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	return nil
}
