package server

// Reading JAAS files.

import (
	"errors"
	"fmt"
	"strings"
)

// jaasUsers returns the passwords by user of the section Server of a JAAS file. They are the options
// user_<name>="password" of its login module.
func jaasUsers(text string) (map[string]string, error) {
	l := jaasLexer{rest: text}
	users := make(map[string]string)
	found := false
	for {
		name, ok := l.next()
		if !ok {
			break
		}
		if open, ok := l.next(); !ok || open != "{" {
			return nil, fmt.Errorf("section %s: want { after its name", name)
		}
		ours := name == "Server"
		found = found || ours
		if err := l.section(func(option, value string) {
			if user, ok := strings.CutPrefix(option, "user_"); ok && ours {
				users[user] = value
			}
		}); err != nil {
			return nil, fmt.Errorf("section %s: %w", name, err)
		}
	}
	switch {
	case l.err != nil:
		return nil, l.err
	case !found:
		return nil, errors.New("no section Server")
	case len(users) == 0:
		return nil, errors.New(`section Server names no user: want options like user_bob="password"`)
	}
	return users, nil
}

// jaasLexer splits a JAAS file into tokens as Java does: words, quoted strings and single signs. // and /* */ are
// comments.
type jaasLexer struct {
	rest string
	err  error
}

const jaasSigns = "{};=,"

// section reads up to the end of a section and calls option for each of its options.
func (l *jaasLexer) section(option func(key, value string)) error {
	last := ""
	for {
		token, ok := l.next()
		switch {
		case !ok && l.err != nil:
			return l.err
		case !ok:
			return errors.New("it does not end: want };")
		case token == "}":
			if end, ok := l.next(); !ok || end != ";" {
				return errors.New("want ; after }")
			}
			return nil
		case token == "=":
			value, ok := l.next()
			if l.err != nil {
				return l.err
			}
			if !ok || len(value) == 1 && strings.Contains(jaasSigns, value) {
				return fmt.Errorf("option %s has no value", last)
			}
			option(last, strings.TrimPrefix(value, quoted))
		}
		last = token
	}
}

// quoted is the first byte of a token that was in quotes, which tells it from a sign.
const quoted = "\x00"

// next returns the next word, sign, or quoted string, the last with quoted in front. It returns false at the end.
func (l *jaasLexer) next() (string, bool) {
	for {
		l.rest = strings.TrimLeft(l.rest, " \t\r\n\f")
		switch {
		case l.rest == "" || l.err != nil:
			return "", false
		case strings.HasPrefix(l.rest, "/*"):
			_, after, ok := strings.Cut(l.rest[2:], "*/")
			if !ok {
				l.err = errors.New("a comment does not end: want */")
			}
			l.rest = after
		case l.rest[0] == '/': // as in Java, one slash suffices
			_, l.rest, _ = strings.Cut(l.rest, "\n")
		case l.rest[0] == '"' || l.rest[0] == '\'':
			return l.quote()
		case strings.IndexByte(jaasSigns, l.rest[0]) >= 0:
			token := l.rest[:1]
			l.rest = l.rest[1:]
			return token, true
		default:
			end := strings.IndexAny(l.rest, " \t\r\n\f\"'/"+jaasSigns)
			if end < 0 {
				end = len(l.rest)
			}
			token := l.rest[:end]
			l.rest = l.rest[end:]
			return token, true
		}
	}
}

func (l *jaasLexer) quote() (string, bool) {
	b := []byte(quoted)
	for i := 1; i < len(l.rest) && l.rest[i] != '\n'; i++ {
		switch c := l.rest[i]; {
		case c == l.rest[0]:
			l.rest = l.rest[i+1:]
			return string(b), true
		case c == '\\' && i+1 < len(l.rest):
			i++
			c = l.rest[i]
			if e, ok := escapes[c]; ok {
				c = e
			}
			b = append(b, c)
		default:
			b = append(b, c)
		}
	}
	l.err = errors.New("a quoted string does not end on its line")
	return "", false
}
