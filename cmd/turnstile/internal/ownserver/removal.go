package ownserver

// A directory that was removed below its server.

import (
	"context"
	"net"
	"os"
	"time"
)

// lookEvery is how long a server that no command can find goes on at most. As long as it does, a second one may run.
const lookEvery = time.Second

// AwaitRemoval waits until one of a server's socket files is not there any more, or is another one. It returns an error
// if ctx ends.
func AwaitRemoval(ctx context.Context, sockets []net.Addr) error {
	made := make(map[string]os.FileInfo)
	for _, addr := range sockets {
		if addr.Network() != "unix" {
			continue
		}
		info, err := os.Lstat(addr.String())
		if err != nil {
			return nil
		}
		made[addr.String()] = info
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for path, was := range made {
			if now, err := os.Lstat(path); err != nil || !os.SameFile(was, now) {
				return nil
			}
		}
	}
}
