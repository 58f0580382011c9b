package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	Permit         // has permits of a semaphore, or wants some
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
	case Permit:
		return "permit"
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
	Path    string    // of its node; of the one in Curator's layout if it has two
	Kind    Kind      // what it wants
	Holder  bool      // nobody ahead keeps it waiting; a Set has its lock when it is so at all of its paths
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // the node's data as it stands: an address in Curator's, an identifier in kazoo's, a candidate's id
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold

	Permits int // how many of a semaphore's it has; 0 of who waits for some, and of all others

	// Revoked is the request to give the lock up that was made of this contender last, nil if there was none.
	Revoked *Revocation
}

// czxid is the transaction that made the contender's node.
func (c *Contender) czxid() int64 { return int64(c.Token) / line.Turns }

// known are the markers of all whom Inspect knows.
var known = append([]line.Marker{line.CuratorLatch}, contenders...)

// Inspect returns who holds the lock at path and who waits for it, in the order in which they will be served; readers hold together. It
// knows the contenders of every Layout, of mutexes and of read/write locks, ours, Curator's and kazoo's, of a semaphore, and
// those of an election. Nobody there, or no such path, is an empty list. A contender that leaves meanwhile is left out.
func Inspect(ctx context.Context, client *zk.Client, path string) ([]Contender, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	list, err := inspect(ctx, sess, path)
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	return list, nil
}

func inspect(ctx context.Context, sess *zk.Session, path string) ([]Contender, error) {
	children, _, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if isSemaphore(children) {
		return inspectPermits(ctx, sess, path)
	}
	seats := fold(line.Seats(children, known))
	line.Sort(seats)
	return describe(ctx, sess, path, seats)
}

// isSemaphore reports whether a path with these children is a semaphore's.
func isSemaphore(children []string) bool {
	return slices.Contains(children, leasesDir) || slices.Contains(children, queueDir)
}

// inspectPermits returns who has permits of a semaphore, and who waits for some.
func inspectPermits(ctx context.Context, sess *zk.Session, path string) ([]Contender, error) {
	b := sess.Batch()
	queue, leases := b.Children(path+"/"+queueDir), b.Children(path+"/"+leasesDir) // who takes permits meanwhile is in both, or in the second
	b.Send()
	waiting, err := permits(ctx, sess, path+"/"+queueDir, line.CuratorLock, queue)
	if err != nil {
		return nil, err
	}
	list, err := permits(ctx, sess, path+"/"+leasesDir, line.CuratorLease, leases)
	for i := range list {
		list[i].Holder, list[i].Permits = true, 1
	}
	// Permits that were taken together have one transaction in common.
	slices.SortStableFunc(list, func(a, b Contender) int { return cmp.Compare(a.Token, b.Token) })
	holders := list[:0]
	for _, c := range list {
		if n := len(holders); n > 0 && holders[n-1].Session == c.Session && holders[n-1].Token == c.Token {
			holders[n-1].Permits++
		} else {
			holders = append(holders, c)
		}
	}
	for i := range waiting {
		waiting[i].Holder = false // also the first: it waits for permits
	}
	return append(holders, waiting...), err
}

// permits reads the nodes of one of a semaphore's directories.
func permits(ctx context.Context, sess *zk.Session, dir string, marker line.Marker, asked *zk.Future[zk.Children]) ([]Contender, error) {
	children, err := asked.Get(ctx)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seats := line.Seats(children.Names, []line.Marker{marker})
	line.Sort(seats)
	list, err := describe(ctx, sess, dir, seats)
	for i := range list {
		list[i].Kind = Permit
	}
	return list, err
}

// fold leaves out the second nodes of contenders that have two.
func fold(seats []line.Seat) []line.Seat {
	first := make(map[string]bool)
	for _, s := range seats {
		if !kazoos(s) {
			first[chosen(s.Name)] = true
		}
	}
	return slices.DeleteFunc(seats, func(s line.Seat) bool { return kazoos(s) && first[chosen(s.Name)] })
}

func kazoos(s line.Seat) bool { return s.Marker == line.KazooLock || s.Marker == line.KazooRead }

// chosen is the part of a contender's name that it has chosen at random, in the form of Curator and ours: _c_UUID-. It is the
// name itself in another form.
func chosen(name string) string {
	const length = len("_c_") + 36 + len("-")
	return name[:min(length, len(name))]
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
	var there []line.Seat
	for i, s := range seats {
		node, err := reads[i].Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		token, err := line.Token(node.Stat.Czxid, 0)
		if err != nil {
			return nil, err
		}
		there = append(there, s)
		blocks := anyone
		if isReader(s) {
			blocks = isWriter
		}
		_, ahead := line.Ahead(there, s, blocks)
		c := Contender{
			Path:    path + "/" + s.Name,
			Kind:    kindOf(s),
			Holder:  ahead == 0,
			Data:    node.Data,
			Session: node.Stat.EphemeralOwner,
			Since:   time.UnixMilli(node.Stat.Ctime),
			Token:   Token(token),
		}
		c.Owner, c.Known = parseOwner(node.Data)
		if r, ok := parseRevocation(node.Data); ok {
			c.Revoked = &r
		}
		list = append(list, c)
	}
	return list, nil
}
