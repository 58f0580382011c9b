package lincheck

// Pauses of a queue.

import "slices"

// PauseState is what a client saw of a queue: from a transaction on it was paused, or not. Versions count the changes.
type PauseState struct {
	Version int32
	Zxid    int64
	Paused  bool
}

// judgePauses checks that nothing was claimed while the queue was paused: between the transaction that paused it and
// the next change, if that is known. A delivery's token is the transaction that claimed the item.
func (j *queueJudge) judgePauses() {
	states := slices.Clone(j.Pauses)
	slices.SortFunc(states, func(a, b PauseState) int { return int(a.Version) - int(b.Version) })
	states = slices.Compact(states)
	for i := 0; i+1 < len(states); i++ {
		a, b := states[i], states[i+1]
		if a.Version == b.Version || a.Zxid >= b.Zxid {
			j.report(nil, "version %d of the pause was seen at %d, and version %d at %d", a.Version, a.Zxid,
				b.Version, b.Zxid)
		}
		if a.Paused && b.Paused && b.Version == a.Version+1 {
			j.report(nil, "the queue was paused by version %d, and again by version %d", a.Version, b.Version)
		}
		if !a.Paused || b.Version != a.Version+1 {
			continue
		}
		for _, it := range j.order {
			for _, d := range it.deliveries {
				if a.Zxid < d.Token && d.Token < b.Zxid {
					j.report([]string{it.id},
						"item %s was claimed by client %d, token %d, while the queue was paused from %d to %d",
						it.id, d.Client, d.Token, a.Zxid, b.Zxid)
				}
			}
		}
	}
}
