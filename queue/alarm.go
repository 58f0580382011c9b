package queue

import (
	"context"
	"slices"

	"github.com/seed-a3166700/turnstile/zk"
)

// alarm is a one-shot watch, and whether it has fired. Guarded by the queue's mutex.
type alarm struct {
	watch *zk.Watch // nil: it stands for what is known to be there
	rang  bool
}

// rung reports whether the alarm has fired, or was never set.
func (a *alarm) rung() bool {
	if a == nil || a.rang {
		return true
	}
	if _, ok := a.watch.Poll(); ok {
		a.rang = true
	}
	return a.rang
}

// alarms are what a consumer has set: as long as none has fired, what it has seen stands.
type alarms struct {
	bells   map[int]*alarm // of lines that were empty afterwards
	newLine *alarm         // on the list of lines
	delayed *alarm         // on the bell of delayed items; set while first among those who wait
	gone    *alarm         // on the list of consumers; set before what they have left behind is listed
}

// retain forgets the bells of all other lines, which somebody has removed, and returns their watches: one that has rung would wake whoever
// waits again and again. The caller holds the queue's mutex, and closes the watches without it.
func (a *alarms) retain(lines []int) []*zk.Watch {
	var watches []*zk.Watch
	for p, bell := range a.bells {
		if slices.Contains(lines, p) {
			continue
		}
		if delete(a.bells, p); bell.watch != nil {
			watches = append(watches, bell.watch)
		}
	}
	return watches
}

// silence forgets all alarms and returns their watches. The caller holds the queue's mutex, and closes the watches without it.
func (a *alarms) silence() []*zk.Watch {
	var watches []*zk.Watch
	for _, x := range a.all() {
		if x.watch != nil {
			watches = append(watches, x.watch)
		}
	}
	clear(a.bells)
	a.newLine, a.delayed, a.gone = nil, nil, nil
	return watches
}

func closeAll(watches []*zk.Watch) {
	for _, w := range watches {
		w.Close()
	}
}

func (a *alarms) all() []*alarm {
	list := make([]*alarm, 0, len(a.bells)+3)
	for _, x := range a.bells {
		list = append(list, x)
	}
	for _, x := range []*alarm{a.newLine, a.delayed, a.gone} {
		if x != nil {
			list = append(list, x)
		}
	}
	return list
}

// urgent reports whether something more urgent than priority may have arrived.
func (a *alarms) urgent(priority int) bool {
	if a.newLine.rung() {
		return true
	}
	for p, bell := range a.bells {
		if p < priority && bell.rung() {
			return true
		}
	}
	return false
}

// more books that a line has had items, and may have more: nothing less urgent is handed out before it was looked at again. The caller holds the
// queue's mutex.
func (a *alarms) more(priority int) {
	if a.bells[priority] == nil {
		a.bells[priority] = &alarm{rang: true}
	}
}

// complete reports whether every alarm is set that somebody who waits needs, and none has fired.
func (a *alarms) complete(lines []int) bool {
	if a.newLine.rung() || a.delayed.rung() || a.gone.rung() {
		return false
	}
	for _, p := range lines {
		if a.bells[p].rung() {
			return false
		}
	}
	return true
}

// listen waits for the alarm and then calls ring, unless ctx ends first.
func (d *desk) listen(ctx context.Context, a *alarm, ring func()) {
	if _, err := a.watch.Next(ctx); err != nil && ctx.Err() != nil {
		return
	}
	d.q.mu.Lock()
	a.rang = true // Next has taken the event
	d.q.mu.Unlock()
	ring()
}
