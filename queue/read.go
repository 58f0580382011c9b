package queue

import (
	"errors"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// corrupt is the priority of what stands in a segment and is no item.
const corrupt = LeastUrgent + 1

// unreadError says which item could not be read, and why. Those before it could.
type unreadError struct {
	seq int
	err error
}

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// read reads items of a segment. Those that are not there are left out: they are finished. If the server refuses one,
// or its answer is refused here, it returns those before it with an *unreadError.
func (d *desk) read(dir, class string, items []int) ([]stocked, error) {
	var stock []stocked
	chunk := segment.ReadChunk
	for len(items) > 0 {
		n := min(chunk, len(items))
		var nodes []*zk.Data
		var err error
		if class == "" {
			var data []byte
			data, _, err = d.sess.Get(d.ctx, dir)
			class = string(data)
		}
		if err == nil {
			nodes, err = d.q.store.Read(d.ctx, d.sess, dir, items[:n], segment.Large([]byte(class)))
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
			rec, err := segment.DecodeRecord(node.Data)
			if err != nil {
				rec = &segment.Record{ID: segment.NewID(), Priority: corrupt, Body: node.Data}
			}
			stock = append(stock, stocked{items[i], rec, node.Stat.Ctime})
		}
		items = items[n:]
	}
	return stock, nil
}
