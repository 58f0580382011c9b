package queue

// Who takes items.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// ActiveConsumer is a consumer with what it has in hand.
type ActiveConsumer struct {
	Consumer

	Session int64     // under which it takes items
	Since   time.Time // when it began, by the servers' clock
	Claimed int       // items that were delivered to it and are not finished, or that it buffers
}

// Consumers tells which consumers the queue has, those with the most items first. A Queue that has taken nothing yet is
// none, and one that waits for items is. It may or may not count items that are claimed or finished meanwhile.
func (q *Queue) Consumers(ctx context.Context) ([]ActiveConsumer, error) {
	var list []ActiveConsumer
	err := q.do(ctx, func(sess *zk.Session) error {
		claimed, err := q.reader.claimed(ctx, sess)
		if err == nil {
			list, err = q.reader.consumers(ctx, sess, claimed)
		}
		return err
	})
	if err != nil {
		return nil, q.failed("list consumers", err)
	}
	return list, nil
}

// consumers lists the consumers with what they have claimed.
func (r reader) consumers(
	ctx context.Context, sess *zk.Session, claimed map[string]int,
) ([]ActiveConsumer, error) {
	names, _, err := sess.Children(ctx, r.layout.path(dirConsumers))
	if err != nil {
		return nil, err
	}
	b := sess.Batch()
	looks := make([]*zk.Future[zk.Data], len(names))
	for i, name := range names {
		looks[i] = b.Get(r.layout.path(dirConsumers, name))
	}
	b.Send()
	var list []ActiveConsumer
	for i, look := range looks {
		node, err := look.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue // it has just ended
		}
		if err != nil {
			return nil, err
		}
		list = append(list, ActiveConsumer{
			Consumer: *parseConsumer(names[i], node.Data),
			Session:  node.Stat.EphemeralOwner, Since: time.UnixMilli(node.Stat.Ctime), Claimed: claimed[names[i]],
		})
	}
	slices.SortFunc(list, func(a, b ActiveConsumer) int {
		return cmp.Or(b.Claimed-a.Claimed, a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}
