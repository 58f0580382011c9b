package main

import (
	"context"
	"fmt"
	"io"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/server"
)

// kindServer is a worker that runs our server instead of locking, so that it can be asked for its memory.
const kindServer = "server"

// hostServer serves at the plan's address, with its data in the plan's root.
func hostServer(ctx context.Context, p plan, stdin io.Reader, stdout io.Writer) error {
	srv, err := server.Start(ctx, server.Config{
		Listen: []string{p.addr}, Data: p.root, FourLetterWords: []string{"srvr", "mntr"},
	})
	if err != nil {
		return err
	}
	defer srv.Close()
	obey := func(_ context.Context, order string, _ measure.Numbers) (measure.Answer, error) {
		if order != "memory" {
			return measure.Answer{}, fmt.Errorf("unknown order %q", order)
		}
		return memory(), nil
	}
	return measure.Work(ctx, stdin, stdout, obey)
}
