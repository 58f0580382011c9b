package top

// Text in cells.

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
)

// maxText is how many bytes of a text are looked at: no screen is as wide.
const maxText = 2000

// clean returns text of others as a cell may have it: escaped as by all commands, and in ASCII if terminals disagree
// about how wide it is, so that no name can move what is beside it. It does not change again what it has returned.
func clean(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	s = command.Printable(s)
	// Marks combine, and two of the others may be drawn as one.
	odd := func(r rune) bool {
		return unicode.In(r, unicode.M, unicode.Regional_Indicator, unicode.Sk) && r > unicode.MaxASCII
	}
	if s = escape(s, odd); ansi.StringWidth(s) != ansi.StringWidthWc(s) {
		s = escape(s, func(r rune) bool { return r > unicode.MaxASCII })
	}
	return s
}

// escape writes some characters in ASCII.
func escape(s string, which func(rune) bool) string {
	if !strings.ContainsFunc(s, which) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !which(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// width is how many columns text takes that is clean.
func width(s string) int { return ansi.StringWidth(s) }

// cutEnd cuts the end off text that is wider than a number of columns.
func cutEnd(s string, most int) string { return ansi.Truncate(s, most, "…") }

// cutMiddle cuts out the middle: of a path, both the beginning and the last part tell the most.
func cutMiddle(s string, most int) string {
	n := width(s)
	if n <= most || most < 5 {
		return cutEnd(s, most)
	}
	// The last part stays whole if it takes no more than two thirds.
	tail := (most - 1) / 2
	if i := strings.LastIndexByte(s, '/'); i > 0 {
		tail = max(tail, min(width(s[i:]), (most-1)*2/3))
	}
	end := ansi.TruncateLeft(s, n-tail, "")
	for more := n - tail + 1; width(end) > tail; more++ { // it began in the middle of a wide character
		end = ansi.TruncateLeft(s, more, "")
	}
	return ansi.Truncate(s, most-1-tail, "") + "…" + end
}

// fit returns text that takes exactly so many columns.
func fit(s string, columns int, right, middle bool) string {
	if middle {
		s = cutMiddle(s, columns)
	} else {
		s = cutEnd(s, columns)
	}
	space := strings.Repeat(" ", max(0, columns-width(s)))
	if right {
		return space + s
	}
	return s + space
}
