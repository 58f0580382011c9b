package queue

// The node that says whether consumers may claim items, and how fast.

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// gateRecord is the data of the gate node. The data is empty while there is neither a pause nor a rate.
type gateRecord struct {
	Pause *pauseRecord `json:"pause,omitempty"`
	Rate  *rateRecord  `json:"rate,omitempty"`
}

// parseGate never fails: a person or another program that writes anything else has paused the queue.
func parseGate(data []byte) gateRecord {
	var g gateRecord
	if len(data) > 0 && json.Unmarshal(data, &g) != nil {
		return gateRecord{Pause: &pauseRecord{Reason: string(data)}}
	}
	return g
}

func (g gateRecord) encode() ([]byte, error) {
	if g == (gateRecord{}) {
		return nil, nil
	}
	return json.Marshal(g)
}

// gate reads the gate node.
func (r reader) gate(ctx context.Context) (g gateRecord, stat zk.Stat, err error) {
	err = r.do(ctx, func(sess *zk.Session) error {
		if r.look { // what the server knows will do, and no gate is an open one
			data, found, err := sess.Get(ctx, r.layout.path(dirGate))
			switch {
			case errors.Is(err, zk.NoNode):
				return nil
			case err == nil:
				g, stat = parseGate(data), found
			}
			return err
		}
		node, err := latest(ctx, sess, r.layout.path(dirGate))
		g, stat = parseGate(node.Data), node.Stat
		return err
	})
	return g, stat, err
}

// setGate changes the gate node as change says, which returns false if it is right as it is. It writes on condition of
// the version that it has seen, so that it does not undo what another client does meanwhile. It does ops, too, if it
// writes.
func (p *producer) setGate(ctx context.Context, change func(*gateRecord) bool, ops ...zk.Op) error {
	for {
		g, stat, err := p.gate(ctx)
		if err != nil {
			return err
		}
		if g.Pause != nil && g.Pause.At == 0 {
			g.Pause.At = stat.Mtime
		}
		if !change(&g) {
			return nil
		}
		data, err := g.encode()
		if err != nil {
			return err
		}
		_, err = p.apply(ctx, append([]zk.Op{zk.SetOp(p.layout.path(dirGate), data, stat.Version)}, ops...)...)
		if !errors.Is(err, zk.BadVersion) && !p.missing(err) {
			return err // nil, too
		}
	}
}

// lookAtGate learns whether the queue is paused, and how fast items may be claimed, as far as this consumer's server
// has been told. It asks only if the gate node may have changed.
func (f *fetcher) lookAtGate(ctx context.Context) error {
	if f.co.claims.Knows(claims.Gate) {
		return nil
	}
	data, stat, w, err := f.co.sess.GetW(ctx, f.co.q.layout.path(dirGate))
	if err != nil {
		return err
	}
	g := parseGate(data)
	f.paused, f.rate, f.gate = g.Pause != nil, g.Rate, stat.Version
	f.co.claims.WatchGate(w, f.paused)
	return nil
}

// shut returns ErrPaused or ErrLimited while the consumer may not claim anything, and otherwise nil. It looks at the
// rate only if the consumer is about to claim.
func (f *fetcher) shut(ctx context.Context, claiming bool) error {
	f.limit = nil
	switch {
	case f.paused:
		return ErrPaused
	case f.rate == nil || !claiming:
		return nil
	}
	return f.lookAtLimit(ctx)
}

// stayShut does the next thing for the takers while the consumer may claim nothing, for the reason that shut tells: it
// gives back what was claimed ahead, answers those that do not want to wait, and waits.
func (d *dispatcher) stayShut(ctx context.Context, co *consumer, reason error) error {
	d.takers.noteFetch()
	trying := d.takers.trying()
	if !co.claims.Empty() {
		if _, err := co.returner.returnAll(co.ctx, false); err != nil {
			return err
		}
	}
	if trying { // it learns what is true now, not what a server that lags behind believes
		if err := co.sess.Sync(ctx, d.layout.root); err != nil {
			return err
		}
		if err := co.fetcher.lookAtGate(ctx); err != nil {
			return err
		}
		if err := co.fetcher.shut(ctx, true); !errors.Is(err, ErrEmpty) {
			return err
		}
	}
	if d.takers.refuse(reason) > 0 {
		return co.waiter.wait(ctx)
	}
	return nil
}
