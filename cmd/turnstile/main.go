// Command turnstile runs commands under a distributed lock, and the server that keeps the locks.
package main

import "github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli"

func main() { cli.Main() }
