package lincheck

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// arrival is when an item has arrived in its place: some time between two others. One that was put with a delay, or put off, arrives when
// nobody looks, and is out of place as far as anybody can judge.
type arrival struct {
	*item
	from, to int64
	place    string // of the first delivery
	left     int    // deliveries that are still to come
	ready    bool
	moved    bool // out of place
}

func (j *queueJudge) arrivals() map[string]*arrival {
	all := make(map[string]*arrival, len(j.order))
	for _, it := range j.order {
		if it.from == nil || len(it.deliveries) == 0 {
			continue
		}
		a := &arrival{item: it, from: it.from.Asked, to: math.MaxInt64, left: len(it.deliveries), moved: it.from.Delayed, ready: true}
		if it.from.id != "" {
			a.to = it.from.Done
		}
		for _, d := range it.deliveries {
			a.to = min(a.to, d.Got)
		}
		a.place = a.first().Place
		a.moved = a.moved || j.Rules.MaxAttempts > 0 && j.mayBeBack(it.id, a.from, a.first().Got) // it may have died before anybody could tell
		all[it.id] = a
	}
	return all
}

// line is the items of a priority that are ready, in an order in which it gives the first. It may hold what is not ready any more.
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

// first returns the first one that is ready, nil if there is none.
func (l *line) first() *arrival {
	for l.Len() > 0 {
		if x := l.list[0]; x.ready && !x.moved {
			return x
		}
		heap.Pop(l)
	}
	return nil
}

// lines are the items of a priority that are ready: by the time at which they had surely arrived, and by their places.
type lines struct{ byTime, byPlace line }

// sweep goes through the deliveries in the order of time, and knows at each what is ready beside it, for certain: it was put and not delivered
// yet, or was given back to its place, or was left behind by a consumer that is no more; and it is delivered later.
type sweep struct {
	*queueJudge
	all    map[string]*arrival
	lines  map[int]*lines
	back   map[string]*Delivery // deliveries whose item goes back to its place when they are over
	parent map[*Put][]*arrival  // what a call has put, in its order
}

