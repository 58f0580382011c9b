package server_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

// Clients of a state that is gone learn that their sessions have expired, and go on with new ones: of a restored state,
// whose zxid is larger, and of one that has begun again, whose zxid is smaller than what they have seen.
func TestClientsGoOnWithAnotherState(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"restored": true, "begun again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := server.ShortDir(t)
			address := "unix:" + filepath.Join(dir, "s")
			run := func(data string) *server.Server {
				t.Helper()
				s, err := server.Start(context.WithoutCancel(t.Context()), server.Config{
					Listen: []string{address}, Data: data, MaxSessionTimeout: 10 * time.Minute,
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			}
			first := run(filepath.Join(dir, "first"))
			client, err := zk.Open(t.Context(), zk.Config{Servers: address, Timeout: 10 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			sess, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := sess.Create(t.Context(), "/a", nil, zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Backup(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			if _, err := sess.Create(t.Context(), "/b", nil, zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := filepath.Join(dir, "second")
			if restored {
				if _, err := server.Restore(t.Context(), &b, server.RestoreConfig{Data: second}); err != nil {
					t.Fatal(err)
				}
			}
			run(second)
			<-sess.Context().Done()
			if why := context.Cause(sess.Context()); !errors.Is(why, zk.ErrExpired) {
				t.Errorf("got %v, want that the session has expired", why)
			}
			if _, err := client.Create(t.Context(), "/a", nil, zk.Ephemeral); err != nil {
				t.Errorf("under the next session: %v", err)
			}
		})
	}
}
