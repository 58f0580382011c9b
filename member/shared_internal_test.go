package member

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// shared returns how many nodes are known to be kept by Nodes of the client.
func shared(client *zk.Client) int {
	sharedNodes.Lock()
	defer sharedNodes.Unlock()
	n := 0
	for of := range sharedNodes.at {
		if of.client == client {
			n++
		}
	}
	return n
}

// What this process knows of its Nodes goes with them: at once, or when no lost creation can come late any more.
func TestNothingIsKeptOfNodesThatAreClosed(t *testing.T) {
	t.Parallel()
	for _, mode := range []NodeMode{Ephemeral, EphemeralSequential, Persistent, PersistentSequential} {
		for _, lost := range []bool{false, true} {
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				client := srv.Client(t, time.Second)
				srv.Control(func(r zktest.Request) zktest.Fault {
					if lost && r.Op == zktest.OpCreate && r.Nth == 1 {
						return zktest.DropReply
					}
					return zktest.Pass
				})
				var nodes []*Node
				for range 2 {
					n, err := OpenNode(client, "/node", nil, NodeConfig{Mode: mode})
					if err != nil {
						t.Fatal(err)
					}
					if err := n.Await(t.Context()); err != nil {
						t.Fatal(err)
					}
					nodes = append(nodes, n)
				}
				want := 1
				if mode.numbered() {
					want = 0
				}
				if n := shared(client); n != want {
					t.Errorf("mode %d: %d nodes are known, want %d", mode, n, want)
				}
				for _, n := range nodes {
					if err := n.CloseWait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if lost {
					time.Sleep(20 * time.Second) // in the bubble no time passes
				}
				if n := shared(client); n > 0 {
					t.Errorf("mode %d, lost=%t: %d nodes are known after Close", mode, lost, n)
				}
			}, zktest.SessionTimeouts(100*time.Millisecond, time.Hour))
		}
	}
}
