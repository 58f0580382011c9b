package lincheck

import "math"

// stay is for how long a parcel was in a queue, as far as is known.
type stay struct {
	*parcel

	sure     bool  // it was acknowledged, and did not move from one place to another where a count may miss it or see it twice
	from, to int64 // it was in for certain between these, if it is sure
	out      int64 // it was not there any more for certain after this
}

// stays returns those of everything that was put, or may have been.
func (j *queueJudge) stays() []stay {
	var list []stay
	for _, x := range j.parcels {
		if x.seen == "" && x.id == "" && x.Certain {
			continue
		}
		s := stay{parcel: x, sure: x.id != "" && !x.Delayed, from: x.Put.Done, to: math.MaxInt64, out: math.MaxInt64}
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

// judgeBound judges whether puts were let in, and refused, as the bound says. A put counts what is in some time after it was asked for, and what
// others put at the same moment is not promised to count.
func (j *queueJudge) judgeBound() {
	limit := j.Rules.MaxItems
	if limit == 0 {
		return
	}
	all := j.stays()
	for i := range j.Puts {
		p := &j.Puts[i]
		n := len(p.Parcels)
		if p.Full && p.Waits && n <= limit {
			j.offend(p.IDs, "client %d was told at %d that the queue is full, and was to wait for room", p.Client, p.Done)
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
					may++ // it may have moved while it was counted
				}
			}
			if p.Full && p.Key != "" && s.Key == p.Key && s.id != "" && s.Put != p && s.Put.Done < p.Known {
				j.offend([]string{s.id}, "client %d was told at %d that the queue is full, and item %s is in under its key", p.Client, p.Done, s.id)
			}
		}
		switch {
		case len(p.IDs) > 0 && in+n > limit:
			j.offend(p.IDs, "client %d has put %d items at %d, and %d were in of which it must have known, more than the bound, %d", p.Client, n, p.Done, in, limit)
		case p.Full && may+n <= limit:
			j.offend(p.IDs, "client %d was told at %d that %d items more are too many, and %d can have been in, of %d", p.Client, p.Done, n, may, limit)
		}
	}
}
