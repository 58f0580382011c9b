package javafile

// Reading JAAS files.

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// JAASUsers returns the passwords by user of the section Server of a JAAS file. They are the options
// user_<name>="password" of its login modules. What Java refuses is refused. So is what Java would do something for
// that is not done here: other login modules, and properties in values.
func JAASUsers(text string) (map[string]string, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := CheckMark(text); err != nil {
		return nil, err
	}
	p := jaasParser{lexer: jaasLexer{rest: text, line: 1}, seen: make(map[string]bool), users: make(map[string]string)}
	p.advance()
	for p.err == nil && p.token.kind != jaasEnd {
		p.section()
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case !p.seen[jaasServer]:
		return nil, errors.New("no section Server")
	case len(p.users) == 0:
		return nil, errors.New(`section Server names no user: want options like user_bob="password"`)
	}
	return p.users, nil
}

// What is in a JAAS file that is meant for a server of ZooKeeper.
const (
	jaasServer = "Server"
	jaasModule = "org.apache.zookeeper.server.auth.DigestLoginModule"
	jaasUser   = "user_"
	jaasEnd    = 0   // a token's kind: the end of the file
	jaasWord   = 'w' // a token's kind: a word without quotes
	jaasString = '"' // a token's kind: a string in double quotes
	jaasDigits = '0' // a token's kind: a number
)

// jaasParser reads the sections of a file, one token ahead. The first error stays.
type jaasParser struct {
	lexer jaasLexer
	token jaasToken
	err   error
	seen  map[string]bool // sections
	users map[string]string
}

func (p *jaasParser) fail(line int, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: %w", line, fmt.Errorf(format, args...))
		p.token = jaasToken{} // so that every loop ends
	}
}

func (p *jaasParser) advance() {
	if p.err != nil {
		return
	}
	token, err := p.lexer.next()
	if err != nil {
		p.fail(p.lexer.line, "%w", err)
		return
	}
	p.token = token
}

// sign expects a sign.
func (p *jaasParser) sign(sign rune, where string) {
	if p.token.kind != sign {
		p.fail(p.token.line, "want %c %s, not %s", sign, where, p.token)
		return
	}
	p.advance()
}

// text expects a word or a string in double quotes.
func (p *jaasParser) text(what string) string {
	switch p.token.kind {
	case jaasWord, jaasString:
		text := p.token.text
		p.advance()
		return text
	case '\'':
		p.fail(p.token.line, "want %s in double quotes, as Java does", what)
	case jaasEnd:
		p.fail(p.token.line, "the section does not end: want };")
	default:
		p.fail(p.token.line, "want %s, not %s: put it in double quotes", what, p.token)
	}
	return ""
}

// section reads Name { module flag option="value" ...; ... };.
func (p *jaasParser) section() {
	line := p.token.line
	name := p.text("the name of a section")
	p.sign('{', "behind the name of section "+name)
	if p.seen[name] {
		p.fail(line, "there are two sections %s", name)
	}
	p.seen[name] = true
	for p.err == nil && p.token.kind != '}' {
		p.module(name == jaasServer)
	}
	p.sign('}', "at the end of section "+name)
	p.sign(';', "behind the } of section "+name)
}

// module reads one login module with its options. Those of other sections are not for us.
func (p *jaasParser) module(ours bool) {
	at := p.token.line
	module := p.text("the class of a login module")
	line := p.token.line
	flag := p.text("a flag")
	switch strings.ToUpper(flag) {
	case "REQUIRED", "REQUISITE", "SUFFICIENT":
		if ours && p.err == nil && module != jaasModule {
			p.fail(at, "login module %s is not supported in section %s: use %s", module, jaasServer, jaasModule)
		}
	case "OPTIONAL": // Java logs in without a module of which there is no class
	default:
		p.fail(line, "want required, requisite, sufficient or optional behind the login module, not %s", flag)
	}
	for p.err == nil && p.token.kind != ';' {
		line = p.token.line
		key := p.text("an option, or ; behind the last one")
		p.sign('=', "behind the option "+key)
		value := p.text("the value of option " + key)
		user, ok := strings.CutPrefix(key, jaasUser)
		if !ours || !ok || p.err != nil {
			continue
		}
		if err := checkExpanded(value); err != nil {
			p.fail(line, "option %s: %w", key, err)
		}
		p.users[user] = value
	}
	p.sign(';', "behind the options of a login module")
}

