package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// corrupt is the priority of what stands in a segment and is no item.
const corrupt = LeastUrgent + 1

// readChunk is how many small items are read in one reply: 200 × smallItem and their heads are less than a packet.
const readChunk = 200

// unreadError says which item could not be read, and why. Those before it could.
type unreadError struct {
	seq int
	err error
}

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// read reads items of a segment. Those that are not there are left out: they are finished. If the server refuses one,
// or its answer is refused here, it returns those before it with an *unreadError.
func (d *desk) read(segment, class string, items []int) ([]stocked, error) {
	var stock []stocked
	chunk := readChunk
	for len(items) > 0 {
		n := min(chunk, len(items))
		var nodes []*zk.Data
		var err error
		if class == "" {
			var data []byte
			data, _, err = d.sess.Get(d.ctx, segment)
			class = string(data)
		}
		if err == nil {
			nodes, err = d.q.readNodes(d.ctx, d.sess, segment, items[:n], class != largeSegment)
		}
		switch {
		case err == nil:
		case errors.Is(err, zk.NoNode):
			return stock, nil // the segment is gone, and with it all its items
		case d.err() != nil:
			return nil, d.err()
		case errors.Is(err, zk.ErrConnectionLost):
			continue
		case n > 1:
			chunk = n / 2 // without the one that cannot be read, or in answers that are small enough
			continue
		default:
			return stock, &unreadError{items[0], err}
		}
		for i, node := range nodes {
			if node == nil {
				continue
			}
			rec, err := decodeRecord(node.Data)
			if err != nil {
				rec = &record{id: newID(), priority: corrupt, body: node.Data}
			}
			stock = append(stock, stocked{items[i], rec, node.Stat.Ctime})
		}
		items = items[n:]
	}
	return stock, nil
}

// readNodes reads the nodes of items; nil stands for one that is not there. Many small ones come in one reply, which a server makes ten times
// faster than as many replies. Large ones come one by one, so that no reply exceeds a packet.
func (q *Queue) readNodes(ctx context.Context, sess *zk.Session, segment string, items []int, small bool) ([]*zk.Data, error) {
	nodes := make([]*zk.Data, len(items))
	if small && !q.single.Load() {
		ops := make([]zk.ReadOp, len(items))
		for i, n := range items {
			ops[i] = zk.GetOp(segment + "/" + itemName(n))
		}
		results, err := sess.MultiRead(ctx, ops...)
		if err == nil {
			for i, r := range results {
				if r.Err == nil {
					nodes[i] = &zk.Data{Data: r.Data, Stat: r.Stat}
				} else if !errors.Is(r.Err, zk.NoNode) {
					return nil, fmt.Errorf("read %s/%s: %w", segment, itemName(items[i]), r.Err)
				}
			}
			return nodes, nil
		}
		if !errors.Is(err, zk.Unimplemented) {
			return nil, err
		}
		q.single.Store(true) // a server before 3.6
	}
	b := sess.Batch()
	reads := make([]*zk.Future[zk.Data], len(items))
	for i, n := range items {
		reads[i] = b.Get(segment + "/" + itemName(n))
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
