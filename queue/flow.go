package queue

// How many items come and go.

import "github.com/seed-a3166700/turnstile/queue/internal/segment"

// Flow is how many items came and went between two looks at a queue.
type Flow struct {
	In  int // came to those that are ready: they were put, requeued, or due, or it was the turn of their group
	Out int // went from these: they were done or removed, became dead letters, or are to come again later
}

// Since tells how many items came and went since an earlier summary of the same queue; one that is given back in its
// place has done neither. It asks no server. It is for rates on screens: where more than a thousand items come and go
// between two looks, or during one, it may tell too few or too many for a moment.
func (s Summary) Since(before Summary) (f Flow) {
	for list, now := range s.ready {
		was, known := before.ready[list]
		if known && len(was) == 0 {
			continue // it was looked at while its segments went: where it ended is not known
		}
		of := flow(was, now, defaultSegment)
		f.In += of.In
		f.Out += of.Out
	}
	return f
}

// maxUnseen is how many segments may have come and gone between two looks. If it seems to be more, another program has
// made one.
const maxUnseen = 1 << 20

// flow tells how many items came and went in a list between two looks at it, where full is how many items a segment
// takes.
func flow(before, now segment.Fills, full int) (f Flow) {
	last := 0
	if len(before) > 0 {
		last = before[len(before)-1].Segment // it was open
	}
	ended := last
	for _, s := range now {
		if unseen := s.Segment - last - 1; unseen > 0 && unseen <= maxUnseen {
			f.In += unseen * full
			f.Out += unseen * full
		}
		last = max(last, s.Segment)
		was, _ := before.Find(s.Segment)
		// These only grow, unless the queue was removed and made again.
		f.In += max(0, s.Created-was.Created)
		f.Out += max(0, s.Gone()-was.Gone())
	}
	for _, was := range before {
		if _, there := now.Find(was.Segment); there {
			continue
		}
		f.Out += was.Left
		if was.Segment == ended && last > ended { // it was filled before it was emptied
			f.In += max(0, full-was.Created)
			f.Out += max(0, full-was.Created)
		}
	}
	return f
}
