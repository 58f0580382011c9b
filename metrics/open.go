package metrics

// What has begun and not ended.

import "time"

// open has the beginnings of what has not ended, by the numbers of the acquisitions, which are not 0. The numbers that
// are in use at a time are mostly consecutive, so a small table takes nearly all of them, for a fifth of what a map
// costs.
type open struct {
	n     int
	table [64]struct {
		id    uint64 // 0 if the place is free
		since time.Time
	}
	more map[uint64]time.Time
}

func (o *open) begin(id uint64, since time.Time) {
	o.n++
	at := &o.table[id%uint64(len(o.table))]
	if at.id == 0 {
		at.id, at.since = id, since
		return
	}
	if o.more == nil {
		o.more = make(map[uint64]time.Time)
	}
	o.more[id] = since
}

func (o *open) end(id uint64) {
	o.n--
	if at := &o.table[id%uint64(len(o.table))]; at.id == id {
		at.id = 0
	} else {
		delete(o.more, id)
	}
}

// longest returns for how long the oldest has lasted.
func (o *open) longest(now time.Time) time.Duration {
	oldest := now
	for i := range o.table {
		if at := &o.table[i]; at.id != 0 && at.since.Before(oldest) {
			oldest = at.since
		}
	}
	for _, since := range o.more {
		if since.Before(oldest) {
			oldest = since
		}
	}
	return now.Sub(oldest)
}
