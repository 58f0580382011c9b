package lincheck

// Dead letters that were put back.

import (
	"math"
	"slices"
	"strings"
)

// Requeue is a call that put dead letters back.
type Requeue struct {
	Client int
	Serial int      // numbers the calls of a client
	Items  []string `json:",omitempty"` // to put back; empty: all
	Seen   []Dead   `json:",omitempty"` // dead letters that the caller saw before the call
	Asked  int64    // before the call
	Done   int64    `json:",omitempty"` // after the call; 0 if the caller was killed first
	N      int      `json:",omitempty"` // how many it reported as put back
	Failed bool     `json:",omitempty"` // whether it returned an error: it may have put back more
	// Session is that of a client that was the queue's only consumer from before the call on; 0: another client.
	Session int64 `json:",omitempty"`
}

func (r *Requeue) end() int64 {
	if r.Done == 0 || r.Failed {
		return math.MaxInt64
	}
	return r.Done
}

// of reports whether the call concerns an item.
func (r *Requeue) of(id string) bool { return len(r.Items) == 0 || slices.Contains(r.Items, id) }

// certain reports whether the call itself put back every item that it was given.
func (r *Requeue) certain() bool { return r.Done > 0 && len(r.Items) > 0 && r.N == len(r.Items) }

// mayBeBack reports whether an item that was dead after one time may have been put back before another.
func (j *queueJudge) mayBeBack(id string, after, before int64) bool {
	for i := range j.Requeues {
		if r := &j.Requeues[i]; r.of(id) && r.end() > after && r.Asked < before {
			return true
		}
	}
	return false
}

// revived reports whether an item can have died after delivery a and been put back before the later delivery b.
func (j *queueJudge) revived(a, b *Delivery) bool {
	switch f := a.Finish; {
	case f.Done > 0 && f.Fate == Acknowledged:
		return false
	case f.Done > 0 && a.ends(j.Rules):
		return j.mayBeBack(a.Item, f.Asked, b.Got)
	case f.Fate == Rejected, j.Rules.MaxAttempts > 0: // its consumer may have lost it without noticing
		return j.mayBeBack(a.Item, a.Asked, b.Got)
	default:
		return false
	}
}

// lives splits the deliveries of an item where it must have died and been put back.
func (j *queueJudge) lives(it *item) [][]*Delivery {
	var lives [][]*Delivery
	begin := 0
	for i := 1; i < len(it.deliveries); i++ {
		a, b := it.deliveries[i-1], it.deliveries[i]
		if (b.Attempt <= a.Attempt || a.Finish.Done > 0 && a.ends(j.Rules)) && j.revived(a, b) {
			lives = append(lives, it.deliveries[begin:i])
			begin = i
		}
	}
	return append(lives, it.deliveries[begin:])
}

// judgeRequeues checks what was seen of dead letters before they were put back, and what came of them.
func (j *queueJudge) judgeRequeues() {
	for i := range j.Requeues {
		r := &j.Requeues[i]
		for _, x := range r.Seen {
			if it := j.items[x.Item]; !it.saidBefore(x, r.Asked) && !j.spent(x) {
				j.report([]string{x.Item},
					"item %s was dead after %d attempts, because of %q, which no consumer had given",
					x.Item, x.Attempts, x.Reason)
			}
		}
		if !r.certain() {
			continue
		}
		for _, id := range r.Items {
			if it := j.items[id]; it != nil {
				j.judgeReturn(it, r)
			}
		}
	}
}

// saidBefore reports whether a consumer rejected the item with the letter's reason, or was about to, before a time.
func (it *item) saidBefore(x Dead, at int64) bool {
	return slices.ContainsFunc(it.deliveries, func(d *Delivery) bool {
		return d.Finish.Fate == Rejected && d.Finish.Reason == x.Reason && d.Finish.Asked > 0 && d.Finish.Asked < at &&
			d.Attempt <= x.Attempts
	})
}

// spent reports whether a letter says that all attempts failed.
func (j *queueJudge) spent(x Dead) bool {
	limit := j.Rules.MaxAttempts
	return limit > 0 && x.Attempts >= limit && strings.Contains(x.Reason, "attempts")
}

// judgeReturn checks what became of an item that a call certainly put back.
func (j *queueJudge) judgeReturn(it *item, r *Requeue) {
	i := slices.IndexFunc(it.deliveries, func(d *Delivery) bool { return d.Got > r.Asked })
	over := func(d *Delivery) bool { return d.Finish.Done > 0 && d.Finish.Done < r.Asked }
	switch {
	case i < 0 && len(it.deliveries) > 0 && over(it.deliveries[len(it.deliveries)-1]):
		if (len(it.dead) == 0 || !j.spent(it.dead[0])) && !j.mayBePurged(r.Asked) {
			j.report([]string{it.id}, "item %s was put back by client %d at %d, and not delivered again", it.id,
				r.Client, r.Asked)
		}
	case i < 0:
	case r.Session != 0 && it.deliveries[i].Session == r.Session && it.deliveries[i].Alone &&
		it.deliveries[i].Attempt != 1:
		j.report([]string{it.id}, "item %s was put back by client %d, alone, and then delivered in attempt %d, want 1",
			it.id, r.Client, it.deliveries[i].Attempt)
	}
}
