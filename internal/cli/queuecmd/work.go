package queuecmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
)

// What --until takes.
const (
	untilSignal = "signal"
	untilIdle   = "idle"
	untilEmpty  = "empty"
)

func newWork(app *command.App) *cobra.Command {
	w := newConsumer(app)
	cmd := &cobra.Command{
		Use:   "work [flags] PATH -- COMMAND [ARG...]",
		Short: "Run a command for every item, until a signal comes",
		Long: `Takes the items of the queue at PATH, the next as soon as a worker is free, and runs the command for each. While
there is no item, or no server, it waits.

With --until idle it ends when no item is ready and its own commands have ended; with --until empty when there
is no item at all but dead letters: it waits for those that are delayed, and for those that others work on.

` + aboutItems + `

Exit codes: 0 ended as it was asked to: by a signal, or by what --until says; 128+N if signal N came before what
--until says, or came twice; 64 usage; 69 no server at the start; 77 access denied; 126 command cannot be
executed; 127 not found.`,
		Example: `  turnstile queue work /mail --workers 4 -- ./send-mail
  turnstile queue work /numbers --workers 8 --until empty -- sh -c 'cat >>out'
  turnstile queue work /mail --on-stop finish --max-attempts 5 -c './render | ./send'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.run.Parse(cmd, args, w.checkWork); err != nil {
				return err
			}
			return w.runCommands(cmd.Context())
		},
	}
	w.until = command.NewChoice(untilSignal, untilIdle, untilEmpty)
	flags := cmd.Flags()
	flags.IntVar(&w.workers, "workers", 1, "how many commands run at the same time")
	flags.Var(&w.until, "until", "when to end")
	w.commandFlags(cmd)
	return cmd
}

// maxWorkers is how many commands may run at the same time.
const maxWorkers = 1000

func (w *consumer) checkWork(cmd *cobra.Command) error {
	switch {
	case w.run.Argv == nil:
		return command.Usage(cmd, errors.New("the command to run for every item is missing"))
	case w.workers < 1 || w.workers > maxWorkers:
		return command.Usage(cmd, errors.New("--workers must be from 1 to 1000"))
	}
	return w.checkCommand(cmd)
}
