package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// A script whose variable is wrong or empty must not silently do something else than one with the same flag.
func TestVariablesAreCheckedAsTheirFlagsAre(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, value := range []string{"", " ", "soon", "-1", "0", "7", "1.5", "256", "true", "/x", "a:b:c", "1/2"} {
		byFlag, byVariable := allCommands(), allCommands()
		visit(byFlag, byVariable, func(one, other *cobra.Command) {
			one.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden && !slices.Contains([]string{"help", "version", "session", "pid"}, f.Name) {
					checked++
					checkAlike(t, one, other, f.Name, value)
				}
			})
		})
	}
	if checked < 1000 {
		t.Errorf("%d flags were checked: are these all commands?", checked)
	}
}

// checkAlike compares what a command says of a flag with what it says of the flag's variable.
func checkAlike(t *testing.T, byFlag, byVariable *cobra.Command, name, value string) {
	t.Helper()
	flags := byFlag.Flags()
	flagErr := flags.Set(name, value)
	if flagErr == nil {
		flagErr = command.NewEnviron(nil).Bind(flags)
	}
	flags.Lookup(name).Changed = false
	flags = byVariable.Flags()
	variable := command.Variable(flags.Lookup(name))
	variableErr := command.NewEnviron([]string{variable + "=" + value}).Bind(flags)
	f := flags.Lookup(name)
	f.Annotations = nil // or it would be given still
	want := flagErr != nil
	if f.Value.Type() == "stringArray" { // blanks separate the values of a variable, so here is none
		want = want || strings.TrimSpace(value) == ""
	}
	if got := variableErr != nil; got != want {
		t.Errorf("%s: --%s=%q: %v, %s: %v", byFlag.CommandPath(), name, value, flagErr, variable, variableErr)
	}
	if variableErr != nil && !strings.Contains(variableErr.Error(), variable) {
		t.Errorf("%s: %s=%q: %v does not name it", byFlag.CommandPath(), variable, value, variableErr)
	}
}

// An empty value is a script's mistake, except where it says "none".
func TestFewFlagsMayBeEmpty(t *testing.T) {
	t.Parallel()
	var got []string
	root := allCommands()
	visit(root, root, func(cmd, _ *cobra.Command) {
		flags := cmd.Flags()
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "string" {
				return
			}
			if err := flags.Set(f.Name, ""); err != nil {
				t.Errorf("%s: --%s: %v", cmd.CommandPath(), f.Name, err)
			}
			if command.NewEnviron(nil).Bind(flags) == nil {
				got = append(got, cmd.Name()+" --"+f.Name)
			}
			f.Changed = false
		})
	})
	want := []string{ // revoke has a message of its own
		"register --payload", "join --data", "lock --label", "pause --reason", "revoke --reason",
		"serve --admin", "serve --metrics-listen", "serve --words",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// All commands of a machine share its settings: a variable must not be a server's certificate to one of them and a
// client's to the other.
func TestVariableMeansTheSameToAllCommands(t *testing.T) {
	t.Parallel()
	means := make(map[string]string)
	root := allCommands()
	visit(root, root, func(cmd, _ *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := command.Variable(f)
			kind, _ := pflag.UnquoteUsage(f)
			there, ok := means[name]
			switch {
			case !ok || within(there, kind):
				means[name] = kind
			case !within(kind, there):
				t.Errorf("%s is %s for %s, and %s for others", name, kind, cmd.CommandPath(), there)
			}
		})
	})
}

// A command that runs under a hold must not take what it is told of the hold for a flag.
func TestNoFlagIsSetByWhatTurnstileTellsItsCommands(t *testing.T) {
	t.Parallel()
	told := []string{
		"PATH", "PATHS", "TOKEN", "SESSION_TIMEOUT_MS", "HOLDS", "ITEM", "ITEM_ID", "ITEM_ATTEMPT", "ITEM_PRIORITY",
		"ITEM_GROUP", "ITEM_ENQUEUED_AT", "ITEM_HEADERS", // and what settable excepts
	}
	root := allCommands()
	visit(root, root, func(cmd, _ *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name := command.Variable(f); slices.Contains(told, strings.TrimPrefix(name, "TURNSTILE_")) {
				t.Errorf("%s: --%s has the variable %s", cmd.CommandPath(), f.Name, name)
			}
		})
	})
}

// within reports whether each choice of one, such as "term|kill", is one of others.
func within(one, others string) bool {
	return !slices.ContainsFunc(strings.Split(one, "|"), func(choice string) bool {
		return !slices.Contains(strings.Split(others, "|"), choice)
	})
}

func visit(one, other *cobra.Command, f func(one, other *cobra.Command)) {
	f(one, other)
	for i, sub := range one.Commands() {
		visit(sub, other.Commands()[i], f)
	}
}
