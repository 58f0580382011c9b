package queuecmd

import (
	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
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
		Short: "Run a command for each item, until a signal comes",
		Long: `Takes items from the queue at PATH, the next one as soon as a worker is free, and runs the command for
each. While there is no item, or no server, it waits.

With --until idle it ends when no item is ready and its own commands have ended. With --until empty it ends
when the queue has no items except dead letters: it waits for delayed items, and for those of other
consumers. While the queue is paused it waits, too.

` + aboutItems + `

Exit codes: 0 ended by a signal, or as --until says; 128+N if signal N came before --until was reached, or came
twice; 64 usage; 69 no server at the start; 77 access denied; 126 command cannot be executed; 127 not found.`,
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
		return command.Usagef(cmd, "the command is missing: name one to run for each item")
	case w.workers < 1 || w.workers > maxWorkers:
		return command.Usagef(cmd, "--workers must be from 1 to 1000")
	}
	return w.checkCommand(cmd)
}
