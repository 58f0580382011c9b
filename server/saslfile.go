package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// jaasFile tells a JAAS file from one with users alone: a section begins before any colon.
var jaasFile = regexp.MustCompile(`(?m)^[^:#\n]*\{`)

// readSASLUsers reads users and passwords: from a JAAS file, where ZooKeeper keeps them, or from a file with user:password
// in each line.
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
