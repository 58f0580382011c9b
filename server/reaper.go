package server

import (
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// reapSlice is how many nodes are collected in one go, so that clients do not wait for a long pass.
const reapSlice = 50

// reaper collects empty containers and TTL nodes whose time is up, at a bounded rate.
type reaper struct {
	next time.Time // of the next slice or pass
	left []string  // of this pass
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
		// The tree checks again: the node may have got a child since.
		res := o.tree.Write(o.spend(), time.Now().UnixMilli(), nil, wire.OpDeleteContainer, &wire.PathRequest{Path: path})
		o.record(&res)
	}
	r.left = r.left[n:]
	pause := o.cfg.ContainerInterval
	if len(r.left) > 0 {
		pause = time.Minute * reapSlice / time.Duration(o.cfg.ContainerRate)
	}
	r.next = time.Now().Add(pause)
}
