package command

// Text of other programs in what people read.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is text for people that Sprintf has made, or text of our own: it is printed as it is, with its line ends.
type Text string

// Printable escapes what is not for a terminal: characters that control it, that end a line or that turn the direction
// of writing, and bytes that are not UTF-8. Others choose much of what we print, such as labels, reasons and access
// lists, and a message of ours must stay one line that says what we mean. All output for people passes through here, by
// way of Sprintf and what uses it.
//
// What Printable returns it does not change again.
func Printable(s string) string {
	if plainText(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 || !unicode.IsGraphic(r) {
			quoted := strconv.QuoteToGraphic(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// plainText reports whether a terminal can print text as it is.
func plainText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// JSON is json.Marshal with all that is not Printable as \uXXXX: a terminal shows the document as it is.
func JSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || plainText(string(b)) {
		return b, err
	}
	var plain []byte
	for _, r := range string(b) {
		switch {
		case unicode.IsGraphic(r):
			plain = utf8.AppendRune(plain, r)
		case r <= math.MaxUint16:
			plain = fmt.Appendf(plain, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			plain = fmt.Appendf(plain, `\u%04x\u%04x`, high, low)
		}
	}
	return plain, nil
}

// Plain quotes text of other programs, unless it is a plain word.
func Plain(s string) string {
	if quoted := strconv.QuoteToGraphic(s); s == "" || quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

// PrintableLines is Printable, line by line. Tabs stay as they are.
func PrintableLines(s string) Text {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		columns := strings.Split(line, "\t")
		for k, column := range columns {
			columns[k] = Printable(column)
		}
		lines[i] = strings.Join(columns, "\t")
	}
	return Text(strings.Join(lines, "\n"))
}

// OneLine is the text of an error without control characters: what several have said, joined with semicolons. A long
// one is cut, but not its hint.
func OneLine(err error) string {
	if e, ok := err.(*Error); ok && e.Err != nil && e.Hint != "" { //nolint:errorlint // not one that another wraps
		return OneLine(e.Err) + "; " + Printable(e.Hint)
	}
	return Cut(Printable(flat(err)), maxMessage)
}

const (
	maxMessage = 4000 // characters of an error, of which others may have written any number
	maxExcerpt = 300
)

// Excerpt is the beginning of text that others have written for people, such as a label or a reason. It is Printable.
func Excerpt(s string) string { return Cut(Printable(s[:min(len(s), 4*maxExcerpt+4)]), maxExcerpt) }

// Cut cuts text that is longer than so many characters.
func Cut(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}

// flat is the text of an error with semicolons where errors.Join has put line ends.
func flat(err error) string {
	text := err.Error()
	var parts []error
	switch e := err.(type) { //nolint:errorlint // it looks at each error of the chain
	case interface{ Unwrap() []error }:
		parts = e.Unwrap()
	case interface{ Unwrap() error }:
		if part := e.Unwrap(); part != nil {
			parts = []error{part}
		}
	}
	if len(parts) > 1 && text == errors.Join(parts...).Error() {
		list := make([]string, len(parts))
		for i, part := range parts {
			list[i] = flat(part)
		}
		return strings.Join(list, "; ")
	}
	for _, part := range parts {
		text = strings.Replace(text, part.Error(), flat(part), 1)
	}
	return text
}

// Sprintf is fmt.Sprintf for people: each argument is Printable. The format is not changed, nor is a Text.
func Sprintf(format string, args ...any) Text { return Text(fmt.Sprintf(format, printable(args)...)) }

// Fprintf is fmt.Fprintf for people, as Sprintf is.
func Fprintf(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format, printable(args)...)
	return OutputError(err)
}

// printable returns the arguments so that fmt prints them in a Printable way.
func printable(args []any) []any {
	list := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case Text, bool, int, int32, int64, uint64, float64: // an int can be a width
			list[i] = arg
		default:
			list[i] = escaped{arg}
		}
	}
	return list
}

// escaped formats a value in a Printable way.
type escaped struct{ value any }

// Format implements fmt.Formatter.
func (e escaped) Format(f fmt.State, verb rune) {
	value := e.value
	if err, ok := value.(error); ok && verb != 'T' {
		value = flat(err)
	}
	_, _ = io.WriteString(f, Printable(fmt.Sprintf(fmt.FormatString(f, verb), value))) // to memory
}
