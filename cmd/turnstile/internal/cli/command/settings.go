package command

// The settings of the machine: a file of variables.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// SettingsError is an error in the file with the settings of the machine.
type SettingsError struct {
	File string
	Line int // 0 if the file cannot be read
	Err  error
}

// Error names the file and the line.
func (e *SettingsError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("settings of this machine: %v", e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *SettingsError) Unwrap() error { return e.Err }

// ReadSettings adds the variables of a file that the environment does not set. A file that does not exist, and one
// without a name, sets nothing. Any other mistake is an error, which names the file and the line: a setting that is
// not obeyed could make commands use another server than the machine's administrator wants. Variables are those of the
// flags of all commands, which are below what root returns.
func (e *Environ) ReadSettings(file string, root func() *cobra.Command) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) { // nor is it a link to what does not exist
			return nil
		}
	}
	if err != nil {
		return &SettingsError{File: file, Err: err}
	}
	known := variables(root())
	lines := make(map[string]int)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		name, value, err := setting(strings.TrimSpace(line))
		switch {
		case err != nil:
		case name == "":
			continue
		case !known[name]:
			err = fmt.Errorf("unknown setting %q: want TURNSTILE_ and the name of a flag, as TURNSTILE_CONNECT", name)
		case lines[name] != 0:
			err = fmt.Errorf("%s is also set in line %d", name, lines[name])
		}
		if err != nil {
			return &SettingsError{File: file, Line: n, Err: err}
		}
		lines[name] = n
		if _, ok := e.Vars[name]; ok {
			continue
		}
		if e.places == nil {
			e.places = make(map[string]string)
		}
		e.Vars[name], e.places[name] = value, fmt.Sprintf("%s:%d", file, n)
	}
	return nil
}

// setting reads a line. The name is empty if the line has no setting. What only a shell would understand is an error,
// as it would mean something else here.
func setting(line string) (name, value string, err error) {
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
		return "", "", nil
	case !utf8.ValidString(line), strings.ContainsFunc(line, unicode.IsControl):
		return "", "", errors.New("the line is not text")
	}
	name, value, ok := strings.Cut(line, "=")
	switch {
	case !ok || name == "":
		return "", "", errors.New("want NAME=VALUE, or a comment that begins with #")
	case strings.ContainsFunc(name, unicode.IsSpace) || strings.TrimSpace(value) != value:
		return "", "", errors.New("want NAME=VALUE, without blanks around the = and without export")
	case strings.HasPrefix(value, `"`), strings.HasPrefix(value, "'"):
		return "", "", errors.New("want NAME=VALUE, without quotes")
	case strings.Contains(value, " #"):
		return "", "", errors.New("want a comment on a line of its own")
	case strings.HasSuffix(value, `\`):
		return "", "", errors.New("want the value on one line")
	}
	return name, value, nil
}

// variables are the environment variables of all flags below a command, and those that are no flag's.
func variables(root *cobra.Command) map[string]bool {
	known := map[string]bool{ownServerVariable: true, idleExitVariable: true}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if settable(f) {
				known[Variable(f)] = true
			}
		})
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add(root)
	return known
}
