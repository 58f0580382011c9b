package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-a3166700/turnstile/server"
)

// kindServer is the worker that runs our server in its process instead of locking, so that it can be asked for its memory.
const kindServer = "server"

// hostServer serves at the plan's address, with its data in the plan's root.
func hostServer(ctx context.Context, p plan, stdin io.Reader, stdout io.Writer) error {
	srv, err := server.Start(ctx, server.Config{Listen: []string{p.addr}, Data: p.root, FourLetterWords: []string{"srvr", "mntr"}})
	if err != nil {
		return err
	}
	defer srv.Close()
	return obey(stdin, stdout, func(order string, _ numbers, _ io.Writer) ([]int64, error) {
		if !strings.HasPrefix(order, "memory") {
			return nil, fmt.Errorf("unknown order %q", order)
		}
		return memory(), nil
	})
}
