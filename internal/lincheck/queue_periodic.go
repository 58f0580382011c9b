package lincheck

// Periodic items.

import (
	"cmp"
	"slices"
	"time"
)

// PeriodicPut is an item that a process has put for a time of a schedule.
type PeriodicPut struct {
	Client int
	Body   string // the same for the same time
	ID     string
}

// addPeriodic adds a put for each time of the schedule whose item was put or delivered. A process may have been killed
// before it could report a put.
func (j *queueJudge) addPeriodic() {
	add := func(client int, body string) {
		if j.byBody[body] == nil {
			p := &Put{Client: client, Items: []PutItem{{Body: body, Delayed: true}}}
			j.byBody[body] = &putItem{Put: p, PutItem: p.Items[0]}
		}
	}
	for _, p := range j.Periodic {
		add(p.Client, p.Body)
		j.byBody[p.Body].id = p.ID
		j.item(p.ID, p.Body)
	}
	for i := range j.Deliveries {
		if d := &j.Deliveries[i]; d.Due > 0 {
			add(-1, d.Body)
		}
	}
}

// judgePeriodic checks that an item was put for each time of a schedule, and none before its time. Times that have
// passed when the item of an earlier one is put may be left out.
func (j *queueJudge) judgePeriodic() {
	if j.Rules.Every == 0 {
		return
	}
	every := int64(j.Rules.Every / time.Millisecond)
	var list []*Delivery
	for _, it := range j.order {
		if len(it.deliveries) > 0 && it.deliveries[0].Due > 0 {
			list = append(list, it.deliveries[0])
		}
	}
	slices.SortStableFunc(list, func(a, b *Delivery) int { return cmp.Compare(a.Due, b.Due) })
	for i, d := range list {
		if d.Enqueued < d.Due {
			j.report([]string{d.Item}, "item %s for %d was put before its time, at %d", d.Item, d.Due, d.Enqueued)
		}
		if i == 0 {
			continue
		}
		before := list[i-1]
		if missed := d.Due - every; missed > before.Due && missed > before.Enqueued {
			j.report([]string{before.Item, d.Item},
				"no item was put for %d, although the one for %d was put at %d, before it, and the next is for %d",
				missed, before.Due, before.Enqueued, d.Due)
		}
	}
}
