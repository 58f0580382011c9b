package queue

// The goroutines that want items.

import "slices"

// taker is a goroutine that wants items. It gets one answer, unless it leaves first.
type taker struct {
	want    int
	try     bool // does not want to wait for an item
	fetched bool // serve has looked since it came
	got     []*Item
	answer  chan error // one slot, so that answering never blocks
}

// dropLost drops the items whose claims were lost while the taker waited for more.
func (t *taker) dropLost() {
	t.got = slices.DeleteFunc(t.got, func(it *Item) bool { return it.co.err() != nil })
}

// takers are the goroutines that want items, first come first served. The dispatcher's mutex guards them.
type takers []*taker

// remove removes a taker, and reports whether it was still there. If not, it has an answer.
func (ts *takers) remove(t *taker) bool {
	i := slices.Index(*ts, t)
	if i < 0 {
		return false
	}
	*ts = slices.Delete(*ts, i, i+1)
	return true
}

// demand returns how many items they want.
func (ts takers) demand() int {
	n := 0
	for _, t := range ts {
		n += t.want - len(t.got)
	}
	return n
}

// trying reports whether one of them does not want to wait.
func (ts takers) trying() bool {
	return slices.ContainsFunc(ts, func(t *taker) bool { return t.try })
}

// noteFetch records that a server is asked for items, from now on.
func (ts takers) noteFetch() {
	for _, t := range ts {
		t.fetched = true
	}
}

// give gives an item to the first of them.
func (ts *takers) give(item *Item) {
	t := (*ts)[0]
	t.dropLost()
	if t.got = append(t.got, item); len(t.got) == t.want {
		*ts = (*ts)[1:]
		t.answer <- nil
	}
}

// nothingThere answers those that have some of their items, and with err those that do not want to wait.
func (ts *takers) nothingThere(err error) {
	*ts = slices.DeleteFunc(*ts, func(t *taker) bool {
		t.dropLost()
		switch {
		case len(t.got) > 0:
			t.answer <- nil
		case t.try && t.fetched:
			t.answer <- err
		default:
			return false
		}
		return true
	})
}

// fail answers all of them: those that have no items with err.
func (ts *takers) fail(err error) {
	for _, t := range *ts {
		if t.dropLost(); len(t.got) > 0 {
			t.answer <- nil
		} else {
			t.answer <- err
		}
	}
	*ts = nil
}

// demand returns how many items the takers want.
func (d *dispatcher) demand() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takers.demand()
}

// trying reports whether a taker does not want to wait.
func (d *dispatcher) trying() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takers.trying()
}
