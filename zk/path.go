package zk

// Valid paths, and the chroot.

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// configPath is the node that holds an ensemble's configuration. It is the same under every chroot.
const configPath = "/zookeeper/config"

// ValidatePath returns an error that wraps BadArguments if servers do not accept path as the path of a node.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return badPath(path, "must not be empty")
	case path[0] != '/':
		return badPath(path, "must begin with a slash")
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return badPath(path, "must not end with a slash")
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return badPath(path, "must not have an empty component")
		case ".", "..":
			return badPath(path, "must not have relative components")
		}
	}
	for i, r := range path {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(path[i:]); n == 1 {
				return badPath(path, "must be valid UTF-8")
			}
		}
		if !allowed(r) {
			return badPath(path, fmt.Sprintf("must not have the character %U, which servers refuse", r))
		}
	}
	return nil
}

// allowed reports whether servers allow a character in a path. They check UTF-16 units, and so refuse surrogates and
// all characters that are encoded as two of them.
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

// validateNew checks the path of a node to create. If it is sequential the path may end with a slash, because a counter
// follows.
func validateNew(path string, mode Mode) error {
	if mode.sequential() {
		return ValidatePath(path + "0")
	}
	return ValidatePath(path)
}

// A chroot is the prefix of all paths of a client at the server. It is empty if there is none.
type chroot string

// server converts a caller's path to a path at the server.
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

// prefix is like server for prefixes and sequential paths, which need not be whole paths.
func (c chroot) prefix(path string) string {
	if c == "" {
		return path
	}
	return string(c) + path
}

// local converts a path at the server to the caller's path. A path outside the chroot stays as it is.
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

// holds reports whether a path at the server is in the chroot.
func (c chroot) holds(path string) bool {
	rest, ok := strings.CutPrefix(path, string(c))
	return ok && (rest == "" || rest[0] == '/')
}
