package tree

import (
	"strings"
	"unicode/utf8"
)

// validPath reports whether path is one that a node may have. ZooKeeper checks UTF-16 units, so that a character outside
// the basic plane is refused for its surrogates, and so is what is not UTF-8: Java reads it as U+FFFD.
func validPath(path string) bool {
	if path == rootPath {
		return true
	}
	if path == "" || path[0] != '/' {
		return false
	}
	start := 1 // of the component
	for i := 1; i < len(path); {
		c := path[i]
		if c == '/' {
			if !validName(path[start:i]) {
				return false
			}
			i++
			start = i
			continue
		}
		if c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(path[i:])
		if !validRune(r) {
			return false
		}
		i += size
	}
	return validName(path[start:])
}

func validName(name string) bool { return name != "" && name != "." && name != ".." }

// validRune judges a character outside ASCII. utf8.RuneError, which stands for bytes that are none, is in the last range.
func validRune(r rune) bool {
	return r > 0x9f && (r < 0xd800 || r > 0xf8ff) && r < 0xfff0
}

// addressable is what create and delete ask of a path before they look for the parent.
func addressable(path string) bool {
	return strings.IndexByte(path, '/') >= 0 && strings.IndexByte(path, 0) < 0
}

// isSystem reports whether path is one of the nodes that cannot be deleted.
func isSystem(path string) bool {
	switch path {
	case rootPath, systemPath, quotaPath, configPath:
		return true
	}
	return false
}

// appendSequence appends the number of a sequential node: ten digits, the sign of a counter that has wrapped among them.
func appendSequence(b []byte, seq int32) []byte {
	const digits = 10
	v, room := int64(seq), digits
	if v < 0 {
		b = append(b, '-')
		v, room = -v, digits-1
	}
	var buf [digits]byte
	i := len(buf)
	for v > 0 || room > 0 {
		i--
		buf[i] = byte('0' + v%10)
		v /= 10
		room--
	}
	return append(b, buf[i:]...)
}
