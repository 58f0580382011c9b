package tree

// Valid paths and the numbers of sequential nodes.

import (
	"strings"
	"unicode/utf8"
)

// validPath reports whether a node may have path. ZooKeeper checks UTF-16 units, so it refuses characters outside the
// basic plane for their surrogates, and bytes that are not UTF-8 because Java decodes them as U+FFFD.
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

// validRune reports whether a name may contain r, which is not ASCII. The last range includes utf8.RuneError.
func validRune(r rune) bool {
	return r > 0x9f && (r < 0xd800 || r > 0xf8ff) && r < 0xfff0
}

// addressable reports whether create and delete may go on to look up the parent of path.
func addressable(path string) bool {
	return strings.IndexByte(path, '/') >= 0 && strings.IndexByte(path, 0) < 0
}

// isSystem reports whether path is a system node, which cannot be deleted.
func isSystem(path string) bool {
	switch path {
	case rootPath, systemPath, quotaPath, configPath:
		return true
	}
	return false
}

// appendSequence appends the number of a sequential node, padded to ten characters. A counter that has wrapped has a
// sign, which is one of the ten.
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
