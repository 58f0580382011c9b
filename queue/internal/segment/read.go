package segment

// Reading items.

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// ReadChunk is how many small items are read in one reply: 200 × SmallItem and their heads are less than a packet.
const ReadChunk = 200

// Read returns the nodes of a segment's items; nil stands for one that does not exist. Many small items come in one
// reply, which a server makes ten times faster than as many replies. Large items come one by one, so that no reply
// exceeds a packet.
func Read(
	ctx context.Context, sess *zk.Session, segment string, items []int, large bool,
) ([]*zk.Data, error) {
	nodes := make([]*zk.Data, len(items))
	if !large {
		ops := make([]zk.ReadOp, len(items))
		for i, n := range items {
			ops[i] = zk.GetOp(segment + "/" + ItemName(n))
		}
		results, err := sess.MultiRead(ctx, ops...)
		if err != nil && !errors.Is(err, zk.Unimplemented) {
			return nil, err
		}
		for i, r := range results {
			if r.Err == nil {
				nodes[i] = &zk.Data{Data: r.Data, Stat: r.Stat}
			} else if !errors.Is(r.Err, zk.NoNode) {
				return nil, fmt.Errorf("read %s/%s: %w", segment, ItemName(items[i]), r.Err)
			}
		}
		if len(results) > 0 {
			return nodes, nil
		}
	}
	b := sess.Batch()
	reads := make([]*zk.Future[zk.Data], len(items))
	for i, n := range items {
		reads[i] = b.Get(segment + "/" + ItemName(n))
	}
	b.Send()
	for i, r := range reads {
		data, err := r.Get(ctx)
		switch {
		case err == nil:
			nodes[i] = &data
		case !errors.Is(err, zk.NoNode):
			return nil, err
		}
	}
	return nodes, nil
}
