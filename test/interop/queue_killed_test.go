package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

// holdingWorker is the program of the process that TestItemsOfAKilledConsumerAreDeliveredAgain kills.
const holdingWorker = "hold"

// holdItems takes an item of each queue with locks, and keeps them.
func holdItems(args []string) error {
	ctx := context.Background()
	client, err := zk.Open(ctx, zk.Config{Servers: args[0], Timeout: victimSession})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, k := range classicKinds() {
		if !k.lock {
			continue
		}
		q, err := k.open(client, k.path("we-die"), k.locks("we-die"))
		if err != nil {
			return err
		}
		body, _, err := q.take(ctx)
		if err != nil {
			return err
		}
		fmt.Println("holding", body)
	}
	fmt.Println("holding all")
	select {}
}

func startHolder(t *testing.T, h *host) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, holdingWorker, h.addr)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.WaitDelay = time.Second
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it fails only if the process is gone
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "holding all" {
			return cmd
		}
	}
	t.Fatal("our own process does not get its items")
	return nil
}

// TestItemsOfAKilledConsumerAreDeliveredAgain kills consumers of either side that hold an item of a queue with locks.
//
// Promise: 7
func TestItemsOfAKilledConsumerAreDeliveredAgain(t *testing.T) {
	t.Parallel()
	needJava(t)
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client := classicClient(t, h, queueSession)
		java, kazoo := javaQueues(t, h, queueSession), kazooQueues(t, h, queueSession)
		var kinds []classicKind
		queues := map[string]classicQueue{}
		for _, k := range classicKinds() {
			if !k.lock {
				continue
			}
			kinds = append(kinds, k)
			for _, test := range []string{"they-die", "we-die"} {
				q, err := k.open(client, k.path(test), k.locks(test))
				if err != nil {
					t.Fatal(err)
				}
				if err := q.put(t.Context(), k.arg(0), "precious"); err != nil {
					t.Fatal(err)
				}
				queues[k.label(test)] = q
			}
		}
		victims := map[bool]*queuePeer{true: javaQueues(t, h, victimSession), false: kazooQueues(t, h, victimSession)}
		for _, k := range kinds {
			name := k.tell(t, victims[k.java], "they-die", "")
			if got := victims[k.java].order(t, "get %s", name); got != "item precious" {
				t.Fatalf("%s: got %q from the peer", k, got)
			}
		}
		holder := startHolder(t, h)
		for _, v := range victims {
			v.kill()
		}
		_ = holder.Process.Kill() // it fails only if the process is gone
		for _, k := range kinds {
			body, done, err := queues[k.label("they-die")].take(t.Context())
			if err != nil || body != "precious" {
				t.Fatalf("%s: got %q, %v from our queue", k, body, err)
			}
			if err := done(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range kinds {
			survivor := kazoo
			if k.java {
				survivor = java
			}
			name := k.tell(t, survivor, "we-die", "")
			survivor.order(t, "consume %s", name)
			if got := nextAgain(t, survivor, name, queues[name], k); got != "precious" {
				t.Errorf("%s: got %q from the peer", k, got)
			}
		}
	})
}

// nextAgain puts another item now and then: Curator's consumers look for dead locks only when an item arrives.
func nextAgain(t *testing.T, p *queuePeer, name string, q classicQueue, k classicKind) string {
	t.Helper()
	limit := time.After(queuePatience)
	for {
		select {
		case body := <-p.items(name):
			if body != "nudge" {
				return body
			}
		case <-p.ended:
			t.Fatalf("%s: the peer's process has ended", k)
		case <-time.After(time.Second):
			if err := q.put(t.Context(), k.arg(4), "nudge"); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatalf("%s: got no second delivery of the item", k)
		}
	}
}
