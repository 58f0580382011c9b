package counter

// A process that makes the calls of others with its own.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// lookEvery is how often a process that writes looks for requests while there are none. Where there were some of
	// late it looks with each write: the guests that were answered are about to ask again.
	lookEvery = 20 * time.Millisecond
	// maxGuests is how many requests one write serves.
	maxGuests = 64
	// opsOfGuest is how many operations of the transaction are for one guest.
	opsOfGuest = 2
)

// host is what a process that writes knows of the requests of others. It belongs to the serving goroutine.
type host struct {
	guests   []*request // that waited at lookedAt
	lookedAt time.Time
	seenAt   time.Time       // when there were requests last
	bad      map[string]bool // names of those that cannot be served, as long as they are listed
}

// waiting returns the requests to serve with the next write. Old ones are of little use: their processes have left.
func (h *host) waiting() []*request {
	if time.Since(h.lookedAt) > keepKnown {
		return nil
	}
	return h.guests
}

// guestOps returns the operations that answer requests.
func (r *register) guestOps(guests []*request) []zk.Op {
	ops := make([]zk.Op, 0, opsOfGuest*len(guests))
	for _, g := range guests {
		ops = append(ops, zk.DeleteOp(r.requestsDir()+"/"+g.name, anyVersion),
			receipt.Answer(r.receipts.dir+"/"+g.receipt, g.version, g.stamp, g.answer.encode()))
	}
	return ops
}

// look adds a look for requests to b, behind the write, if it is time for one. Otherwise it returns nil.
func (h *host) look(b *zk.Batch, reg *register) *zk.Future[zk.Children] {
	if time.Since(h.seenAt) > keepKnown && time.Since(h.lookedAt) < lookEvery {
		return nil
	}
	return b.Children(reg.requestsDir())
}

// seen learns what was seen of a look, which may be nil.
func (h *host) seen(ctx context.Context, look *zk.Future[zk.Children]) {
	h.guests = nil // served, or listed again
	if look == nil {
		return
	}
	list, err := look.Get(context.WithoutCancel(ctx)) // it is there, or the connection is lost
	if err == nil || errors.Is(err, zk.NoNode) {
		h.lookedAt = time.Now()
	}
	if len(list.Names) > 0 {
		h.seenAt = h.lookedAt
	}
	bad := h.bad
	h.bad = nil
	for _, name := range list.Names {
		if bad[name] {
			h.ignore(name)
			continue
		}
		if g := parseRequest(name); g != nil && len(h.guests) < maxGuests {
			h.guests = append(h.guests, g)
		}
	}
}

func (h *host) ignore(name string) {
	if h.bad == nil {
		h.bad = make(map[string]bool)
	}
	h.bad[name] = true
}

// leaveOut ignores a request from now on that cannot be served, and removes its node: the guest has left, or the
// receipt that it names is not there.
func (h *host) leaveOut(sess *zk.Session, reg *register, g *request) {
	h.ignore(g.name)
	left := h.guests[:0]
	for _, other := range h.guests {
		if other.name != g.name {
			left = append(left, other)
		}
	}
	h.guests = left
	b := sess.Batch() // if it fails, the guest removes its node, or the next host
	b.Delete(reg.requestsDir()+"/"+g.name, anyVersion).Abandon()
	b.Send()
}
