package lincheck

import "math"

// Purge is a call that has removed whatever was not claimed.
type Purge struct {
	Client int
	Serial int   // tells the calls of a client apart
	Asked  int64 // before it was called
	Done   int64 `json:",omitempty"` // when it had returned; 0 if nobody lived to see it
	N      int   `json:",omitempty"` // how many it says it has removed
	Failed bool  `json:",omitempty"` // it has returned an error: it may have removed all, or not

	// Session is that of a purger which is a consumer that was alone until the purge had returned; 0: it was not. Then the purge had been told of
	// whatever was acknowledged before Known.
	Session int64 `json:",omitempty"`
	Known   int64 `json:",omitempty"`
}

// end is when the purge had removed what it removes, or had taken it to remove it.
func (p *Purge) end() int64 {
	if p.Done == 0 {
		return math.MaxInt64
	}
	return p.Done
}

// mayBePurged reports whether an item that was free from some time on, and was not seen after that, may have been purged.
func (j *queueJudge) mayBePurged(free int64) bool {
	for i := range j.Purges {
		if j.Purges[i].end() > free {
			return true
		}
	}
	return false
}

// free is the earliest time from which on nobody had the item after its last delivery.
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
		return last.Asked // its consumer may have lost it before it noticed
	}
}

// gone reports whether an item is nowhere, for all that is known for certain.
func (it *item) gone() bool {
	n := len(it.deliveries)
	if len(it.dead) > 0 {
		return false
	}
	return n == 0 || it.deliveries[n-1].Finish.Done == 0 || it.deliveries[n-1].Finish.Fate != Acknowledged
}

// judgePurges judges what purges have removed.
func (j *queueJudge) judgePurges() {
	for _, it := range j.order {
		for _, d := range it.deliveries {
			if d.Finish.Robbed {
				j.offend([]string{it.id}, "item %s was claimed by client %d, token %d, and somebody else has removed it", it.id, d.Client, d.Token)
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
				j.offend([]string{it.id}, "item %s was free when client %d, alone, began to purge at %d, and was delivered to client %d, token %d, after that was over",
					it.id, p.Client, p.Asked, d.Client, d.Token)
			}
		}
	}
}

// judgeNumber judges whether a purge has removed as many as it says.
func (j *queueJudge) judgeNumber(p *Purge) {
	may := 0
	for _, it := range j.order {
		if it.gone() && it.free() < p.end() {
			may++
		}
	}
	for _, x := range j.parcels { // that were never seen, and may have been in
		if x.seen == "" && !x.Certain && x.Asked < p.end() {
			may++
		}
	}
	if p.N > may {
		j.offend(nil, "client %d was told at %d that %d items are purged, and only %d can have been", p.Client, p.Done, p.N, may)
	}
}

// survives returns a delivery of an item that the purge, which was alone, must have removed before; nil if there is none.
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
			return nil // it was in hand
		}
	}
	return after
}
