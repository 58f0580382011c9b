package lincheck

// The rate of a queue.

import (
	"cmp"
	"slices"
	"time"
)

// QueueRate bounds how many items are claimed in a time. The zero QueueRate is no bound.
type QueueRate struct {
	Items int // in the time Per
	Per   time.Duration
	Burst int
}

// RateState is what a client saw of the node that every claim changes in its transaction while there is a rate.
type RateState struct {
	Zxid   int64 // of the last change
	At     int64 // when that was, in ms by the servers' clock
	Lifted bool  `json:",omitempty"` // whether that change has lifted the rate
}

// judgeRate checks, for any two changes that clients saw, that no more items were claimed from the first to the second
// than the rate allows for the time between them. The servers' order decides which claims lie between them, and the
// servers' clock how long that was. A delivery's token is the transaction that claimed the item.
//
// A claim counts from when it was sent. One that is on its way for long leaves room for a burst after it. So twice the
// burst is allowed.
func (j *queueJudge) judgeRate() {
	rate := j.Rules.Rate
	if rate.Items == 0 {
		return
	}
	states := slices.Clone(j.Rates)
	slices.SortFunc(states, func(a, b RateState) int { return cmp.Compare(a.Zxid, b.Zxid) })
	if i := slices.IndexFunc(states, func(s RateState) bool { return s.Lifted }); i >= 0 {
		states = states[:i]
	}
	states = slices.Compact(states)
	var tokens []int64
	for i := range j.Deliveries {
		tokens = append(tokens, j.Deliveries[i].Token)
	}
	slices.Sort(tokens)
	each := rate.Per / time.Duration(rate.Items)
	var from, to RateState
	var worst, number, most int
	for i, a := range states {
		begin, _ := slices.BinarySearch(tokens, a.Zxid)
		for _, b := range states[i:] {
			end, _ := slices.BinarySearch(tokens, b.Zxid+1)
			length := time.Duration(b.At-a.At+1) * time.Millisecond // times are cut to ms
			allowed := 2*rate.Burst + int(length/each)
			if n := end - begin; n-allowed > worst {
				from, to, worst, number, most = a, b, n-allowed, n, allowed
			}
		}
	}
	if worst > 0 {
		j.report(nil, "%d items were claimed from transaction %d to %d, in %d ms, more than the rate allows: %d",
			number, from.Zxid, to.Zxid, to.At-from.At, most)
	}
}
