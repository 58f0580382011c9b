package line

// Contenders that do not look for ours.

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// families are the names that a program's recipe looks for, by the name of its own node. A program may be configured to
// look for more (kazoo, with extra_lock_patterns), or read names differently (go-zookeeper, whose nodes are named as
// Curator's).
var families = map[Marker][]Marker{
	CuratorLock:  {CuratorLock},
	CuratorRead:  {CuratorRead, CuratorWrite},
	CuratorWrite: {CuratorRead, CuratorWrite},
	KazooLock:    {KazooLock, KazooRead},
	KazooRead:    {KazooLock, KazooRead},
	CuratorLatch: {CuratorLatch},
	SupportOffer: {SupportOffer},
}

// Locks are the markers of all contenders in a lock's line, of every kind and layout. Our locks look for all of them.
var Locks = []Marker{CuratorLock, KazooLock, CuratorRead, CuratorWrite, KazooRead}

// Every is the markers of all contenders in locks' lines and in elections.
var Every = slices.Concat(Locks, []Marker{CuratorLatch, SupportOffer})

// Family returns the names that the program looks for whose node has the marker m.
func (m Marker) Family() []Marker { return families[m] }

// IsReader reports whether the marker is that of a reader, whom other readers do not mind.
func (m Marker) IsReader() bool { return m == CuratorRead || m == KazooRead }

// looksFor reports whether c's program looks for the names of any of mine, as far as c's name tells. Ours look for the
// names of all locks, except for those that stand for elections with names of their own.
func looksFor(c Contender, mine []Marker) bool {
	looks := c.Marker.Family()
	if Ours(c.Name) && c.Marker != CuratorLatch && c.Marker != SupportOffer {
		looks = Locks
	}
	return slices.ContainsFunc(mine, func(m Marker) bool { return slices.Contains(looks, m) })
}

// Unlisted reports whether a name is that of a contender which no recipe of ours, Curator's or kazoo's looks for:
// x-SESSION-SEQ, of zookeeper-recipes' WriteLock.
func Unlisted(name string) bool {
	rest, ok := strings.CutPrefix(name, "x-")
	i := strings.LastIndexByte(rest, '-')
	if !ok || i < 1 {
		return false
	}
	if rest[i-1] == '-' { // a negative number's sign
		i--
	}
	_, err := strconv.ParseInt(rest[:i], 10, 64)
	_, numbered := parseSeq(rest[i+1:])
	return err == nil && numbered
}

// Strangers tells of contenders at one path that do not look for ours: they may be first while ours are. Lines of one
// path share it.
type Strangers struct {
	Tell func(name string) // called once for each, by the goroutine that has seen it

	mu   sync.Mutex
	told map[string]bool // those that were there when the path was last listed
}

// notice looks for strangers among the children of our nodes' path.
func (s *Strangers) notice(own []*node, children []string) {
	if s == nil {
		return
	}
	var mine []Marker
	for _, n := range own {
		if c, ok := ParseContender(path.Base(n.path), Every); ok {
			mine = append(mine, c.Marker)
		}
	}
	there := make(map[string]bool)
	var fresh []string
	s.mu.Lock()
	for _, name := range children {
		c, ok := ParseContender(name, Every)
		if !ok && !Unlisted(name) || ok && (looksFor(c, mine) || c.Marker.IsReader() && mine[0].IsReader()) {
			continue
		}
		there[name] = true
		if !s.told[name] {
			fresh = append(fresh, name)
		}
	}
	s.told = there
	s.mu.Unlock()
	for _, name := range fresh {
		s.Tell(name)
	}
}
