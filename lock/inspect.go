package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Contender is one who holds a lock or waits for it, as seen from outside.
type Contender struct {
	Path    string    // of its node
	Holder  bool      // first in line
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // the node's data as it stands: an address in Curator's, an identifier in kazoo's
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold
}

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
	children, _, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	seats := line.Seats(children, contenders)
	line.Sort(seats)
	return describe(ctx, sess, path, seats)
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
			Holder:  len(list) == 0,
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
