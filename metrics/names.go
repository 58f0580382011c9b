package metrics

// The names of locks, elections and queues.

import (
	"strings"
	"sync"
)

const (
	maxNames = 200  // that are shown; the others are one
	maxPaths = 4096 // whose names are remembered
	other    = "other"
)

// names finds the series of a path's name.
type names[S any] struct {
	nameOf func(path string) string
	create func(name string) *S

	mu     sync.RWMutex // guards the fields below
	paths  map[string]*S
	byName map[string]*S
}

func newNames[S any](nameOf func(path string) string, create func(name string) *S) *names[S] {
	return &names[S]{
		nameOf: nameOf, create: create, paths: make(map[string]*S), byName: make(map[string]*S),
	}
}

// of returns the series of a path.
func (n *names[S]) of(path string) *S {
	n.mu.RLock()
	s := n.paths[path]
	n.mu.RUnlock()
	if s != nil {
		return s
	}
	name := label(n.nameOf(path)) // without the mutex, because the program's function may take long
	n.mu.Lock()
	defer n.mu.Unlock()
	s = n.named(name)
	if len(n.paths) >= maxPaths {
		clear(n.paths) // those in use come back
	}
	n.paths[strings.Clone(path)] = s
	return s
}

// named returns the series of a name. The caller holds mu.
func (n *names[S]) named(name string) *S {
	if name == "" {
		name = other
	}
	s, ok := n.byName[name]
	if !ok && len(n.byName) >= maxNames {
		name = other
		s, ok = n.byName[name]
	}
	if !ok {
		s = n.create(name)
		n.byName[name] = s
	}
	return s
}

// all returns the series of all names.
func (n *names[S]) all() []*S {
	n.mu.RLock()
	defer n.mu.RUnlock()
	all := make([]*S, 0, len(n.byName))
	for _, s := range n.byName {
		all = append(all, s)
	}
	return all
}

// fold replaces UUIDs, hexadecimal numbers of at least 8 digits, and other numbers by an asterisk.
func fold(path string) string {
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
