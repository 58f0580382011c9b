package lincheck

// The order of deliveries.

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// arrival is the interval in which an item arrived in its place. An item that was put with a delay or in a
// group, or put off, arrives when no client sees it, and counts as out of place.
type arrival struct {
	*item
	from, to int64
	place    string // of the first delivery
	left     int    // deliveries still to come
	ready    bool
	moved    bool // out of place
}

func (j *queueJudge) arrivals() map[string]*arrival {
	all := make(map[string]*arrival, len(j.order))
	for _, it := range j.order {
		if it.from == nil || len(it.deliveries) == 0 {
			continue
		}
		a := &arrival{
			item: it, from: it.from.Asked, to: math.MaxInt64, left: len(it.deliveries),
			moved: it.from.Delayed || it.from.Group != "", ready: true,
		}
		if it.from.id != "" {
			a.to = it.from.Done
		}
		for _, d := range it.deliveries {
			a.to = min(a.to, d.Got)
		}
		a.place = a.first().Place
		// It may have died before any client could tell.
		a.moved = a.moved || j.Rules.MaxAttempts > 0 && j.mayBeBack(it.id, a.from, a.first().Got)
		all[it.id] = a
	}
	return all
}

// line holds the ready items of a priority in an order, and returns the first. It may contain items that are no
// longer ready.
type line struct {
	list []*arrival
	less func(a, b *arrival) bool
}

func (l *line) Len() int           { return len(l.list) }
func (l *line) Less(a, b int) bool { return l.less(l.list[a], l.list[b]) }
func (l *line) Swap(a, b int)      { l.list[a], l.list[b] = l.list[b], l.list[a] }
func (l *line) Push(x any)         { l.list = append(l.list, x.(*arrival)) }
func (l *line) Pop() any {
	n := len(l.list) - 1
	x := l.list[n]
	l.list = l.list[:n]
	return x
}

// first returns the first ready item; nil if there is none.
func (l *line) first() *arrival {
	for l.Len() > 0 {
		if x := l.list[0]; x.ready && !x.moved {
			return x
		}
		heap.Pop(l)
	}
	return nil
}

// lines are the ready items of a priority: by the time at which they had certainly arrived, and by their places.
type lines struct{ byTime, byPlace line }

// sweep visits the deliveries in the order of time and tracks which items are certainly ready at each. These are
// delivered later and were put and not delivered yet, given back to their places, or left behind by a consumer that
// is gone.
type sweep struct {
	*queueJudge
	all    map[string]*arrival
	lines  map[int]*lines
	back   map[string]*Delivery // deliveries whose items return to their places when they are over
	parent map[*Put][]*arrival  // the items of a call, in order
}

// judgeOrder checks the order in which consumers that were alone received their items.
func (j *queueJudge) judgeOrder() {
	s := &sweep{
		queueJudge: j, all: j.arrivals(),
		lines: make(map[int]*lines), back: make(map[string]*Delivery), parent: make(map[*Put][]*arrival),
	}
	for _, it := range j.order {
		if a := s.all[it.id]; a != nil {
			s.parent[it.from.Put] = append(s.parent[it.from.Put], a)
			s.push(a)
		}
	}
	for _, d := range j.byTime() {
		a := s.all[d.Item]
		if a == nil {
			continue
		}
		if d.Alone {
			s.goBack(d)
			s.judge(a, d)
		}
		s.deliver(a, d)
	}
}

// judgePlaces checks that items put one after the other have places in that order.
func (j *queueJudge) judgePlaces() {
	byPriority := make(map[int][]*arrival)
	for _, a := range j.arrivals() {
		if !a.moved && a.place != "" {
			byPriority[a.item.from.Priority] = append(byPriority[a.item.from.Priority], a)
		}
	}
	for _, list := range byPriority {
		overtaken(list, func(a *arrival) (int64, int64, string) {
			return a.from, a.to, a.place
		}, func(a, last *arrival) {
			j.report([]string{a.id, last.id},
				"item %s has place %s, before item %s in place %s, which had arrived before it",
				a.id, a.place, last.id, last.place)
		})
	}
}

