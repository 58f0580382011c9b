package server

// Deleting empty containers and expired TTL nodes.

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	reapSlice = 50   // how many nodes are deleted at a time, so that clients do not wait long
	reapLook  = 1000 // how many are looked at
)

// reaper deletes empty containers and expired TTL nodes, at a bounded rate.
type reaper struct {
	next time.Time // of the next slice or pass
	left []string  // paths to delete, found in this pass
	look int       // nodes left to look at in this pass
}

func (r *reaper) init(interval time.Duration) { r.next = time.Now().Add(interval) }

func (r *reaper) wait() time.Duration { return time.Until(r.next) }

func (r *reaper) run(o *owner) {
	if r.wait() > 0 {
		return
	}
	if len(r.left) == 0 {
		if r.look == 0 {
			r.look = o.tree.CollectableCount()
		}
		r.left, r.look = o.tree.Containers(time.Now().UnixMilli(), r.look, reapLook)
	}
	n := 0
	for start := o.cost; n < min(reapSlice, len(r.left)) && o.cost-start < largeShare; n++ {
		expires := o.tree.Expires(r.left[n])
		// The tree checks again, because the node may have a child by now.
		res := o.tree.Write(o.nextZxid(), time.Now().UnixMilli(), nil, wire.OpDeleteContainer,
			&wire.PathRequest{Path: r.left[n]})
		o.record(&res)
		if expires && res.Code == wire.OK {
			o.stats.ttlDeleted.Add(1)
		}
	}
	r.left = r.left[n:]
	pause := o.cfg.ContainerInterval
	switch {
	case n > 0 && len(r.left)+r.look > 0:
		pause = time.Minute * time.Duration(n) / time.Duration(o.cfg.ContainerRate)
	case r.look > 0:
		pause = time.Millisecond
	}
	r.next = time.Now().Add(pause)
}
