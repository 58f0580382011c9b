package command

// Flags from environment variables.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Environ is a process's environment, and the settings of the machine.
type Environ struct {
	List []string          // as os.Environ returns it
	Vars map[string]string // the last one of a name counts, as for every shell and exec; also those of the settings

	places map[string]string // of variables from the settings: file and line
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

// Variable is the name of a flag's environment variable.
func Variable(f *pflag.Flag) string {
	name := f.Name
	if of := f.Annotations[variableOf]; len(of) > 0 {
		name = of[0] + "-" + name
	}
	return "TURNSTILE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// VariablesOf names the variables of these flags, or of all if none is given, after a command: --listen of serve is
// TURNSTILE_SERVE_LISTEN. All commands of a machine share its settings, and to others a flag of that name means
// something else: --tls-cert of serve is the server's certificate, --tls-cert of lock the client's.
func VariablesOf(command string, flags *pflag.FlagSet, names ...string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			annotate(f, variableOf, command)
		}
	})
	for _, name := range names {
		f := flags.Lookup(name)
		f.Usage += " (" + Variable(f) + ")"
	}
}

// flag returns the value of a flag's environment variable, if the variable is set and says something about the flag.
//
// TURNSTILE_ID is about the hold that we run under if TURNSTILE_PATH is set, too, which every command has that
// turnstile runs.
func (e Environ) flag(f *pflag.Flag) (value string, ok bool) {
	_, inner := e.Vars["TURNSTILE_PATH"]
	if f.Name == "id" && inner || !settable(f) {
		return "", false
	}
	value, ok = e.Vars[Variable(f)]
	return value, ok
}

// settable reports whether a flag has an environment variable. TURNSTILE_SESSION is one that turnstile sets for
// commands that it runs, and a process id is nothing to be inherited.
func settable(f *pflag.Flag) bool {
	return !f.Hidden && !slices.Contains([]string{"help", "version", "session", "pid"}, f.Name)
}

// Annotations of flags.
const (
	bound      = "turnstile_bound"      // the variable that has set the flag, and its place
	variableOf = "turnstile_variableof" // the command after which its variable is named
	rivals     = "turnstile_rivals"     // the flags that contradict this one
	maybeNone  = "turnstile_maybenone"  // the flag may be empty
)

func annotate(f *pflag.Flag, key string, values ...string) {
	if f.Annotations == nil {
		f.Annotations = make(map[string][]string)
	}
	f.Annotations[key] = values
}

// MayBeEmpty says that an empty value of these flags means something.
func MayBeEmpty(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		annotate(flags.Lookup(name), maybeNone)
	}
}

// Rivals says that of these flags one may be given, and of their variables.
func Rivals(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		annotate(cmd.Flags().Lookup(name), rivals, names...)
	}
	cmd.MarkFlagsMutuallyExclusive(names...) // for completion: RefuseRivals comes before Cobra's own check
}

// RefuseRivals refuses a command line that has two flags of which only one may be given.
func RefuseRivals(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, rival := range f.Annotations[rivals] {
			if err == nil && rival != f.Name && cmd.Flags().Changed(rival) {
				err = Usagef(cmd, "--%s and --%s contradict each other: leave one out", f.Name, rival)
			}
		}
	})
	return err
}

// Bind sets the flags that are not on the command line from their environment variables, and refuses values that a
// flag would not take, the empty one too: a script whose variable is empty means something else than one that has none.
// Flags set this way do not count as changed: the command line takes precedence over them, and the environment over the
// settings of the machine.
func (e Environ) Bind(flags *pflag.FlagSet) error {
	if err := e.checkOwnServer(); err != nil {
		return err
	}
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && !f.Changed {
			err = e.bind(flags, f)
		}
	})
	if err != nil {
		return err
	}
	flags.VisitAll(func(f *pflag.Flag) {
		_, may := f.Annotations[maybeNone]
		if err == nil && Given(f) && !may && f.Value.Type() == "string" && f.Value.String() == "" {
			what := Source(f) + " is empty"
			if f.Changed || e.places[Source(f)] != "" { // otherwise refuse says what to do
				what += ": give it a value, or leave it out"
			}
			err = e.refuse(f, errors.New(what))
		}
	})
	return err
}

