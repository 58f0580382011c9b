package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// killedEnv is the variable that makes the test binary run a server in the directory it names, to be killed.
const killedEnv = "TURNSTILE_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		s, err := Start(context.Background(), Config{Listen: []string{"unix:" + dir + "/sock"}, Data: dir + "/data"})
		peer.Serving(err)
		<-s.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestKilledServerKeepsAllThatItAcknowledged(t *testing.T) {
	t.Parallel()
	kills := 30
	if testing.Short() {
		kills = 5
	}
	dir := shortDir(t)
	at := unixServer(dir + "/sock")
	var owner *rawClient
	var err error
	created := 0
	for kill := range kills {
		cmd := peer.Rerun(t, killedEnv+"="+dir)
		if owner == nil {
			if owner, err = at.connect(wire.ConnectRequest{Timeout: 40_000}); err != nil {
				t.Fatal(err)
			}
			if _, err := owner.create("/e", nil, wire.FlagEphemeral); err != nil {
				t.Fatal(err)
			}
		} else if owner, err = owner.resume(at); err != nil {
			t.Fatalf("kill %d: session of the node: got %v", kill, err)
		}
		if _, stat, err := owner.get("/e"); err != nil || stat.EphemeralOwner != owner.session {
			t.Fatalf("kill %d: ephemeral node: got %+v %v", kill, stat, err)
		}
		for i := range created {
			if _, _, err := owner.get(fmt.Sprintf("/n%d", i)); err != nil {
				t.Fatalf("kill %d: node %d of %d: got %v", kill, i, created, err)
			}
		}
		// The server is killed while writes are in flight, many together or each after the reply to the one before.
		// Those that were answered must survive.
		create := func(b []byte, i, node int) []byte {
			return wire.AppendRequest(b, int32(i), wire.OpCreate,
				&wire.CreateRequest{Path: fmt.Sprintf("/n%d", node), ACL: openACL})
		}
		alone := kill%2 == 1
		if !alone {
			var b []byte
			for i := range 200 {
				b = create(b, i, created+i)
			}
			if _, err := owner.nc.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 200 {
			if alone {
				if _, err := owner.nc.Write(create(nil, i, created)); err != nil {
					break
				}
			}
			if i == 10+kill {
				_ = cmd.Process.Kill()
			}
			h, err := owner.reply(nil)
			if err != nil {
				break
			}
			// NodeExists: created before an earlier kill but not answered
			if h.Err != wire.OK && h.Err != wire.NodeExists {
				t.Fatalf("kill %d: got %v", kill, h.Err)
			}
			created++
		}
		_ = owner.nc.Close()
		if err := cmd.Wait(); err == nil {
			t.Fatal("the server ended on its own")
		} else if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
			t.Fatalf("the server ended on its own: %v", err)
		}
	}
	t.Logf("%d kills, %d nodes", kills, created)
}

// unixServer represents a server in another process. Clients connect to its socket.
func unixServer(path string) *Server {
	return &Server{listeners: []listener{{Listener: elsewhere(path)}}}
}
