// Command turnstile runs commands under a distributed lock, and the server that keeps the locks.
package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"

	"github.com/seed-a3166700/turnstile/internal/cli"
)

func main() {
	if a := os.Getenv("PPROF"); a != "" {
		go http.ListenAndServe(a, nil)
	}
	cli.Main()
}
