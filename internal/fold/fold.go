// Package fold makes few names of many paths: what differs from one to the next becomes an asterisk. A metric must not
// have a value for each path that there ever was.
package fold

import "strings"

// Path replaces UUIDs, hexadecimal numbers of at least 8 digits, and other numbers by an asterisk.
func Path(path string) string {
	var b strings.Builder
	b.Grow(len(path))
	for i := 0; i < len(path); {
		if !alphanumeric(path[i]) {
			b.WriteByte(path[i])
			i++
			continue
		}
		if end := uuid(path, i); end > 0 {
			b.WriteByte('*')
			i = end
			continue
		}
		end := i
		for end < len(path) && alphanumeric(path[end]) {
			end++
		}
		foldWord(&b, path[i:end])
		i = end
	}
	return b.String()
}

// foldWord folds a word of letters and digits.
func foldWord(b *strings.Builder, word string) {
	digits := strings.TrimPrefix(word, "0x")
	if (len(digits) >= 8 || digits != word) && hex(digits) {
		b.WriteByte('*')
		return
	}
	for i := range len(word) {
		switch {
		case word[i] < '0' || word[i] > '9':
			b.WriteByte(word[i])
		case i == 0 || word[i-1] < '0' || word[i-1] > '9':
			b.WriteByte('*')
		}
	}
}

// uuid returns where the UUID ends that begins at i, 0 if there is none.
func uuid(s string, i int) (end int) {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	end = i + len(form)
	if len(s) < end || len(s) > end && alphanumeric(s[end]) {
		return 0
	}
	for k := range len(form) {
		if c := s[i+k]; form[k] == '-' && c != '-' || form[k] == 'x' && !hex(string(c)) {
			return 0
		}
	}
	return end
}

func hex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
