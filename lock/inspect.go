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
	Path    string    // of its node
	Holder  bool      // it has the lock: first in line, or one of the readers whom no writer is ahead of
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // the node's data as it stands: an address in Curator's, an identifier in kazoo's
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold

	// Revoked is the request to give the lock up that was made of this contender last, nil if there was none.
	Revoked *Revocation
}

// czxid is the transaction that made the contender's node.
func (c *Contender) czxid() int64 { return int64(c.Token) / line.Turns }

// Inspect returns who holds the lock at path and who waits for it, in the order in which they will be served. It knows Curator's and
// kazoo's contenders, too. Nobody there, or no such path, is an empty list. A contender that leaves meanwhile is left out.
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
	seats := line.Seats(children, everyone)
	line.Sort(seats)
	return describe(ctx, sess, path, seats)
}

// everyone are the markers of all who stand in a mutex's or a read/write lock's line.
var everyone = slices.Concat([]line.Marker{line.CuratorLock}, sharing)

func isReader(s line.Seat) bool { return s.Marker == line.CuratorRead || s.Marker == line.KazooRead }

// holds reports whether the contender at s has the lock, if those ahead of it are as given: whoever is first, and who reads if all ahead
// do, too.
func holds(s line.Seat, ahead []line.Seat) bool {
	return len(ahead) == 0 || isReader(s) && !slices.ContainsFunc(ahead, func(s line.Seat) bool { return !isReader(s) })
}

// describe reads the nodes of seats, all in one go.
func describe(ctx context.Context, sess *zk.Session, path string, seats []line.Seat) ([]Contender, error) {
	b := sess.Batch()
	reads := make([]*zk.Future[zk.Data], len(seats))
	for i, s := range seats {
		reads[i] = b.Get(path + "/" + s.Name)
	}
	b.Send()
	list, present := make([]Contender, 0, len(seats)), make([]line.Seat, 0, len(seats))
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
		c := Contender{
			Path:    path + "/" + s.Name,
			Holder:  holds(s, present),
			Data:    node.Data,
			Session: node.Stat.EphemeralOwner,
			Since:   time.UnixMilli(node.Stat.Ctime),
			Token:   Token(token),
		}
		c.Owner, c.Known = parseOwner(node.Data)
		if r, ok := parseRevocation(node.Data); ok {
			c.Revoked = &r
		}
		list, present = append(list, c), append(present, s)
	}
	return list, nil
}
