package server

// Reading files of users.

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/server/internal/javafile"
)

// jaasFile matches a JAAS file, in which some line begins a section before any colon.
var jaasFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[^:#\n]*\{`)
})

// ReadSASLUsers returns passwords by user, for Config.SASLUsers, from a file with lines user:password. Lines that begin
// with # are comments. It returns an error for another line, for a name or a password with a blank at an end, for a
// password that is a placeholder such as ${PASSWORD}, and if there are no users.
func ReadSASLUsers(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if jaasFile().Match(text) {
		return nil, fmt.Errorf("%s: it is a JAAS file, want lines user:password; a JAAS file is what "+
			"java.security.auth.login.config of a zoo.cfg can name", path)
	}
	if err := javafile.CheckMark(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	users := make(map[string]string)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, password, ok := strings.Cut(line, ":")
		if !ok || user == "" || password == "" {
			return nil, fmt.Errorf("%s, line %d: want user:password", path, n)
		}
		if strings.TrimSpace(user) != user || strings.TrimSpace(password) != password {
			return nil, fmt.Errorf("%s, line %d: a blank beside a name or a password would be part of it: leave it "+
				"out (only a JAAS file can have such a password)", path, n)
		}
		if javafile.Placeholder(password) {
			return nil, fmt.Errorf("%s, line %d: %s is a placeholder, and nothing puts a value in here: "+
				"write the password itself", path, n, password)
		}
		if _, twice := users[user]; twice {
			return nil, fmt.Errorf("%s, line %d: %q is named twice", path, n, user)
		}
		users[user] = password
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s: no users", path)
	}
	return users, nil
}
