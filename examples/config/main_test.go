package main

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func TestSettingsAreFollowed(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/config", "/config/limit"} {
		if _, err := sess.Create(t.Context(), path, []byte("10"), zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := errors.New("done")
	settings := map[string]string{}
	err = follow(ctx, client, "/config", func(path, value string, exists bool) {
		switch settings[path] = value; {
		case !exists:
			delete(settings, path)
			cancel(done)
		case value == "20":
			if err := sess.Delete(ctx, path, -1); err != nil {
				t.Error(err)
			}
		case path == "/config/limit":
			if _, err := sess.Set(ctx, path, []byte("20"), -1); err != nil {
				t.Error(err)
			}
		}
	})
	if !errors.Is(err, done) || len(settings) != 1 {
		t.Errorf("got %v and %v, want done and one setting", err, settings)
	}
}
