package command

// Numbers of flags.

import (
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CountInTens makes the flags of a command and of those below it take decimal numbers only, as arguments do: pflag's
// own take 010 for 8, and 0x10 for 16.
func CountInTens(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if Takes(f) == wholeNumber {
			f.Value = decimal{f.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		CountInTens(sub)
	}
}

// decimal is a whole number that is written in tens.
type decimal struct{ pflag.Value }

// Set parses the value.
func (d decimal) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return err
	}
	return d.Value.Set(strconv.FormatInt(n, 10))
}
