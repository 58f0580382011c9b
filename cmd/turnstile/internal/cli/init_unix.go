//go:build unix

package cli

// The first process of a container.

import (
	"os"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/ownserver"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
)

// runAsInit runs this program in a child and ends as that does. The first process gets the orphans of all others, and
// must reap them; what supervises a command must not. It returns if that cannot be done: then no orphan is reaped.
func runAsInit() {
	program, err := ownserver.Executable()
	if err != nil {
		return
	}
	ending, err := supervise.Init(program, os.Args)
	if err != nil {
		return
	}
	command.Ended(ending).Exit()
}