// overtaken calls tell for every element whose place is before that of an element that had ended when it began, with
// the largest such place.
func overtaken[T any](list []*T, look func(*T) (began, ended int64, place string), tell func(late, last *T)) {
	byBegin := slices.Clone(list)
	slices.SortStableFunc(byBegin, func(a, b *T) int {
		x, _, _ := look(a)
		y, _, _ := look(b)
		return cmp.Compare(x, y)
	})
	byEnd := slices.Clone(list)
	slices.SortStableFunc(byEnd, func(a, b *T) int {
		_, x, _ := look(a)
		_, y, _ := look(b)
		return cmp.Compare(x, y)
	})
	var last *T // of the elements that had ended
	var lastPlace string
	for _, late := range byBegin {
		began, _, place := look(late)
		for len(byEnd) > 0 {
			_, ended, before := look(byEnd[0])
			if ended >= began {
				break
			}
			if last == nil || before > lastPlace {
				last, lastPlace = byEnd[0], before
			}
			byEnd = byEnd[1:]
		}
		if last != nil && lastPlace > place {
			tell(late, last)
		}
	}
}

// byTime returns the deliveries in the order in which consumers received them.
func (j *queueJudge) byTime() []*Delivery {
	var list []*Delivery
	for i := range j.Deliveries {
		list = append(list, &j.Deliveries[i])
	}
	slices.SortFunc(list, func(a, b *Delivery) int { return cmp.Compare(a.Got, b.Got) })
	return list
}

func (s *sweep) push(a *arrival) {
	l := s.lines[a.item.from.Priority]
	if l == nil {
		l = &lines{}
		l.byTime.less = func(a, b *arrival) bool { return a.to < b.to }
		l.byPlace.less = func(a, b *arrival) bool { return a.place < b.place }
		s.lines[a.item.from.Priority] = l
	}
	heap.Push(&l.byTime, a)
	heap.Push(&l.byPlace, a)
}

// goBack makes ready what returned to its place before d was asked for.
func (s *sweep) goBack(d *Delivery) {
	for id, b := range s.back {
		if b.Finish.Fate == GivenBack && b.Finish.Done > 0 && b.Finish.Done < d.Asked || b.Finish.Asked == 0 &&
			b.Session != d.Session {
			delete(s.back, id)
			a := s.all[id]
			a.ready = a.left > 0
			s.push(a)
		}
	}
}

// judge checks that d is the next delivery.
func (s *sweep) judge(a *arrival, d *Delivery) {
	a.ready = false
	for priority, l := range s.lines {
		x := l.byTime.first()
		switch {
		case x == nil:
		case priority < d.Priority && x.to < d.Known:
			s.report([]string{d.Item, x.id},
				"client %d, alone, got item %s of priority %d before item %s of priority %d, which it knew",
				d.Client, d.Item, d.Priority, x.id, priority)
		case priority == d.Priority && !a.moved && x.to < a.from:
			s.report([]string{d.Item, x.id},
				"client %d, alone, got item %s before item %s, which had arrived before it and was ready",
				d.Client, d.Item, x.id)
		}
	}
	if l := s.lines[d.Priority]; l != nil {
		if x := l.byPlace.first(); x != nil && x.place < d.Place {
			s.report([]string{d.Item, x.id},
				"client %d, alone, got item %s in place %s before item %s in place %s, which was ready",
				d.Client, d.Item, d.Place, x.id, x.place)
		}
	}
	if a.moved {
		return
	}
	for _, x := range s.parent[a.item.from.Put] {
		if x.item.from.index < a.item.from.index && x.item.from.Priority == d.Priority && x.ready && !x.moved {
			s.report([]string{d.Item, x.id},
				"client %d, alone, got item %s before item %s, which was put before it in the same call and was ready",
				d.Client, d.Item, x.id)
		}
	}
}

