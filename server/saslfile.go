package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// jaasServer finds the section of a JAAS file that is the server's, jaasUser the users in it.
var (
	jaasServer = regexp.MustCompile(`(?s)\bServer\s*\{(.*?)\}\s*;`)
	jaasUser   = regexp.MustCompile(`\buser_([^\s=]+)\s*=\s*"((?:[^"\\]|\\.)*)"`)
)

// readSASLUsers reads users and passwords: from a JAAS file, where ZooKeeper keeps them, or from a file with user:password
// in each line.
func readSASLUsers(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	users := make(map[string]string)
	if section := jaasServer.FindSubmatch(text); section != nil {
		for _, m := range jaasUser.FindAllStringSubmatch(string(section[1]), -1) {
			users[m[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(m[2])
		}
		if len(users) == 0 {
			return nil, fmt.Errorf(`%s: section Server names no user: want lines as user_bob="password"`, path)
		}
		return users, nil
	}
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
		users[user] = password
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("%s: no users in it", path)
	}
	return users, nil
}

func certPool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in PEM form in it")
	}
	return pool, nil
}
