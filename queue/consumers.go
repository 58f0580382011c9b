package queue

// Who takes items.

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
			list, err = q.reader.consumers(ctx, sess, claimed, len(claimed))
		}
		return err
	})
	if err != nil {
		return nil, q.failed("list consumers", err)
	}
	return list, nil
}

// consumers lists the consumers with what they have claimed, at most so many: those with the most. It reads no others.
func (r reader) consumers(
	ctx context.Context, sess *zk.Session, claimed map[string]int, most int,
) ([]ActiveConsumer, error) {
	ids := slices.SortedFunc(maps.Keys(claimed), func(a, b string) int {
		return cmp.Or(claimed[b]-claimed[a], strings.Compare(a, b))
	})
	ids = ids[:min(len(ids), max(0, most))]
	b := sess.Batch()
	looks := make(map[string]*zk.Future[zk.Data], len(ids))
	for _, id := range ids {
		looks[id] = b.Get(r.layout.path(dirConsumers, id))
	}
	b.Send()
	var list []ActiveConsumer
	for id, look := range looks {
		node, err := look.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue // it has just ended
		}
		if err != nil {
			return nil, err
		}
		list = append(list, ActiveConsumer{
			Consumer: *parseConsumer(id, node.Data),
			Session:  node.Stat.EphemeralOwner, Since: time.UnixMilli(node.Stat.Ctime), Claimed: claimed[id],
		})
	}
	slices.SortFunc(list, func(a, b ActiveConsumer) int {
		return cmp.Or(b.Claimed-a.Claimed, a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}
