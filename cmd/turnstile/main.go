// Command turnstile runs commands under a distributed lock, and the server that keeps the locks.
package main

import (
	"context"
	"os"

	"github.com/seed-a3166700/turnstile/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