// javaProperty is what Java expands in the values of JAAS files. ${{ is not expanded.
var javaProperty = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{[^{}][^}]*\}|\$\{\}`)
})

// checkExpanded returns an error if a password has a part for which Java would put in a property. A server that takes
// the placeholder for the password lets in whoever has read the template.
func checkExpanded(value string) error {
	if found := javaProperty().FindString(value); found != "" {
		return fmt.Errorf("%s is a placeholder, and nothing puts a value in here: write the value itself", found)
	}
	return nil
}

// jaasToken is a word, a string, or a sign. A sign's kind is itself.
type jaasToken struct {
	kind rune
	text string // of words and strings
	line int
}

// String describes a token in an error, without a word that may be a part of a password.
func (t jaasToken) String() string {
	switch t.kind {
	case jaasEnd:
		return "the end of the file"
	case jaasWord:
		return "another word"
	case jaasString, '\'':
		return "a string"
	case jaasDigits:
		return "a number"
	}
	return string(t.kind)
}

// jaasLexer splits a JAAS file into tokens as Java's StreamTokenizer does that reads such files.
type jaasLexer struct {
	rest string
	line int
}

// next returns the next token.
func (l *jaasLexer) next() (jaasToken, error) {
	if err := l.skip(); err != nil || l.rest == "" {
		return jaasToken{line: l.line}, err
	}
	token := jaasToken{line: l.line}
	first, size := utf8.DecodeRuneInString(l.rest)
	switch {
	case first == '"' || first == '\'':
		token.kind = first
		var err error
		token.text, err = l.quoted(byte(first))
		return token, err
	case jaasNumber().MatchString(l.rest):
		token.kind = jaasDigits
		l.rest = l.rest[len(jaasNumber().FindString(l.rest)):]
	case first != '-' && isJAASWord(first):
		token.kind = jaasWord
		end := strings.IndexFunc(l.rest, func(r rune) bool { return !isJAASWord(r) && (r < '0' || r > '9') })
		if end < 0 {
			end = len(l.rest)
		}
		token.text, l.rest = l.rest[:end], l.rest[end:]
	default:
		token.kind = first
		l.rest = l.rest[size:]
	}
	return token, nil
}

// jaasNumber matches numbers. A word does not begin like one.
var jaasNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?(\.|[0-9])[0-9.]*`)
})

// isJAASWord reports whether a word that is not in quotes can contain r. Digits can follow the first character.
func isJAASWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 160 || strings.ContainsRune("$_-*.", r)
}

// skip skips white space and comments: /* */, //, and, as for Java, what follows one slash.
func (l *jaasLexer) skip() error {
	for l.rest != "" {
		switch {
		case l.rest[0] <= ' ':
			if l.rest[0] == '\n' {
				l.line++
			}
			l.rest = l.rest[1:]
		case strings.HasPrefix(l.rest, "/*"):
			comment, after, ok := strings.Cut(l.rest[2:], "*/")
			if !ok {
				return errors.New("a comment does not end: want */")
			}
			l.line += strings.Count(comment, "\n")
			l.rest = after
		case l.rest[0] == '/':
			end := strings.IndexAny(l.rest, "\r\n")
			if end < 0 {
				end = len(l.rest)
			}
			l.rest = l.rest[end:]
		default:
			return nil
		}
	}
	return nil
}

// quoted reads a string in quotes.
func (l *jaasLexer) quoted(quote byte) (string, error) {
	var b strings.Builder
	rest := l.rest[1:]
	for rest != "" && rest[0] != '\n' && rest[0] != '\r' {
		c := rest[0]
		rest = rest[1:]
		switch {
		case c == quote:
			l.rest = rest
			return b.String(), nil
		case c != '\\':
			b.WriteByte(c)
		case rest == "":
		case '0' <= rest[0] && rest[0] <= '7':
			octal := jaasOctal().FindString(rest)
			rest = rest[len(octal):]
			var r rune
			for _, digit := range octal {
				r = r<<3 + digit - '0'
			}
			b.WriteRune(r)
		default:
			if i := strings.IndexByte("abfnrtv", rest[0]); i >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[i])
				rest = rest[1:]
				break
			}
			if rest[0] == '\n' || rest[0] == '\r' {
				return "", errors.New(`a string does not end on its line: want " and not \ there`)
			}
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(rest[:size])
			rest = rest[size:]
		}
	}
	return "", errors.New("a string does not end on its line")
}

// jaasOctal matches the digits of a character, at most \377.
var jaasOctal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-3][0-7]{0,2}|[4-7][0-7]?)`)
})
