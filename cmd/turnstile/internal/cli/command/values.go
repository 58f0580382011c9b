package command

// Types of flag values.

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration is a flag's value: as Go writes durations, or in seconds as flock(1) takes them, with or without a fraction.
type Duration time.Duration

// Type is the word for the value in help texts.
func (d *Duration) Type() string { return "duration" }

func (d *Duration) String() string {
	if *d == 0 {
		return "0" // which help does not show as a default
	}
	return time.Duration(*d).String()
}

// Set parses the value.
func (d *Duration) Set(s string) error {
	seconds, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), // no number
		strings.ContainsAny(s, "_eExX"): // Go's notations of numbers, which few mean by what they type
		parsed, err := ParseDuration(s)
		*d = Duration(parsed)
		if errors.Is(err, errNoDuration) {
			return fmt.Errorf("%w, or seconds such as 1.5", err)
		}
		return err
	case math.IsNaN(seconds), math.IsInf(seconds, 0) && err == nil:
		return fmt.Errorf("%q is out of range", s)
	case seconds < 0:
		return fmt.Errorf("%q is negative", s)
	case seconds >= math.MaxInt64/float64(time.Second):
		return errTooLong(s)
	}
	*d = Duration(seconds * float64(time.Second))
	return nil
}

// Period is a Duration that must not be 0, which could only mean something else, or never to pause.
type Period Duration

// Type is the word for the value in help texts.
func (p *Period) Type() string { return (*Duration)(p).Type() }

func (p *Period) String() string { return (*Duration)(p).String() }

// Set parses the value.
func (p *Period) Set(s string) error {
	if err := (*Duration)(p).Set(s); err != nil {
		return err
	}
	if *p == 0 {
		return fmt.Errorf("%q is out of range: it must not be 0", s)
	}
	return nil
}

// ParseDuration parses a duration as Go writes it. It returns an error if there is none, or if it is negative or longer
// than a Duration can be.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	case err == nil:
		return d, nil
	}
	// With other digits it would be a duration, so the number is too large.
	zeros := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '0'
		}
		return r
	}, s)
	switch _, err := time.ParseDuration(zeros); {
	case err == nil && strings.HasPrefix(s, "-"):
		return 0, fmt.Errorf("%q is negative", s)
	case err == nil:
		return 0, errTooLong(s)
	}
	return 0, fmt.Errorf("%q %w: write 90s, 1m30s", s, errNoDuration)
}

var errNoDuration = errors.New("is not a duration")

func errTooLong(s string) error {
	return fmt.Errorf("%q is out of range: it is too long, at most 2562047h (292 years) are possible", s)
}

// ExitCode is a flag's value: what a process can exit with.
type ExitCode int

func (c *ExitCode) String() string { return strconv.Itoa(int(*c)) }

// Type is the word for the value in help texts.
func (c *ExitCode) Type() string { return "code" }

// Set parses the value.
func (c *ExitCode) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return fmt.Errorf("%q is not an exit code: it must be from 0 to 255", s)
	}
	*c = ExitCode(n)
	return nil
}

// NewChoice returns a flag's value that is one of these words, the first by default.
func NewChoice(words ...string) Choice { return Choice{Value: words[0], Words: words} }

// Choice is a flag's value: one of a few words.
type Choice struct {
	Value string
	Words []string
}

func (c *Choice) String() string { return c.Value }

// Type is the word for the value in help texts.
func (c *Choice) Type() string { return strings.Join(c.Words, "|") }

// Set parses the value.
func (c *Choice) Set(s string) error {
	i := slices.IndexFunc(c.Words, func(word string) bool { return strings.EqualFold(word, s) })
	if i < 0 {
		return fmt.Errorf("%q must be one of %s", s, strings.Join(c.Words, ", "))
	}
	c.Value = c.Words[i]
	return nil
}
