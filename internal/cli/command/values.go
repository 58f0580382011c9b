package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// duration is a flag's value: as Go writes durations, or in seconds as flock(1) takes them, with or without a fraction.
type duration time.Duration

func (d *duration) Type() string { return "duration" }

func (d *duration) String() string {
	if *d == 0 {
		return "0" // which help does not show as a default
	}
	return time.Duration(*d).String()
}

func (d *duration) Set(s string) error {
	parsed, err := time.ParseDuration(s)
	if seconds, ferr := strconv.ParseFloat(s, 64); ferr == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/float64(time.Second) {
			return fmt.Errorf("%q is out of range", s)
		}
		parsed, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil {
		return fmt.Errorf("%q is no duration: write 90s, 1m30s, or seconds such as 1.5", s)
	}
	if parsed < 0 {
		return fmt.Errorf("%q is negative", s)
	}
	*d = duration(parsed)
	return nil
}

// exitCode is a flag's value: what a process can exit with.
type exitCode int

func (c *exitCode) String() string { return strconv.Itoa(int(*c)) }
func (c *exitCode) Type() string   { return "code" }

func (c *exitCode) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return fmt.Errorf("%q is no exit code: it must be from 0 to 255", s)
	}
	*c = exitCode(n)
	return nil
}

// choice is a flag's value: one of a few words.
type choice struct {
	value string
	words []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("%q is none of %s", s, strings.Join(c.words, ", "))
	}
	c.value = s
	return nil
}

// given reports whether a flag has a value, on the command line or from its variable.
func given(flags *pflag.FlagSet, e environ, name string) bool {
	return flags.Changed(name) || e.get(variable(name)) != "" && !e.handed(name)
}

// exclusive reports two flags that contradict each other on the command line, and drops a flag that the environment sets when the
// command line says the contrary.
func exclusive(flags *pflag.FlagSet, one, other string) error {
	switch {
	case flags.Changed(one) && flags.Changed(other):
		return fmt.Errorf("--%s and --%s contradict each other: leave one out", one, other)
	case flags.Changed(one):
		return reset(flags, other)
	case flags.Changed(other):
		return reset(flags, one)
	}
	return nil
}

func reset(flags *pflag.FlagSet, name string) error {
	f := flags.Lookup(name)
	if f == nil {
		return errors.New("no flag --" + name)
	}
	return f.Value.Set(f.DefValue)
}
