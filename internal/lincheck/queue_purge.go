package lincheck

// Purges.

import (
	"math"
	"slices"
)

// Purge is a call that removed the items that were not claimed.
type Purge struct {
	Client int
	Serial int   // numbers the calls of a client
	Asked  int64 // before the call
	Done   int64 `json:",omitempty"` // after the call; 0 if the caller was killed first
	N      int   `json:",omitempty"` // how many items it reported as removed
	Failed bool  `json:",omitempty"` // whether it returned an error: it may have removed some

	// Session is that of a consumer that was alone until its purge returned; 0: another purge. Then the purge had
	// learned of everything that was acknowledged before Known.
	Session int64 `json:",omitempty"`
	Known   int64 `json:",omitempty"`
}

// end returns when the purge had removed, or claimed for removal, all that it removes.
func (p *Purge) end() int64 { return answered(p.Done) }

// answered returns when a call was over, at the latest, whose answer came at a time, or never if that is 0.
func answered(done int64) int64 {
	if done == 0 {
		return math.MaxInt64
	}
	return done
}

// mayBePurged reports whether an item that was free from a time on, and not seen afterwards, may have been purged.
func (j *queueJudge) mayBePurged(free int64) bool {
	for i := range j.Purges {
		if j.Purges[i].end() > free {
			return true
		}
	}
	return false
}

// purgedBefore reports whether an item may have been removed by a purge that began before a time.
func (j *queueJudge) purgedBefore(id string, before int64) bool {
	free := int64(0) // of an item that was never seen: only a put that was told of it knows it
	if it := j.items[id]; it != nil {
		if !it.gone() {
			return false
		}
		free = it.free()
	}
	return slices.ContainsFunc(j.Purges, func(p Purge) bool { return p.end() > free && p.Asked < before })
}

// free returns the earliest time after its last delivery from which on no consumer had the item.
func (it *item) free() int64 {
	n := len(it.deliveries)
	if n == 0 {
		if it.from == nil {
			return 0
		}
		return it.from.Asked
	}
	last := it.deliveries[n-1]
	switch {
	case last.Finish.Done > 0:
		return last.Finish.Asked
	case last.Alive > 0 && last.Finish.Asked == 0:
		return last.Alive
	default:
		return last.Asked // its consumer may have lost it without noticing
	}
}

// gone reports whether nothing certain is known of where the item went.
func (it *item) gone() bool {
	n := len(it.deliveries)
	if len(it.dead) > 0 {
		return false
	}
	return n == 0 || it.deliveries[n-1].Finish.Done == 0 || it.deliveries[n-1].Finish.Fate != Acknowledged
}

// judgePurges checks what purges removed.
func (j *queueJudge) judgePurges() {
	for _, it := range j.order {
		for _, d := range it.deliveries {
			if d.Finish.Robbed {
				j.report([]string{it.id},
					"item %s was claimed by client %d, token %d, and another client has removed it",
					it.id, d.Client, d.Token)
			}
		}
	}
	for i := range j.Purges {
		p := &j.Purges[i]
		j.judgeNumber(p)
		if p.Session == 0 || p.Failed || p.Done == 0 {
			continue
		}
		for _, it := range j.order {
			if d := it.survives(p); d != nil {
				j.report([]string{it.id},
					"item %s was free when client %d, alone, began to purge at %d,"+
						" and was delivered to client %d, token %d, afterwards",
					it.id, p.Client, p.Asked, d.Client, d.Token)
			}
		}
	}
}

// judgeNumber checks the number that a purge reported.
func (j *queueJudge) judgeNumber(p *Purge) {
	may := 0
	for _, it := range j.order {
		if it.gone() && it.free() < p.end() {
			may++
		}
	}
	for _, x := range j.byBody { // never seen, but perhaps in the queue
		if x.seen == "" && !x.Certain && x.Asked < p.end() {
			may++
		}
	}
	if p.N > may {
		j.report(nil, "client %d was told at %d that %d items were purged, but only %d can have been", p.Client, p.Done,
			p.N, may)
	}
}

// survives returns a delivery of an item that a purge which was alone must have removed; nil if there is none.
func (it *item) survives(p *Purge) *Delivery {
	if it.from == nil || it.from.id == "" || it.from.Put.Done >= p.Known {
		return nil
	}
	var after *Delivery
	for _, d := range it.deliveries {
		switch {
		case d.Asked > p.Done:
			after = d
		case d.Session == p.Session && (d.Finish.Done == 0 || d.Finish.Done > p.Asked):
			return nil // its consumer had it
		}
	}
	return after
}
