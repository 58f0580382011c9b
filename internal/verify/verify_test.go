package verify_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/verify"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// The node is created, and the reply lost.
func TestLostReplyToTheFirstCreationLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"stays": false, "leaves": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr()})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			lost := false
			srv.Control(func(r zktest.Request) zktest.Fault {
				if lost || r.Path != "/verify" {
					return zktest.Pass
				}
				lost = true
				if leaves {
					cancel()
				}
				return zktest.DropReply
			})
			report, err := verify.Run(ctx, []*zk.Client{client}, verify.Config{
				Path: "/verify", For: 200 * time.Millisecond, Rate: 100,
			})
			switch {
			case !leaves && err != nil:
				t.Error(err)
			case leaves && !errors.Is(err, context.Canceled):
				t.Errorf("got %v, %v; want that it was canceled", report, err)
			}
			if _, exists, err := client.Exists(t.Context(), "/verify"); exists || err != nil {
				t.Errorf("got %v, %v; want no node", exists, err)
			}
		})
	}
}

// Calls that are given up because the run is ended have not failed.
func TestEndingARunIsNoFailure(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var n atomic.Int64
	srv.Control(func(r zktest.Request) zktest.Fault {
		if strings.HasPrefix(r.Path, "/verify/counter-") && n.Add(1) == 20 {
			cancel() // while the call waits for the reply to this request
			return zktest.DropReply
		}
		return zktest.Pass
	})
	report, err := verify.Run(ctx, []*zk.Client{srv.Client(t, time.Minute)}, verify.Config{
		Path: "/verify", For: time.Minute, Rate: 1000,
	})
	if err != nil || report.Stopped == nil || len(report.Failures) > 0 {
		t.Errorf("got %v, stopped by %v, with %d failures; want none", err, report.Stopped, len(report.Failures))
	}
}

func TestNodeOfOthersStays(t *testing.T) {
	t.Parallel()
	sess := zktest.Run(t).Session(t, time.Minute)
	if _, err := sess.Create(t.Context(), "/verify", []byte("theirs"), zk.Persistent); err != nil {
		t.Fatal(err)
	}
	_, err := verify.Run(t.Context(), []*zk.Client{sess.Client()}, verify.Config{Path: "/verify", For: 1, Rate: 1})
	if !errors.Is(err, verify.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	if data, _, err := sess.Get(t.Context(), "/verify"); string(data) != "theirs" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
}
