package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Kind is what a contender wants of a lock.
type Kind int

// The kinds.
const (
	// Exclusive wants the lock for itself alone: a contender of a Mutex, of a Set, of Curator's InterProcessMutex, of kazoo's Lock and
	// WriteLock. LeaderSelector's candidates, and those of kazoo's Election, have the same names.
	Exclusive Kind = iota
	Writer         // wants a read/write lock for writing, in Curator's names
	Reader         // wants a read/write lock for reading
	Candidate      // stands for election, in LeaderLatch's names
)

// String returns the kind's name, in lower case.
func (k Kind) String() string {
	switch k {
	case Exclusive:
		return "exclusive"
	case Writer:
		return "writer"
	case Reader:
		return "reader"
	case Candidate:
		return "candidate"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

func kindOf(s line.Seat) Kind {
	switch {
	case isReader(s):
		return Reader
	case s.Marker == line.CuratorWrite:
		return Writer
	case s.Marker == line.CuratorLatch:
		return Candidate
	default:
		return Exclusive
	}
}

// Contender is one who holds a lock or waits for it, as seen from outside.
type Contender struct {
	Path    string    // of its node; of the first, if it stands in line with two (Both)
	Kind    Kind      // what it wants
	Holder  bool      // nobody ahead keeps it waiting; a Set has its lock when it is so at all of its paths
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // the node's data as it stands: an address in Curator's, an identifier in kazoo's, a candidate's id
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold
}

// Inspect returns who holds the lock at path and who waits for it, in the order in which they will be served; readers hold together. It
// knows Curator's and kazoo's contenders, too, and the candidates of an election. Nobody there, or no such path, is an empty list. A
// contender that leaves meanwhile is left out.
func Inspect(ctx context.Context, client *zk.Client, path string) ([]Contender, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	children, _, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	seats := line.Seats(children, append([]line.Marker{line.CuratorLatch}, contenders...))
	line.Sort(seats)
	seats = slices.CompactFunc(seats, twins)
	return describe(ctx, sess, path, seats)
}

// twins reports whether two seats are one contender's: the layout Both makes its nodes in one transaction, with numbers that follow each
// other and one random part.
func twins(a, b line.Seat) bool {
	const random = len("_c_01234567-89ab-cdef-0123-456789abcdef-")
	return len(a.Name) > random && strings.HasPrefix(a.Name, "_c_") && strings.HasPrefix(b.Name, a.Name[:random])
}

// describe reads the nodes of seats, all in one go.
func describe(ctx context.Context, sess *zk.Session, path string, seats []line.Seat) ([]Contender, error) {
	b := sess.Batch()
	reads := make([]*zk.Future[zk.Data], len(seats))
	for i, s := range seats {
		reads[i] = b.Get(path + "/" + s.Name)
	}
	b.Send()
	list := make([]Contender, 0, len(seats))
	readers := 0 // in the list
	for i, s := range seats {
		node, err := reads[i].Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
		}
		token, err := line.Token(node.Stat.Czxid, 0)
		if err != nil {
			return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
		}
		c := Contender{
			Path:    path + "/" + s.Name,
			Kind:    kindOf(s),
			Holder:  len(list) == 0 || isReader(s) && readers == len(list),
			Data:    node.Data,
			Session: node.Stat.EphemeralOwner,
			Since:   time.UnixMilli(node.Stat.Ctime),
			Token:   Token(token),
		}
		c.Owner, c.Known = parseOwner(node.Data)
		if c.Kind == Reader {
			readers++
		}
		list = append(list, c)
	}
	return list, nil
}
