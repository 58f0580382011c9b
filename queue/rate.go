package queue

// A limit of how many items a queue delivers in a time.

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// Rate bounds how many items a queue delivers in a time, to all its consumers in all processes together. The zero Rate
// is no bound.
type Rate struct {
	Items int           // deliveries, 1 to 1,000,000,000
	Per   time.Duration // in this time, 1 ms to 366 days
	Burst int           // at most so many at once, up to Items; 1 if zero
}

// interval is the time for one item, rounded up: so the items are never more than the rate allows.
func (r Rate) interval() time.Duration { return (r.Per-1)/time.Duration(r.Items) + 1 }

// check returns the rate with its default, or an error that says what is wrong with it.
func (r Rate) check() (Rate, error) {
	const most, longest = 1_000_000_000, 366 * 24 * time.Hour
	if r == (Rate{}) {
		return r, nil
	}
	if r.Burst == 0 {
		r.Burst = 1
	}
	switch {
	case r.Items < 1 || r.Items > most || r.Per < time.Millisecond || r.Per > longest:
		return r, fmt.Errorf("%w: a rate is 1 to %d items per 1ms to 366 days, not %d per %v",
			zk.BadArguments, most, r.Items, r.Per)
	case r.Burst < 1 || r.Burst > r.Items:
		return r, fmt.Errorf("%w: the burst of a rate of %d items must be between 1 and that, not %d",
			zk.BadArguments, r.Items, r.Burst)
	}
	return r, nil
}

// rateRecord is a Rate in the gate node.
type rateRecord struct {
	Items int   `json:"items"`
	Per   int64 `json:"per_ns"`
	Burst int   `json:"burst"`
}

func (r *rateRecord) rate() Rate {
	if r == nil {
		return Rate{}
	}
	checked, err := Rate{r.Items, time.Duration(r.Per), r.Burst}.check()
	if err != nil || checked == (Rate{}) { // another program wrote it: the slowest that makes sense is better than none
		return Rate{1, time.Second, 1}
	}
	return checked
}

// SetRate bounds how many items the queue delivers in a time, for all its consumers in all processes, until it is set
// again; the zero Rate ends that. Each delivery counts, also that of an item that comes again.
//
// After SetRate has returned nil, items are claimed at that rate: in any time t by the servers' clock no more than
// Burst + t*Items/Per, and none ahead of the goroutines that take them. Consumers that wait because of it take turns. A
// claim counts at the time at which its consumer asked the servers for the time: if it is long on its way from there,
// up to Burst more items may be claimed right after it. If ctx ends first, the rate may be set all the same.
func (q *Queue) SetRate(ctx context.Context, r Rate) error {
	r, err := r.check()
	if err == nil {
		err = q.producer.setGate(ctx, func(g *gateRecord) bool {
			if g.Rate.rate() == r {
				return false
			}
			if g.Rate = nil; r != (Rate{}) {
				g.Rate = &rateRecord{r.Items, int64(r.Per), r.Burst}
			}
			return true
		}, zk.SetOp(q.layout.path(dirRate), nil, -1))
	}
	if err != nil {
		return q.failed("set the rate of", err)
	}
	return nil
}

// Rate returns the rate that SetRate has set, the zero Rate if there is none.
func (q *Queue) Rate(ctx context.Context) (Rate, error) {
	g, _, err := q.reader.gate(ctx)
	if err != nil {
		return Rate{}, q.failed("look at", err)
	}
	return g.Rate.rate(), nil
}

// limit is how many items a consumer may claim now. The rate node has the time at which the last claim will be paid
// for: a claim of n items sets it n intervals later, on condition of its version, in the transaction that claims. It
// may be ahead of the servers' time by the burst. This is the generic cell rate algorithm of ITU-T I.371: one number
// is a token bucket.
type limit struct {
	Rate
	paid    int64 // ns since 1970, by the servers' clock: at least now
	version int32 // of the rate node
	items   int   // that may be claimed now
	next    int64 // ms since 1970: when the next may be, if none may
}

// newLimit returns the limit at a time, in ms since 1970, of a rate node that says paid.
func newLimit(r Rate, paid, now int64, version int32) *limit {
	const ms = int64(time.Millisecond)
	each := int64(r.interval())
	burst := int64(r.Burst) * each
	if paid > now*ms+burst+int64(clockLasts) {
		// The servers' clock has gone back: that must not stop the queue for as long. One item may be claimed now, and
		// its claim sets the node right.
		paid = now*ms + burst - each
	}
	l := &limit{Rate: r, version: version, paid: max(paid, now*ms)}
	l.items = int(max(0, (now*ms+burst-l.paid)/each))
	if l.items == 0 {
		l.next = (l.paid + each - burst + ms - 1) / ms
	}
	return l
}

// op is the operation that pays for n items.
func (l *limit) op(q *base, n int) zk.Op {
	paid := l.paid + int64(n)*int64(l.interval())
	return zk.SetOp(q.layout.path(dirRate), strconv.AppendInt(nil, paid, 10), l.version)
}

// lookAtLimit learns how many items may be claimed now. It returns ErrLimited if none may.
func (f *fetcher) lookAtLimit(ctx context.Context) error {
	if err := f.co.askTime(ctx); err != nil {
		return err
	}
	data, stat, err := f.co.sess.Get(ctx, f.co.q.layout.path(dirRate))
	if err != nil {
		return err
	}
	paid, _ := strconv.ParseInt(string(data), 10, 64) // anything else is 0
	f.limit = newLimit(f.rate.rate(), paid, f.co.q.clock.now(), stat.Version)
	if f.limit.items == 0 {
		return ErrLimited
	}
	return nil
}

// room returns how many items to claim at once.
func (f *fetcher) room() int {
	demand := f.takers.demand()
	if f.limit != nil {
		return max(1, min(demand, f.limit.items, maxPrefetch))
	}
	return min(maxPrefetch, max(f.co.claims.Pace(), demand))
}
