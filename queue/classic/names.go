package classic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
)

// key says where an item is in its queue.
type key struct {
	rank      string         // first what the original compares as text: the priority, mostly
	due       int64          // then the time before which it must not be taken, in milliseconds since 1970
	contender line.Contender // then the number that the server gave it, and the name

	base string // the name before the server appended the number: what makes another of the same kind
}

// Numbers are compared as numbers, and across their wrap (see line.Before), where the originals compare texts: those
// serve the items of the two thousand million numbers after the wrap in reverse. Up to there the orders are the same.
func compareKeys(a, b key) int {
	switch {
	case a.rank != b.rank:
		return cmp.Compare(a.rank, b.rank)
	case a.due != b.due:
		return cmp.Compare(a.due, b.due)
	case line.Before(a.contender, b.contender):
		return -1
	case line.Before(b.contender, a.contender):
		return 1
	default:
		return 0
	}
}

// naming is how a queue's nodes are named.
type naming struct {
	parse func(name string) (key, bool) // false for a foreign node, which is neither taken nor counted
	fifo  bool                          // later items always come behind those that exist
}

var (
	simpleNames   = naming{parse: simpleKey, fifo: true}
	curatorNames  = naming{parse: curatorKey, fifo: true}
	idNames       = naming{parse: idKey, fifo: true}
	priorityNames = naming{parse: priorityKey}
	delayNames    = naming{parse: delayKey}
	kazooNames    = naming{parse: kazooKey}
)

const (
	simplePrefix  = "qn-"
	curatorPrefix = "queue-"
	kazooPrefix   = "entry-"
)

// numbered reads the number that follows the first n bytes of a name.
func numbered(name string, n int) (key, bool) {
	if digits := len(name) - n; digits < 10 || digits > 11 {
		return key{}, false
	}
	contender, ok := line.ParseContender(name, []line.Marker{line.Marker(name[:n])})
	return key{contender: contender, base: name[:n]}, ok
}

func simpleKey(name string) (key, bool) {
	if !strings.HasPrefix(name, simplePrefix) {
		return key{}, false
	}
	return numbered(name, len(simplePrefix))
}

// curatorKey accepts every name that begins with queue-, as Curator does. A name without a number comes last, by its
// text, and is requeued under a new one, which does not grow (CURATOR-56).
func curatorKey(name string) (key, bool) {
	if !strings.HasPrefix(name, curatorPrefix) {
		return key{}, false
	}
	if k, ok := numbered(name, len(curatorPrefix)); ok {
		return k, true
	}
	return key{rank: name[len(curatorPrefix):], contender: line.Contender{Name: name}, base: curatorPrefix}, true
}

// idKey leaves the id out of the comparison.
func idKey(name string) (key, bool) {
	_, rest, ok := cutBars(name)
	if !ok {
		return curatorKey(name)
	}
	k, ok := curatorKey(curatorPrefix + rest)
	k.contender.Name = name
	if k.rank == "" {
		k.base = name[:len(name)-len(rest)]
	}
	return k, ok
}

// cutBars cuts queue-|middle|rest.
func cutBars(name string) (middle, rest string, ok bool) {
	after, ok := strings.CutPrefix(name, curatorPrefix+"|")
	if !ok {
		return "", "", false
	}
	return strings.Cut(after, "|")
}

// idPrefix replaces what Curator replaces.
func idPrefix(id string) string {
	return curatorPrefix + "|" + idText(id) + "|"
}

func idText(id string) string { return strings.NewReplacer("/", "_", "|", "_").Replace(id) }

// priorityDigits is the length of a priority in a name: a digit that tells the sign, and eight of a hexadecimal number.
const priorityDigits = 9

// priorityKey puts items without a priority first, such as those that Curator has put back: there they are first,
// too.
func priorityKey(name string) (key, bool) {
	const n = len(curatorPrefix) + priorityDigits
	if len(name) > n && strings.HasPrefix(name, curatorPrefix) {
		if k, ok := numbered(name, n); ok {
			k.rank = name[len(curatorPrefix):n]
			return k, true
		}
	}
	return curatorKey(name)
}

func priorityPrefix(priority int32) string {
	sign := '1'
	if priority < 0 {
		sign = '0'
	}
	return fmt.Sprintf("%s%c%08X", curatorPrefix, sign, uint32(priority))
}

// delayKey takes a time that cannot be read as the beginning of 1970, as Curator does.
func delayKey(name string) (key, bool) {
	epoch, _, ok := cutBars(name)
	if !ok {
		return curatorKey(name)
	}
	k, ok := idKey(name)
	if due, err := strconv.ParseInt(epoch, 16, 64); err == nil {
		k.due = due
	}
	return k, ok
}

func delayPrefix(due time.Time) string {
	return fmt.Sprintf("%s|%08X|", curatorPrefix, max(0, due.UnixMilli()))
}

// kazooKey requires entry-PPP-, where kazoo takes any node at all.
func kazooKey(name string) (key, bool) {
	const n = len("entry-000-")
	if len(name) < n || !strings.HasPrefix(name, kazooPrefix) || name[n-1] != '-' {
		return key{}, false
	}
	k, ok := numbered(name, n)
	k.rank = name[len(kazooPrefix) : n-1]
	return k, ok
}

func kazooName(priority int) string { return fmt.Sprintf("%s%03d-", kazooPrefix, priority) }
