package server

// Deleting empty containers and expired TTL nodes.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// reapSlice is how many nodes are deleted at a time, so that clients do not wait long.
const reapSlice = 50

// reaper deletes empty containers and expired TTL nodes, at a bounded rate.
type reaper struct {
	next time.Time // of the next slice or pass
	left []string  // paths left to delete in this pass
}

func (r *reaper) init(interval time.Duration) { r.next = time.Now().Add(interval) }

func (r *reaper) wait() time.Duration { return time.Until(r.next) }

func (r *reaper) run(o *owner) {
	if r.wait() > 0 {
		return
	}
	if len(r.left) == 0 {
		r.left = o.tree.Containers(time.Now().UnixMilli())
	}
	n := min(reapSlice, len(r.left))
	for _, path := range r.left[:n] {
		// The tree checks again, because the node may have a child by now.
		res := o.tree.Write(o.nextZxid(), time.Now().UnixMilli(), nil, wire.OpDeleteContainer,
			&wire.PathRequest{Path: path})
		o.record(&res)
	}
	r.left = r.left[n:]
	pause := o.cfg.ContainerInterval
	if len(r.left) > 0 {
		pause = time.Minute * reapSlice / time.Duration(o.cfg.ContainerRate)
	}
	r.next = time.Now().Add(pause)
}
