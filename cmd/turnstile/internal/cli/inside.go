package cli

// A command that runs under a lock or a leadership, and acquires another one.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// What --on-deadlock takes.
const (
	deadlockReport = "report"
	deadlockFail   = "fail"
)

// holdsVariable is what tells a command of what it runs under: a JSON list of stuck.Hold, the innermost last.
const holdsVariable = "TURNSTILE_HOLDS"

// maxHolds bounds of how many holds a command is told: the innermost ones.
const maxHolds = 32

// nesting is what a command does inside of the holds of others.
type nesting struct {
	app        *command.App
	onDeadlock command.Choice
	around     []stuck.Hold // that this process runs under
}

func (n *nesting) flags(cmd *cobra.Command) {
	n.onDeadlock = command.NewChoice(deadlockReport, deadlockFail)
	cmd.Flags().Var(&n.onDeadlock, "on-deadlock", "what to do if commands wait for what each other holds")
}

// parse reads the environment.
func (n *nesting) parse(cmd *cobra.Command) error {
	text := n.app.Env.Vars[holdsVariable]
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &n.around); err != nil || len(n.around) > maxHolds {
		return command.Usagef(cmd, "%s is not what turnstile has set for its command; unset it", holdsVariable)
	}
	for i := range n.around {
		n.around[i].Other = true
	}
	return nil
}

// within returns ctx for an acquisition inside of the holds around.
func (n *nesting) within(ctx context.Context) context.Context { return waits.Within(ctx, n.around) }

// mode is what an acquisition does that is part of a deadlock.
func (n *nesting) mode() lock.OnDeadlock {
	if n.onDeadlock.Value == deadlockFail {
		return lock.FailWait
	}
	return lock.ReportDeadlock
}

// warn warns of a deadlock, unless an error will.
func (n *nesting) warn(path string, err error) {
	if n.mode() != lock.FailWait {
		n.app.Complain("%s: warning: %v", path, err)
	}
}

// variable returns the variable for a command that runs under a hold.
func (n *nesting) variable(hold zk.Held) string {
	around := n.around[max(0, len(n.around)-maxHolds+1):]
	told, _ := waits.Innermost(hold.Context()).Told()
	text, err := json.Marshal(slices.Concat(around, []stuck.Hold{told}))
	if err != nil {
		return holdsVariable + "=" // cannot happen: every field marshals
	}
	return holdsVariable + "=" + string(text)
}

// deadlocked gives the error of a wait that gives way its exit code.
func deadlocked(err error) error {
	if !errors.Is(err, lock.ErrDeadlock) {
		return err
	}
	return &command.Error{
		Code: command.ExitDeadlock, Err: err,
		Hint: "release what is held around this one; several PATHs of one turnstile lock cannot deadlock",
	}
}