// judgeOrder judges the order in which consumers that were alone got their items.
func (j *queueJudge) judgeOrder() {
	s := &sweep{
		queueJudge: j, all: j.arrivals(), lines: make(map[int]*lines), back: make(map[string]*Delivery), parent: make(map[*Put][]*arrival),
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

// judgePlaces judges whether items that were put one after the other stand so.
func (j *queueJudge) judgePlaces() {
	byPriority := make(map[int][]*arrival)
	for _, a := range j.arrivals() {
		if !a.moved && a.place != "" {
			byPriority[a.item.from.Priority] = append(byPriority[a.item.from.Priority], a)
		}
	}
	for _, list := range byPriority {
		overtaken(list, func(a *arrival) (int64, int64, string) { return a.from, a.to, a.place }, func(a, last *arrival) {
			j.offend([]string{a.id, last.id}, "item %s stands in place %s, before item %s in place %s, which had arrived before it",
				a.id, a.place, last.id, last.place)
		})
	}
}

// overtaken tells of everything in a list whose place is before that of something that had ended when it began. It tells of the last such place.
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
	var last *T // of those that had ended
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

// byTime returns the deliveries in the order in which their consumers had them.
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

// goBack makes ready what has gone back to its place before d was asked for.
func (s *sweep) goBack(d *Delivery) {
	for id, b := range s.back {
		if b.Finish.Fate == GivenBack && b.Finish.Done > 0 && b.Finish.Done < d.Asked || b.Finish.Asked == 0 && b.Session != d.Session {
			delete(s.back, id)
			a := s.all[id]
			a.ready = a.left > 0
			s.push(a)
		}
	}
}

// judge judges whether d is the next one.
func (s *sweep) judge(a *arrival, d *Delivery) {
	a.ready = false
	for priority, l := range s.lines {
		x := l.byTime.first()
		switch {
		case x == nil:
		case priority < d.Priority && x.to < d.Known:
			s.offend([]string{d.Item, x.id}, "client %d, alone, got item %s of priority %d before item %s of priority %d, of which it had been told",
				d.Client, d.Item, d.Priority, x.id, priority)
		case priority == d.Priority && !a.moved && x.to < a.from:
			s.offend([]string{d.Item, x.id}, "client %d, alone, got item %s before item %s, which had arrived before it and was ready",
				d.Client, d.Item, x.id)
		}
	}
	if l := s.lines[d.Priority]; l != nil {
		if x := l.byPlace.first(); x != nil && x.place < d.Place {
			s.offend([]string{d.Item, x.id}, "client %d, alone, got item %s in place %s before item %s in place %s, which was ready",
				d.Client, d.Item, d.Place, x.id, x.place)
		}
	}
	if a.moved {
		return
	}
	for _, x := range s.parent[a.item.from.Put] {
		if x.item.from.index < a.item.from.index && x.item.from.Priority == d.Priority && x.ready && !x.moved {
			s.offend([]string{d.Item, x.id}, "client %d, alone, got item %s before item %s, which was put before it in the same call and was ready",
				d.Client, d.Item, x.id)
		}
	}
}

// deliver books a delivery.
func (s *sweep) deliver(a *arrival, d *Delivery) {
	a.ready = false
	a.left--
	delete(s.back, d.Item)
	switch {
	case d.ends(s.Rules), s.Rules.MaxAttempts > 0 && s.mayBeBack(d.Item, d.Asked, a.last().Got):
		a.moved = true // it may be dead, if not by this then by an attempt that nobody has seen, and come back behind others
	case d.Finish.Asked == 0, d.Finish.Fate == GivenBack:
		s.back[d.Item] = d
	case d.Finish.Fate == PutOff:
		a.moved = true
	}
}

// judgeParts judges whether consumers got the items of each of their claims in the order of their places.
func (j *queueJudge) judgeParts() {
	type part struct{ session, token int64 }
	parts := make(map[part][]*Delivery)
	for i := range j.Deliveries {
		d := &j.Deliveries[i]
		parts[part{d.Session, d.Token}] = append(parts[part{d.Session, d.Token}], d)
	}
	for _, list := range parts {
		overtaken(list, func(d *Delivery) (int64, int64, string) { return d.Asked, d.Got, d.Place }, func(d, last *Delivery) {
			j.offend([]string{last.Item, d.Item}, "client %d got item %s in place %s of what it had claimed before item %s in place %s",
				d.Client, last.Item, last.Place, d.Item, d.Place)
		})
	}
}

// judgeReach judges how many items several consumers pass over that others have claimed.
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

// judgeLineReach counts, for each item, those that had surely arrived before it and were surely handed out after it for the first time.
func (j *queueJudge) judgeLineReach(line []*arrival) {
	byArrival := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int { return cmp.Compare(a.to, b.to) })
	rank := make(map[*arrival]int, len(line))
	for i, a := range byArrival {
		rank[a] = i
	}
	// From the last that was handed out to the first, so that what is counted so far was handed out later.
	byGot := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int { return cmp.Compare(b.first().Got, a.first().Got) })
	byAsked := slices.SortedFunc(slices.Values(line), func(a, b *arrival) int { return cmp.Compare(b.first().Asked, a.first().Asked) })
	later := make(counts, len(line)+1)
	for _, a := range byGot {
		for len(byAsked) > 0 && byAsked[0].first().Asked > a.first().Got {
			later.add(rank[byAsked[0]])
			byAsked = byAsked[1:]
		}
		before, _ := slices.BinarySearchFunc(byArrival, a.from, func(x *arrival, from int64) int { return cmp.Compare(x.to, from) })
		if n := later.below(before); n > j.Rules.Reach {
			j.offend([]string{a.id}, "item %s was delivered while %d that had arrived before it were not, want %d at most", a.id, n, j.Rules.Reach)
		}
	}
}

// first returns the delivery that came first.
func (a *arrival) first() *Delivery {
	return slices.MinFunc(a.deliveries, func(x, y *Delivery) int { return cmp.Compare(x.Got, y.Got) })
}

// last returns the delivery that came last.
func (a *arrival) last() *Delivery {
	return slices.MaxFunc(a.deliveries, func(x, y *Delivery) int { return cmp.Compare(x.Got, y.Got) })
}

// counts counts numbers, and tells how many are below another (a Fenwick tree).
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
