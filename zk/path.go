package zk

// Valid paths, and the chroot.

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// configPath is the node that holds an ensemble's configuration. It is the same under every chroot.
const configPath = "/zookeeper/config"

// ValidatePath returns nil if a server can have a node at path, and an error that says why not otherwise.
// The error wraps BadArguments.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return badPath(path, "it is empty")
	case path[0] != '/':
		return badPath(path, "it must begin with a slash")
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return badPath(path, "it must not end with a slash")
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return badPath(path, "it has an empty component")
		case ".", "..":
			return badPath(path, "relative components are not resolved")
		}
	}
	for i, r := range path {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(path[i:]); n == 1 {
				return badPath(path, "it is not valid UTF-8")
			}
		}
		if !allowed(r) {
			return badPath(path, fmt.Sprintf("servers refuse the character %U", r))
		}
	}
	return nil
}

// allowed follows the server, which looks at UTF-16 units: what takes two of them is refused because of its surrogates.
func allowed(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return false
	default:
		return true
	}
}

func badPath(path, why string) error {
	return fmt.Errorf("%w: path %q: %s", BadArguments, path, why)
}

// validateNew checks the path of a node to create; a sequential one may end with a slash, because the counter follows.
func validateNew(path string, mode Mode) error {
	if mode.sequential() {
		return ValidatePath(path + "0")
	}
	return ValidatePath(path)
}

// A chroot is the path that stands before every path of a client on the server, "" if there is none.
type chroot string

// server returns the path on the server of the caller's path.
func (c chroot) server(path string) string {
	switch {
	case c == "" || path == configPath:
		return path
	case path == "/":
		return string(c)
	default:
		return string(c) + path
	}
}

// prefix is server for what need not be a whole path: prefixes and sequential paths.
func (c chroot) prefix(path string) string {
	if c == "" {
		return path
	}
	return string(c) + path
}

// local returns the caller's path of a path on the server. What is not below the chroot stays as it is.
func (c chroot) local(path string) string {
	if c == "" {
		return path
	}
	rest, ok := strings.CutPrefix(path, string(c))
	switch {
	case !ok:
		return path
	case rest == "":
		return "/"
	case rest[0] != '/':
		return path
	default:
		return rest
	}
}

// holds reports whether a path on the server is below the chroot.
func (c chroot) holds(path string) bool {
	rest, ok := strings.CutPrefix(path, string(c))
	return ok && (rest == "" || rest[0] == '/')
}
