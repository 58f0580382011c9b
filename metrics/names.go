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
