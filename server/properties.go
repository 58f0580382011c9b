package server

// Reading Java properties files.

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// property is one line of a Java properties file.
type property struct {
	line       int
	key, value string
}

// readProperties reads a Java properties file such as zoo.cfg: comments start with # or !, keys and values are
// separated by =, : or space, and a backslash at its end continues a line or, elsewhere, escapes a character.
func readProperties(r io.Reader) ([]property, error) {
	var props []property
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		first, text := n, strings.TrimLeft(lines.Text(), " \t\f")
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		for continued(text) && lines.Scan() {
			n++
			text = text[:len(text)-1] + strings.TrimLeft(lines.Text(), " \t\f")
		}
		key, value, err := splitProperty(strings.TrimRight(text, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		props = append(props, property{line: first, key: key, value: strings.TrimSpace(value)})
	}
	return props, lines.Err()
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
			b.WriteRune(rune(r))
			i += 4
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
