package lincheck

// The history of a queue.

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// QueueHistory is what the producers and consumers of one queue saw, and what was found in it at the end. Times are
// those of Hold.
type QueueHistory struct {
	Puts       []Put
	Deliveries []Delivery
	Purges     []Purge       `json:",omitempty"`
	Requeues   []Requeue     `json:",omitempty"`
	Pauses     []PauseState  `json:",omitempty"`
	Rates      []RateState   `json:",omitempty"`
	Periodic   []PeriodicPut `json:",omitempty"`
	Dead       []Dead        // the dead letters at the end
	Marks      []string      // the items whose acknowledgement left a mark: see Finish.Marked
	Rules      QueueRules
}

// QueueRules are the queue's promises under the configuration of its clients.
type QueueRules struct {
	MaxAttempts int // as in the queue's configuration; 0: unlimited
	// Reach is how many ready items may be passed over by a first delivery because other consumers have claimed them;
	// 0: not checked.
	Reach int
	// Spare is how many attempts may count without a delivery: those of items that a crashed consumer was about to
	// hand out.
	Spare int
	// MaxItems is the bound in the configuration of the producers; 0: none. A queue with a bound has no last attempt
	// here.
	MaxItems int
	Rate     QueueRate     // as SetRate has set it before the first delivery
	Every    time.Duration // between the times of the schedule of periodic items; 0: there are none
}

// Put is a call that put items, or tried to.
type Put struct {
	Client int
	Serial int    // numbers the calls of a client
	Key    string `json:",omitempty"` // of an item that is put once
	Items  []PutItem
	Asked  int64 // before the call
	Done   int64 // after the call; 0 if the caller was killed first

	IDs     []string `json:",omitempty"` // of the first items, those that were acknowledged
	Certain bool     // whether the other items are certain to be absent for ever
	Instead string   `json:",omitempty"` // the id of the item that an earlier call put under the key

	Waits bool `json:",omitempty"` // whether the call waits for room in a bounded queue
	Full  bool `json:",omitempty"` // whether the call reported a full queue
	// Known is a time: the producer's session had learned of everything before it. It is 0 unless the call began
	// after that and ended under the same session.
	Known int64 `json:",omitempty"`
}

// PutItem is an item of a Put.
type PutItem struct {
	Body     string // unique in the history
	Priority int
	Delayed  bool   `json:",omitempty"`
	Group    string `json:",omitempty"`
}

// Delivery is an item that a consumer received.
type Delivery struct {
	Client   int
	Serial   int // numbers the deliveries of a client
	Session  int64
	Item     string // the item's id
	Place    string `json:",omitempty"` // in the line of its priority: a smaller place arrived earlier
	Body     string
	Priority int
	Group    string `json:",omitempty"`
	Attempt  int
	Token    int64
	Asked    int64 // before the consumer asked for it
	Got      int64 // when the consumer received it
	Alive    int64 `json:",omitempty"` // when its context was last seen alive before it was finished; 0: never

	// Alone says that no other consumer had claims, from before the first claim of this consumer's session on. Then
	// the order is strict for what the consumer's process has learned. It has learned of everything that was
	// acknowledged before Known.
	Alone bool  `json:",omitempty"`
	Known int64 `json:",omitempty"`

	Due      int64 `json:",omitempty"` // of a periodic item: the time of its schedule, in ms since 1970
	Enqueued int64 `json:",omitempty"` // of a periodic item: when it was put, in ms, by the servers' clock

	Finish Finish
}

// Finish is what a consumer did with an item.
type Finish struct {
	Fate   Fate   `json:",omitempty"`
	Marked bool   `json:",omitempty"` // whether the acknowledgement leaves a mark in the same transaction
	Reason string `json:",omitempty"` // of a rejection
	Others int    `json:",omitempty"` // how many other items the same call acknowledges
	Robbed bool   `json:",omitempty"` // whether the consumer learned that another client had removed the item
	Asked  int64  `json:",omitempty"` // before the call; 0: no call
	Done   int64  `json:",omitempty"` // after the call, if it returned no error; 0: the outcome is unknown
}

// Fate is a way to finish an item.
type Fate string

