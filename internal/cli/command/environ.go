package command

// Flags from environment variables.

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Environ is a process's environment.
type Environ struct {
	List []string          // as os.Environ returns it
	Vars map[string]string // the last one of a name counts, as for every shell and exec
}

// NewEnviron reads an environment, as os.Environ returns it.
func NewEnviron(list []string) Environ {
	e := Environ{List: list, Vars: make(map[string]string, len(list))}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			e.Vars[name] = value
		}
	}
	return e
}

// variable is the name of a flag's environment variable.
func variable(flag string) string {
	return "TURNSTILE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flag returns the value of a flag's environment variable, empty if the variable says nothing about the flag.
//
// Two variables are those that turnstile sets for the commands that it runs: TURNSTILE_SESSION is about the hold that
// we run under, and so is TURNSTILE_ID if TURNSTILE_PATH is set, too, which every such command has.
func (e Environ) flag(name string) string {
	if name == "session" || name == "id" && e.Vars["TURNSTILE_PATH"] != "" {
		return ""
	}
	return e.Vars[variable(name)]
}

// Bind sets the flags that are not on the command line from their environment variables. An empty variable counts as
// unset. Flags set this way do not count as changed: the command line takes precedence over them.
func (e Environ) Bind(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		value := e.flag(f.Name)
		if err != nil || f.Changed || value == "" || f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Fields(value))
		} else {
			err = f.Value.Set(value)
		}
		if err != nil {
			err = &Error{
				Code: ExitUsage,
				Err:  fmt.Errorf("environment variable %s: %w", variable(f.Name), err),
				Hint: "set it to what --" + f.Name + " takes, or unset it",
			}
		}
	})
	return err
}

// Given reports whether a flag has a value, on the command line or from its environment variable.
func (e Environ) Given(flags *pflag.FlagSet, name string) bool {
	return flags.Changed(name) || e.flag(name) != ""
}
