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

	paths sync.Map // *S by path: many goroutines look one up at a time, and would change an RWMutex for that

	mu     sync.Mutex // guards the fields below, and what is put into paths
	known  int        // paths
	byName map[string]*S
}

func newNames[S any](nameOf func(path string) string, create func(name string) *S) *names[S] {
	return &names[S]{
		nameOf: nameOf, create: create, byName: make(map[string]*S),
	}
}

// of returns the series of a path.
func (n *names[S]) of(path string) *S {
	if s, ok := n.paths.Load(path); ok {
		return s.(*S) //nolint:forcetypeassert // nothing else is there
	}
	name := label(n.nameOf(path)) // without the mutex, because the program's function may take long
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.named(name)
	if n.known >= maxPaths {
		n.paths.Clear() // those in use come back
		n.known = 0
	}
	if _, known := n.paths.Swap(strings.Clone(path), s); !known {
		n.known++
	}
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
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]*S, 0, len(n.byName))
	for _, s := range n.byName {
		all = append(all, s)
	}
	return all
}