// deliver records a delivery.
func (s *sweep) deliver(a *arrival, d *Delivery) {
	a.ready = false
	a.left--
	delete(s.back, d.Item)
	switch {
	case d.ends(s.Rules), s.Rules.MaxAttempts > 0 && s.mayBeBack(d.Item, d.Asked, a.last().Got):
		a.moved = true // it may be dead, after this or an unseen attempt, and come back behind others
	case d.Finish.Asked == 0, d.Finish.Fate == GivenBack:
		s.back[d.Item] = d
	case d.Finish.Fate == PutOff:
		a.moved = true
	}
}

// judgeParts checks that consumers received the items of each claim in the order of their places.
func (j *queueJudge) judgeParts() {
	type part struct{ session, token int64 }
	parts := make(map[part][]*Delivery)
	for i := range j.Deliveries {
		d := &j.Deliveries[i]
		parts[part{d.Session, d.Token}] = append(parts[part{d.Session, d.Token}], d)
	}
	for _, list := range parts {
		overtaken(list, func(d *Delivery) (int64, int64, string) {
			return d.Asked, d.Got, d.Place
		}, func(d, last *Delivery) {
			j.report([]string{last.Item, d.Item},
				"client %d got item %s in place %s of its claim before item %s in place %s",
				d.Client, last.Item, last.Place, d.Item, d.Place)
		})
	}
}

// judgeReach checks how many items several consumers pass over because others have claimed them.
func (j *queueJudge) judgeReach() {
	if j.Rules.Reach == 0 {
		return
	}
	lines := make(map[int][]*arrival)
	for _, a := range j.arrivals() {
		if !a.moved {
			lines[a.item.from.Priority] = append(lines[a.item.from.Priority], a)
		}
	}
	for _, l := range lines {
		j.judgeLineReach(l)
	}
}

// judgeLineReach counts, for each item, the items that had certainly arrived before it and were certainly first
// delivered after it.
func (j *queueJudge) judgeLineReach(line []*arrival) {
	byArrival := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int { return cmp.Compare(a.to, b.to) })
	rank := make(map[*arrival]int, len(line))
	for i, a := range byArrival {
		rank[a] = i
	}
	// From the last delivered to the first, so that all items counted so far were delivered later.
	byGot := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int {
		return cmp.Compare(b.first().Got, a.first().Got)
	})
	byAsked := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int {
		return cmp.Compare(b.first().Asked, a.first().Asked)
	})
	later := make(counts, len(line)+1)
	for _, a := range byGot {
		for len(byAsked) > 0 && byAsked[0].first().Asked > a.first().Got {
			later.add(rank[byAsked[0]])
			byAsked = byAsked[1:]
		}
		before, _ := slices.BinarySearchFunc(byArrival, a.from, func(x *arrival, from int64) int {
			return cmp.Compare(x.to, from)
		})
		if n := later.below(before); n > j.Rules.Reach {
			j.report([]string{a.id}, "item %s was delivered before %d that had arrived before it, want at most %d",
				a.id, n, j.Rules.Reach)
		}
	}
}

// first returns the first delivery.
func (a *arrival) first() *Delivery {
	return slices.MinFunc(a.deliveries, func(x, y *Delivery) int { return cmp.Compare(x.Got, y.Got) })
}

// last returns the last delivery.
func (a *arrival) last() *Delivery {
	return slices.MaxFunc(a.deliveries, func(x, y *Delivery) int { return cmp.Compare(x.Got, y.Got) })
}

// counts counts numbers and returns how many are below another (a Fenwick tree).
type counts []int

func (c counts) add(n int) {
	for i := n + 1; i < len(c); i += i & -i {
		c[i]++
	}
}

func (c counts) below(n int) int {
	total := 0
	for i := n; i > 0; i -= i & -i {
		total += c[i]
	}
	return total
}
