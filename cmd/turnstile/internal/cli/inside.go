package cli

// A turnstile lock inside of another one.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/lock"
)

// What --on-deadlock takes.
const (
	deadlockReport = "report"
	deadlockFail   = "fail"
)

// holdsVariable is what tells a command of the locks that it runs under: a JSON list of stuck.Hold, the innermost last.
const holdsVariable = "TURNSTILE_HOLDS"

// maxHolds bounds of how many locks a command is told: the innermost ones.
const maxHolds = 32

// holdsAround returns the holds of the environment, under which this process runs.
func (l *locker) holdsAround() ([]stuck.Hold, error) {
	text := l.app.Env.Vars[holdsVariable]
	if text == "" {
		return nil, nil
	}
	var holds []stuck.Hold
	if err := json.Unmarshal([]byte(text), &holds); err != nil || len(holds) > maxHolds {
		return nil, fmt.Errorf("%s is not what turnstile lock has set for its command; unset it", holdsVariable)
	}
	for i := range holds {
		holds[i].Other = true
	}
	return holds, nil
}

// holdsVariableFor returns the variable for a command that runs under a hold, inside of those around it.
func (l *locker) holdsVariableFor(hold *lock.Hold, around []stuck.Hold) string {
	h := stuck.Hold{
		Paths: l.run.Paths, Node: hold.Path(), Token: int64(hold.Token()), Kind: stuck.Exclusive, Permits: l.permits.n,
	}
	switch {
	case l.permits.limit > 0 && l.layout.Value == layoutKazoo:
		h.Kind = stuck.KazooPermit
	case l.permits.limit > 0:
		h.Kind = stuck.Permit
	case l.shared:
		h.Kind = stuck.Reader
	case l.layout.Value == layoutCuratorRW:
		h.Kind = stuck.Writer
	}
	holds := slices.Concat(around[max(0, len(around)-maxHolds+1):], []stuck.Hold{h})
	text, err := json.Marshal(holds)
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
		Hint: "release the lock that is held around this one; several PATHs of one command cannot deadlock",
	}
}