// What a consumer can do with an item.
const (
	Acknowledged Fate = "done"
	GivenBack    Fate = "given back" // at once, to its old place
	PutOff       Fate = "put off"    // to be delivered again, behind others
	Rejected     Fate = "rejected"   // to the dead letters
)

// ends reports whether the item is not delivered again afterwards. An item that is given back or put off after its
// last attempt becomes a dead letter.
func (d *Delivery) ends(rules QueueRules) bool {
	switch d.Finish.Fate {
	case Acknowledged, Rejected:
		return true
	default:
		return rules.MaxAttempts > 0 && d.Attempt >= rules.MaxAttempts
	}
}

// Dead is a dead letter.
type Dead struct {
	Item     string
	Body     string
	Attempts int
	Reason   string
}

// violation is a broken promise, and the items that it concerns.
type violation struct {
	text  string
	items []string
}

// CheckQueue checks that a history can be that of one queue:
//
//   - Every item whose put was acknowledged, and every delivered item, is in the end acknowledged as done, a dead
//     letter, or may have been acknowledged by a consumer that got no reply.
//   - Every delivered or dead item was put by a call that did not certainly fail. No put makes two items, nor does a
//     key, unless a purge may have removed the first.
//   - An item that was acknowledged or rejected is not delivered again: neither in a later delivery, nor in one that
//     begins after that.
//   - Of two deliveries of an item the first is over, as far as its consumer can know, before the second begins. The
//     second has the larger token and counts as a later attempt.
//   - No more attempts count without a delivery than the rules allow, and none is past the last. A dead letter has a
//     reason that fits what was done to it.
//   - An item that is gone otherwise was free at some time before the end of a purge, and no purge reports more items
//     than that. Nothing that was free when a purge that was alone began is delivered after it. A claimed item is
//     removed only by its consumer.
//   - A dead letter that was put back is delivered, and its attempts count from one again. No other item is delivered
//     after its end.
//   - Nothing is claimed while the queue is paused.
//   - Items of a group are delivered in the order of their puts, and none before the one before it is finished.
//   - In any time, by the servers' order and clock, no more items are claimed than the rate allows.
//   - For each time of a schedule one item is put, and not before its time. Times are left out only if they had passed
//     when the item of an earlier one was put.
//   - A put is refused if items that it must have known of, and that were not finished before its end, fill the queue
//     to its bound. It is not refused if there cannot have been so many, if it waits for room, or if its key is in the
//     queue.
//   - Items of a priority get their places in the order of their puts. A consumer that is alone gets the most urgent
//     item first and, of one priority, the one in the first place. Several consumers get the items of each claim in the
//     order of their places, and pass over no more items that others have claimed than the rules allow.
func CheckQueue(h QueueHistory, dir string) error {
	j := newQueueJudge(h)
	j.judgePuts()
	for _, it := range j.order {
		j.judgeItem(it)
	}
	j.judgeSpare()
	j.judgePurges()
	j.judgeRequeues()
	j.judgePauses()
	j.judgeGroups()
	j.judgeRate()
	j.judgePeriodic()
	j.judgeBound()
	j.judgePlaces()
	j.judgeParts()
	j.judgeOrder()
	j.judgeReach()
	if len(j.violations) == 0 {
		return nil
	}
	verdict := fmt.Errorf("lincheck: history of %d puts and %d deliveries is not that of a queue, %d violations: %s",
		len(h.Puts), len(h.Deliveries), len(j.violations), j.violations[0].text)
	return keep(verdict, dir, func(page io.Writer) error { return queuePage().Execute(page, j.page()) })
}

// queueJudge checks a history item by item, and then all items in the order of time.
type queueJudge struct {
	QueueHistory
	byBody     map[string]*putItem // by body
	items      map[string]*item    // by id
	order      []*item             // in the order of first appearance
	marks      map[string]bool
	violations []violation
}

// putItem is what is known of one item of a call that put it, or tried to.
type putItem struct {
	*Put
	PutItem

	index int
	id    string // "" unless it was acknowledged
	seen  string // the first id under which it was seen
}

// item is the life of an item.
type item struct {
	id         string
	from       *putItem    // nil if no put is known
	deliveries []*Delivery // in the order of their tokens
	dead       []Dead
}

