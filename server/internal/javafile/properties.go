// Package javafile reads the files of ZooKeeper whose syntax is Java's: properties, such as zoo.cfg, and JAAS.
package javafile

// Reading Java properties files.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
)

// A Property is one line of a Java properties file.
type Property struct {
	Line       int
	Key, Value string
}

// CheckMark refuses a text that begins with a byte order mark, which some editors write: it would be a part of the
// first name.
func CheckMark(text string) error {
	if strings.HasPrefix(text, "\ufeff") {
		return errors.New("it begins with a byte order mark: save it as UTF-8 without one")
	}
	return nil
}

// Properties reads a Java properties file such as zoo.cfg: comments start with # or !, keys and values are
// separated by =, : or space, and a backslash at its end continues a line or, elsewhere, escapes a character.
func Properties(r io.Reader) ([]Property, error) {
	var props []Property
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	lines.Split(splitLines)
	n := 0
	for lines.Scan() {
		if n++; n == 1 {
			if err := CheckMark(lines.Text()); err != nil {
				return nil, err
			}
		}
		first, text := n, strings.TrimLeft(lines.Text(), " \t\f")
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		for continued(text) {
			text = text[:len(text)-1]
			if !lines.Scan() {
				break
			}
			n++
			text += strings.TrimLeft(lines.Text(), " \t\f")
		}
		key, value, err := splitProperty(text)
		if err == nil && strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			err = fmt.Errorf("%s: ZooKeeper reads the file as ISO 8859-1: write letters that are not ASCII as \\u and "+
				"four hexadecimal digits, such as \\u00e9", key)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		props = append(props, Property{Line: first, Key: key, Value: strings.TrimSpace(value)})
	}
	return props, lines.Err()
}

// splitLines splits off a line, which ends in \n, \r or both, as bufio.ScanLines does, for which \r alone is no end.
func splitLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i >= 0 && data[i] == '\r' && i == len(data)-1 && !atEOF: // \n may follow
		return 0, nil, nil
	case i >= 0 && data[i] == '\r' && i < len(data)-1 && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i >= 0:
		return i + 1, data[:i], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	}
	return 0, nil, nil
}

// continued reports whether a line ends in a backslash that is not itself escaped.
func continued(text string) bool {
	n := len(text) - len(strings.TrimRight(text, `\`))
	return n%2 == 1
}

func splitProperty(text string) (key, value string, err error) {
	end := len(text)
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.IndexByte("=: \t\f", text[i]) >= 0 {
			end = i
			break
		}
	}
	rest := strings.TrimLeft(text[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	if key, err = unescape(text[:end]); err != nil {
		return "", "", err
	}
	value, err = unescape(rest)
	return key, value, err
}

var escapes = map[byte]byte{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i == len(s)-1 {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 't', 'n', 'r', 'f':
			b.WriteByte(escapes[c])
		case 'u':
			if i+4 >= len(s) {
				return "", fmt.Errorf("malformed \\u escape in %q", s)
			}
			r, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf("malformed \\u escape in %q", s)
			}
			i += 4
			if i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' && utf16.IsSurrogate(rune(r)) {
				low, err := strconv.ParseUint(s[i+3:i+7], 16, 16)
				if err == nil && utf16.DecodeRune(rune(r), rune(low)) != unicode.ReplacementChar {
					b.WriteRune(utf16.DecodeRune(rune(r), rune(low)))
					i += 6
					continue
				}
			}
			b.WriteRune(rune(r))
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// Placeholder reports whether a value is one of those that tools replace when they fill in a template. No password that
// a person or a tool makes up is one.
func Placeholder(value string) bool { return placeholder().MatchString(value) }

var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_.-]*\}$|^\{\{.*\}\}$`)
})