// bind sets a flag from its environment variable, if there is one and no other flag takes precedence.
func (e Environ) bind(flags *pflag.FlagSet, f *pflag.Flag) error {
	value, ok := e.flag(f)
	if !ok {
		return nil
	}
	name := Variable(f)
	for _, rival := range f.Annotations[rivals] {
		other := flags.Lookup(rival)
		if other == f || !on(f, value) {
			continue
		}
		if other.Changed && on(other, other.Value.String()) {
			return nil
		}
		if value, ok := e.flag(other); !ok || other.Changed || !on(other, value) {
			continue
		}
		switch ours, theirs := e.places[name] == "", e.places[Variable(other)] == ""; {
		case ours == theirs:
			annotate(f, bound, name)
			return e.refuse(f, fmt.Errorf("%s and %s contradict each other: leave one out", name, Variable(other)))
		case theirs:
			return nil
		}
	}
	var err error
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if err = list.Replace(strings.Fields(value)); err == nil && len(list.GetSlice()) == 0 {
			err = errors.New("it is empty")
		}
	} else {
		err = f.Value.Set(value)
	}
	annotate(f, bound, name)
	if err == nil {
		return nil
	}
	if want := Takes(f); want != "" {
		return e.refuse(f, fmt.Errorf("environment variable %s must be %s: %q", name, want, value))
	}
	return e.refuse(f, fmt.Errorf("environment variable %s: %w", name, err))
}

const (
	wholeNumber = "a whole number"
	fraction    = "a number"
)

// Takes says what a flag takes. It is empty for types whose own errors say so.
func Takes(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int32", "int64":
		return wholeNumber
	case "float64":
		return fraction
	}
	return ""
}

// on reports whether a flag's value can contradict another flag: one that is switched off does not.
func on(f *pflag.Flag, value string) bool {
	if f.Value.Type() != "bool" {
		return true
	}
	yes, err := strconv.ParseBool(value)
	return yes || err != nil
}

// wrongSetting is the error of a flag whose value comes from the settings of the machine and cannot be used; nil if the
// value comes from elsewhere.
func (e Environ) wrongSetting(f *pflag.Flag, err error) *Error {
	place := e.places[Source(f)]
	if place == "" {
		return nil
	}
	return &Error{Code: ExitConfig, Err: fmt.Errorf("%s: %w", place, err)}
}

// refuse is the error of a flag whose value cannot be used. It says where the value comes from.
func (e Environ) refuse(f *pflag.Flag, err error) error {
	if wrong := e.wrongSetting(f, err); wrong != nil {
		return wrong
	}
	if f.Changed {
		return &Error{Code: ExitUsage, Err: err}
	}
	return &Error{Code: ExitUsage, Err: err, Hint: "set it to what --" + f.Name + " takes, or unset it"}
}

// Given reports whether a flag has a value, on the command line or from its environment variable. Call it after Bind.
func Given(f *pflag.Flag) bool { return f.Changed || len(f.Annotations[bound]) > 0 }

// Source names what has given a flag its value: --connect, or TURNSTILE_CONNECT.
func Source(f *pflag.Flag) string {
	if name := f.Annotations[bound]; !f.Changed && len(name) > 0 {
		return name[0]
	}
	return "--" + f.Name
}

// ownServerVariable says whether commands may start this user's own server.
const ownServerVariable = "TURNSTILE_OWN_SERVER"

// The values of ownServerVariable.
const (
	ownAuto  = "auto"  // when no server is named
	ownNever = "never" // commands that name no server fail
)

// checkOwnServer checks the variables that are about this user's own server and no flag's of every command.
func (e Environ) checkOwnServer() error {
	if value, ok := e.Vars[ownServerVariable]; ok && !slices.Contains([]string{ownAuto, ownNever}, value) {
		return e.refuseVariable(ownServerVariable, fmt.Errorf("%q must be one of %s, %s", value, ownAuto, ownNever))
	}
	if value, ok := e.Vars[idleExitVariable]; ok {
		if err := new(Duration).Set(value); err != nil {
			return e.refuseVariable(idleExitVariable, err)
		}
	}
	return nil
}

// idleExitVariable says how long the user's own server stays without a session.
const idleExitVariable = "TURNSTILE_IDLE_EXIT"

// refuseVariable is the error of a variable that cannot be used.
func (e Environ) refuseVariable(name string, err error) error {
	if place := e.places[name]; place != "" {
		return &Error{Code: ExitConfig, Err: fmt.Errorf("%s: %s: %w", place, name, err)}
	}
	return &Error{Code: ExitUsage, Err: fmt.Errorf("environment variable %s: %w", name, err)}
}
