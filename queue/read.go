package queue

// Items that cannot be read.

import (
	"errors"

	"github.com/seed-a3166700/turnstile/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// corrupt is the priority of a node in a segment that is not an item.
const corrupt = LeastUrgent + 1

// unreadError says which item could not be read, and why. Those before it could.
type unreadError struct {
	seq int
	err error
}

func (e *unreadError) Error() string { return e.err.Error() }
func (e *unreadError) Unwrap() error { return e.err }

// read reads items of a segment. It leaves out those that do not exist: they are finished. If the server refuses one,
// or the client refuses its answer, it returns those before it with an *unreadError.
func (f *fetcher) read(dir, class string, items []int) ([]bufferedItem, error) {
	var buffer []bufferedItem
	chunk := segment.ReadChunk
	for len(items) > 0 {
		n := min(chunk, len(items))
		var nodes []*zk.Data
		var err error
		if class == "" {
			var data []byte
			data, _, err = f.co.sess.Get(f.co.ctx, dir)
			class = string(data)
		}
		if err == nil {
			nodes, err = f.co.d.layout.store.Read(f.co.ctx, f.co.sess, dir, items[:n], segment.Large([]byte(class)))
		}
		switch {
		case err == nil:
		case errors.Is(err, zk.NoNode):
			return buffer, nil // the segment is gone, and with it all its items
		case f.co.err() != nil:
			return nil, f.co.err()
		case errors.Is(err, zk.ErrConnectionLost):
			continue
		case n > 1:
			chunk = n / 2 // without the one that cannot be read, or in replies that are small enough
			continue
		default:
			return buffer, &unreadError{items[0], err}
		}
		for i, node := range nodes {
			if node == nil {
				continue
			}
			rec, err := segment.DecodeRecord(node.Data)
			if err != nil {
				rec = &segment.Record{ID: segment.NewID(), Priority: corrupt, Body: node.Data}
			}
			buffer = append(buffer, bufferedItem{items[i], rec, node.Stat.Ctime})
		}
		items = items[n:]
	}
	return buffer, nil
}
