package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// prefix begins every environment variable of ours.
const prefix = "TURNSTILE_"

// environ is a process's environment.
type environ struct {
	list   []string
	values map[string]string // the last one of a name counts, as for every shell and exec
}

func newEnviron(list []string) environ {
	e := environ{list: list, values: make(map[string]string, len(list))}
	for _, entry := range list {
		if name, value, ok := strings.Cut(entry, "="); ok {
			e.values[name] = value
		}
	}
	return e
}

// get returns the variable's value, empty if it is not there.
func (e environ) get(name string) string { return e.values[name] }

// variable is the name of a flag's environment variable.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bind sets the flags that are not on the command line from their environment variables. An empty variable counts as none. Flags that
// are set so do not count as changed: what is on the command line goes before them.
func (e environ) bind(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		value := e.get(variable(f.Name))
		ours := f.Name == "help" || f.Name == "version" || f.Hidden || e.handed(f.Name)
		if err != nil || f.Changed || value == "" || ours {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(strings.Fields(value))
		} else {
			err = f.Value.Set(value)
		}
		if err != nil {
			err = &exitError{
				code: ExitUsage,
				err:  fmt.Errorf("environment variable %s: %w", variable(f.Name), err),
				hint: "set it to what --" + f.Name + " takes, or unset it",
			}
		}
	})
	return err
}

// with returns the environment with the given entries last, and no other entry of their names.
func (e environ) with(entries ...string) []string {
	own := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(entries, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	}
	return append(slices.DeleteFunc(slices.Clone(e.list), own), entries...)
}

// only returns those variables of the environment.
func (e environ) only(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(e.list), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(names, name)
	})
}

// handed reports whether the variable of a flag is one that turnstile hands to commands that it runs, and so says
// nothing about what the flag is to be.
func (e environ) handed(flag string) bool {
	switch flag {
	case "session": // of the lock that we run under
		return true
	case "id": // of the candidate that we run under, or one that somebody has set for us
		return e.get("TURNSTILE_SESSION") != ""
	}
	return false
}
