package command

// Numbers of flags.

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CountInTens makes the flags of a command and of those below it take decimal numbers only, as arguments do: pflag's
// own take 010 for 8, 0x10 for 16, and 1_0 for 10.
func CountInTens(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch Takes(f) {
		case wholeNumber:
			f.Value = decimal{f.Value}
		case fraction:
			f.Value = plain{f.Value}
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

// plain is a number in tens, with or without a fraction.
type plain struct{ pflag.Value }

// Set parses the value.
func (p plain) Set(s string) error {
	if strings.Trim(s, "+-.0123456789") != "" {
		return strconv.ErrSyntax
	}
	return p.Value.Set(s)
}