func newQueueJudge(h QueueHistory) *queueJudge {
	j := &queueJudge{
		QueueHistory: h, byBody: make(map[string]*putItem), items: make(map[string]*item),
		marks: make(map[string]bool),
	}
	for i := range h.Puts {
		p := &h.Puts[i]
		for k, what := range p.Items {
			x := &putItem{Put: p, PutItem: what, index: k}
			if k < len(p.IDs) {
				x.id = p.IDs[k]
			}
			j.byBody[what.Body] = x
			if x.id != "" {
				j.item(x.id, what.Body)
			}
		}
	}
	j.addPeriodic()
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		it := j.item(d.Item, d.Body)
		it.deliveries = append(it.deliveries, d)
	}
	for _, x := range h.Dead {
		it := j.item(x.Item, x.Body)
		it.dead = append(it.dead, x)
	}
	for i := range h.Requeues {
		for _, x := range h.Requeues[i].Seen {
			j.item(x.Item, x.Body)
		}
	}
	for _, id := range h.Marks {
		j.marks[id] = true
	}
	for _, it := range j.order {
		slices.SortStableFunc(it.deliveries, func(a, b *Delivery) int {
			return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Got, b.Got))
		})
	}
	return j
}

// item returns the item of an id, which was seen with the body.
func (j *queueJudge) item(id, body string) *item {
	it := j.items[id]
	if it == nil {
		it = &item{id: id, from: j.byBody[body]}
		j.items[id] = it
		j.order = append(j.order, it)
	}
	x := j.byBody[body]
	switch {
	case x == nil:
		j.report([]string{id}, "item %s, %q, was never put", id, body)
	case it.from != x:
		j.report([]string{id}, "item %s is %q, and then %q", id, it.body(), body)
	case x.seen == "":
		x.seen = id
	case x.seen != id:
		j.report([]string{id, x.seen}, "%q is in the queue twice, as items %s and %s", body, x.seen, id)
	}
	return it
}

func (it *item) body() string {
	if it.from == nil {
		return "?"
	}
	return it.from.Body
}

func (j *queueJudge) report(items []string, format string, args ...any) {
	j.violations = append(j.violations, violation{fmt.Sprintf(format, args...), items})
}

// judgePuts checks what the producers were told.
func (j *queueJudge) judgePuts() {
	keys := make(map[string]map[string]int64) // the ids that a key stood for, and since when at the latest
	stands := func(p *Put, id string) {
		if keys[p.Key] == nil {
			keys[p.Key] = make(map[string]int64)
		}
		since, ok := keys[p.Key][id]
		if told := answered(p.Done); !ok || told < since {
			keys[p.Key][id] = told
		}
	}
	for i := range j.Puts {
		p := &j.Puts[i]
		for _, what := range p.Items {
			x := j.byBody[what.Body]
			if x.seen != "" && x.id == "" && p.Certain {
				j.report([]string{x.seen}, "%q is item %s, but client %d was told that it is not in the queue", x.Body,
					x.seen, p.Client)
			}
			if x.seen != "" && p.Key != "" {
				stands(p, x.seen)
			}
		}
		if p.Instead != "" {
			stands(p, p.Instead)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		j.judgeKey(key, keys[key])
	}
}

// judgeKey checks the items that a key stood for, each since a time at the latest: only a purge makes room for another.
func (j *queueJudge) judgeKey(key string, items map[string]int64) {
	ids := slices.SortedFunc(maps.Keys(items), func(a, b string) int {
		return cmp.Or(cmp.Compare(items[a], items[b]), cmp.Compare(a, b))
	})
	for i, a := range ids {
		for _, b := range ids[i+1:] {
			if !j.purgedBefore(a, items[b]) && !j.purgedBefore(b, items[a]) {
				j.report([]string{a, b}, "key %q stands for two items, %s and %s", key, a, b)
			}
		}
	}
}

// describe returns a delivery's description in one line.
func (d *Delivery) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d, session %#x, token %d, attempt %d", d.Client, d.Session, d.Token, d.Attempt)
	if d.Alone {
		fmt.Fprintf(&b, ", alone, knows everything before %d", d.Known)
	}
	return b.String()
}
