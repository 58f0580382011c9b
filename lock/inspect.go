package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Contender is one who holds a lock or waits for it, as seen from outside.
type Contender struct {
	Path    string    // of its node; of the one in Curator's layout if it has two
	Second  string    // of the other one, in kazoo's layout; empty if there is none
	Holder  bool      // it has the lock: nobody stands ahead whom it waits for
	Shared  bool      // it is a reader, who has the lock together with other readers
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // the node's data as it stands: an address in Curator's, an identifier in kazoo's
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold
}

// known are the markers of all whom Inspect knows.
var known = append([]line.Marker{line.CuratorLock, line.CuratorLatch}, sharing...)

// Inspect returns who holds the lock at path and who waits for it, in the order in which they will be served. It knows the contenders of
// every Layout, of mutexes and of read/write locks, ours, Curator's and kazoo's, and those of an election. Nobody there, or no such path,
// is an empty list. A contender that leaves meanwhile is left out.
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
	seats, second := fold(line.Seats(children, known))
	line.Sort(seats)
	list, err := describe(ctx, sess, path, seats)
	for i, c := range list {
		if name, ok := second[c.Path[len(path)+1:]]; ok {
			list[i].Second = path + "/" + name
		}
	}
	return list, err
}

// fold takes the second nodes of contenders that have two out of the seats, and returns their names by those of the first.
func fold(seats []line.Seat) (left []line.Seat, second map[string]string) {
	first := make(map[string]string)
	for _, s := range seats {
		if !kazoos(s) {
			first[chosen(s.Name)] = s.Name
		}
	}
	second = make(map[string]string)
	left = slices.DeleteFunc(seats, func(s line.Seat) bool {
		name, ok := first[chosen(s.Name)]
		if !ok || !kazoos(s) {
			return false
		}
		second[name] = s.Name
		return true
	})
	return left, second
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
			return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
		}
		token, err := line.Token(node.Stat.Czxid, 0)
		if err != nil {
			return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
		}
		there = append(there, s)
		blocks := anyone
		if isReader(s) {
			blocks = isWriter
		}
		_, ahead := line.Ahead(there, s, blocks)
		c := Contender{
			Path:    path + "/" + s.Name,
			Holder:  ahead == 0,
			Shared:  isReader(s),
			Data:    node.Data,
			Session: node.Stat.EphemeralOwner,
			Since:   time.UnixMilli(node.Stat.Ctime),
			Token:   Token(token),
		}
		c.Owner, c.Known = parseOwner(node.Data)
		list = append(list, c)
	}
	return list, nil
}
