package server

// Reading files of users and certificates.

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// jaasFile matches a JAAS file, in which some line begins a section before any colon.
var jaasFile = regexp.MustCompile(`(?m)^[^:#\n]*\{`)

// readSASLUsers returns passwords by user from a file: a JAAS file, as ZooKeeper uses, or one with lines user:password.
func readSASLUsers(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	users := make(map[string]string)
	if jaasFile.Match(text) {
		if users, err = jaasUsers(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
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
		return nil, fmt.Errorf("%s: no users", path)
	}
	return users, nil
}

func certPool(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in PEM format")
	}
	return pool, nil
}
