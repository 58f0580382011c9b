package cli

// turnstile lock --pid: Windows has no descriptors that a process inherits.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

var errNoHolders = &command.Error{
	Code: command.ExitUsage, Err: errors.New("--pid does not work on Windows"), Hint: "run a command under the lock",
}

func (l *locker) startHolder(context.Context) error { return errNoHolders }

func (l *locker) holdForProcess(context.Context) error { return errNoHolders }
