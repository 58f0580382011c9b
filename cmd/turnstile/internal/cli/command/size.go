package command

// Numbers of bytes as flags.

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a flag's value: how many bytes a reply may have.
type Size int

const (
	minSize     = 1 << 10
	maxSize     = math.MaxInt32
	defaultSize = 4 << 20
)

// units are what may stand behind a number, largest first. The short forms are those of other programs.
var units = []struct {
	names []string
	shift int
}{
	{[]string{"GiB", "G"}, 30}, {[]string{"MiB", "M"}, 20}, {[]string{"KiB", "K"}, 10},
}

// Type is the word for the value in help texts.
func (s *Size) Type() string { return "size" }

func (s *Size) String() string {
	for _, unit := range units {
		if n := int(*s) >> unit.shift; n > 0 && n<<unit.shift == int(*s) {
			return strconv.Itoa(n) + unit.names[0]
		}
	}
	return strconv.Itoa(int(*s))
}

// Set parses the value: bytes, or a number with a unit.
func (s *Size) Set(text string) error {
	number, shift := text, 0
units:
	for _, unit := range units {
		for _, name := range unit.names {
			if before, ok := strings.CutSuffix(text, name); ok {
				number, shift = before, unit.shift
				break units
			}
		}
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is not a size: write bytes, or a whole number such as 64MiB", text)
	}
	if err != nil || n<<shift>>shift != n || n<<shift < minSize || n<<shift > maxSize {
		return fmt.Errorf("%q is out of range: it must be from 1KiB to %d bytes", text, maxSize)
	}
	*s = Size(n << shift)
	return nil
}
