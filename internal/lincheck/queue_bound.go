package lincheck

// The bound of a queue.

import "math"

// stay is the time for which an item was in a queue, as far as is known.
type stay struct {
	*putItem

	// sure means that the item was acknowledged, and did not move between places so that a count could miss it or see
	// it twice.
	sure     bool
	from, to int64 // it certainly was in the queue between these, if it is sure
	out      int64 // it certainly was gone after this
}

// stays returns the stays of all items that were put, or may have been.
func (j *queueJudge) stays() []stay {
	var list []stay
	for _, x := range j.byBody {
		if x.seen == "" && x.id == "" && x.Certain {
			continue
		}
		s := stay{putItem: x, sure: x.id != "" && !x.Delayed, from: x.Put.Done, to: math.MaxInt64, out: math.MaxInt64}
		if it := j.items[x.seen]; it != nil {
			for _, d := range it.deliveries {
				f := d.Finish
				switch {
				case f.Asked == 0, f.Fate == GivenBack:
					continue
				case f.Fate == PutOff:
					s.sure = false
				case f.Done > 0:
					s.out = min(s.out, f.Done)
				}
				s.to = min(s.to, f.Asked)
			}
		}
		list = append(list, s)
	}
	return list
}

// judgeBound checks that puts were admitted and refused as the bound demands. A put counts what is in the queue some
// time after its call; that it counts concurrent puts is not promised.
func (j *queueJudge) judgeBound() {
	limit := j.Rules.MaxItems
	if limit == 0 {
		return
	}
	all := j.stays()
	for i := range j.Puts {
		p := &j.Puts[i]
		n := len(p.Items)
		if p.Full && p.Waits && n <= limit {
			j.report(p.IDs, "client %d was told at %d that the queue is full, but was to wait for room", p.Client,
				p.Done)
		}
		if p.Known == 0 || p.Done == 0 || len(p.IDs) == 0 && !p.Full {
			continue
		}
		in, may := 0, 0
		for _, s := range all {
			switch {
			case s.Put == p:
			case s.sure && s.from < p.Known && s.to > p.Done:
				in++
				may++
			case s.Put.Asked < p.Done && s.out > p.Known:
				if may++; !s.sure {
					may++ // it may have moved during the count
				}
			}
			if p.Full && p.Key != "" && s.Key == p.Key && s.id != "" && s.Put != p && s.Put.Done < p.Known {
				j.report([]string{s.id}, "client %d was told at %d that the queue is full, but item %s has its key",
					p.Client, p.Done, s.id)
			}
		}
		switch {
		case len(p.IDs) > 0 && in+n > limit:
			j.report(p.IDs,
				"client %d put %d items at %d beside %d that it must have known of, more than the bound of %d",
				p.Client, n, p.Done, in, limit)
		case p.Full && may+n <= limit:
			j.report(p.IDs,
				"client %d was told at %d that %d more items are too many,"+
					" but at most %d of %d can have been in the queue",
				p.Client, p.Done, n, may, limit)
		}
	}
}
