package peer

import (
	"context"
	"net"
	"os/exec"
	"sync"
	"testing"
)

// A process that is about to start has all open files of this one for a moment, also those that are closed meanwhile.
func TestPortIsFreeAlsoWhileProcessesStart(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var starting sync.WaitGroup
	defer starting.Wait()
	defer stop()
	for range 8 {
		starting.Go(func() {
			for ctx.Err() == nil {
				_ = exec.CommandContext(ctx, "true").Run() // killed at the end
			}
		})
	}
	for range 300 {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", FreeAddr(t))
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	}
}
