package lincheck

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// QueueHistory is what producers and consumers of one queue saw, and what was found in it when all of them had come to rest. Times are those
// of Hold.
type QueueHistory struct {
	Puts       []Put
	Deliveries []Delivery
	Purges     []Purge   `json:",omitempty"`
	Requeues   []Requeue `json:",omitempty"`
	Dead       []Dead    // the dead letters in the end
	Marks      []string  // the items whose acknowledgement has left a mark: see Finish.Marked
	Rules      QueueRules
}

// QueueRules are what the queue's promises come to under the configuration of its clients.
type QueueRules struct {
	MaxAttempts int // as in the queue's configuration; 0: without end
	// Reach is how many items may stand before one that is delivered, ready and not delivered yet, because other consumers have claimed
	// them; 0: not judged.
	Reach int
	// Spare is how many attempts may count that nobody has had: those that consumers which crashed were about to hand out.
	Spare int
	// MaxItems is as in the configuration of the queue's producers; 0: no bound. A queue with a bound has no last attempt here.
	MaxItems int
}

// Put is a call that has put items, or has tried to.
type Put struct {
	Client  int
	Serial  int    // tells the calls of a client apart
	Key     string `json:",omitempty"` // of an item that is put once
	Parcels []Parcel
	Asked   int64 // before it was called
	Done    int64 // when it had returned; 0 if nobody lived to see it

	IDs     []string `json:",omitempty"` // of those that were acknowledged: the first so many
	Certain bool     // that the others are not in, and never will be
	Instead string   `json:",omitempty"` // the id that stands for the key, if it was put by an earlier call

	Waits bool `json:",omitempty"` // for room, in a queue with a bound
	Full  bool `json:",omitempty"` // it was told that there is none
	// Known is before when the producer's session had been told of everything, if the call began after that and ended under the same session;
	// 0: it did not.
	Known int64 `json:",omitempty"`
}

// Parcel is an item of a Put.
type Parcel struct {
	Body     string // no two parcels have the same
	Priority int
	Delayed  bool `json:",omitempty"`
}

// Delivery is an item that a consumer has had.
type Delivery struct {
	Client   int
	Serial   int // tells the deliveries of a client apart
	Session  int64
	Item     string // its id
	Place    string `json:",omitempty"` // in the line of its priority: smaller ones have arrived earlier
	Body     string
	Priority int
	Attempt  int
	Token    int64
	Asked    int64 // before it was asked for
	Got      int64 // when it had been given
	Alive    int64 `json:",omitempty"` // when its context was last seen alive, before it was finished; 0: never

	// Alone says that no other consumer had anything claimed, from before the first claim of this one's session on. Then order is strict, as
	// far as the consumer's process had been told. It had been told of whatever was acknowledged before Known.
	Alone bool  `json:",omitempty"`
	Known int64 `json:",omitempty"`

	Finish Finish
}

// Finish is what a consumer did with an item.
type Finish struct {
	Fate   Fate   `json:",omitempty"`
	Marked bool   `json:",omitempty"` // the acknowledgement leaves a mark, in the same transaction
	Reason string `json:",omitempty"` // of a rejection
	Others int    `json:",omitempty"` // how many items the same call acknowledges beside this one
	Robbed bool   `json:",omitempty"` // the consumer was told that somebody else has removed the item
	Asked  int64  `json:",omitempty"` // before it was called; 0: it was not
	Done   int64  `json:",omitempty"` // when it had returned without error; 0: it may have been done or not
}

// Fate is a way to finish an item.
type Fate string

// What a consumer can do with an item.
const (
	Acknowledged Fate = "done"
	GivenBack    Fate = "given back" // at once, to its old place
	PutOff       Fate = "put off"    // to come again, behind others
	Rejected     Fate = "rejected"   // to the dead letters
)

// ends reports whether the item is not delivered again after it. An item that is given back or put off after its last attempt is dead.
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

// breach is something that a queue must not do, and the items that it concerns.
type breach struct {
	text  string
	items []string
}

// CheckQueue judges whether a history can be that of one queue:
//
//   - what was acknowledged as put is acknowledged as done in the end, or a dead letter, or may have been acknowledged by somebody who had no
//     answer; so is whatever was delivered;
//   - nothing is delivered or dead that nobody has put, or whose put has failed for certain; no put makes two items, nor does a key;
//   - an item that was acknowledged or rejected is not delivered again: neither in a later delivery, nor in one that begins after that;
//   - of two deliveries of an item the first is over, as far as its consumer can know, before the second begins; the second has the larger
//     token and counts as a later attempt;
//   - no more attempts count that nobody has had than rules allow; none is past the last that rules allow; dead letters have a reason that
//     fits what was done to them;
//   - an item that is gone without that was free at some time before the end of a purge, and no purge counts more than that; nothing that was free
//     when a purge began which was alone is delivered after it; nobody removes what a consumer has claimed;
//   - a dead letter that was put back is delivered, and its attempts count from one again; nobody else's item is delivered after its end;
//   - a put is not let in while items that it must have known of, and that were not finished before its end, fill the queue to its bound, and is not
//     refused while not so many can have been there; one that waits is not refused, nor is one whose key is in;
//   - items of a priority get their places in the order in which they were put; a consumer that is alone gets the most urgent first and, of
//     one priority, what has the first place; several get each what it has claimed in the order of its places, and reach no further than rules
//     allow past what others have claimed.
//
// If it is not, what concerns the items of the first offences is written as a page into dir, and the error names it.
func CheckQueue(h QueueHistory, dir string) error {
	j := newQueueJudge(h)
	j.judgePuts()
	for _, it := range j.order {
		j.judgeItem(it)
	}
	j.judgeSpare()
	j.judgePurges()
	j.judgeRequeues()
	j.judgeBound()
	j.judgePlaces()
	j.judgeParts()
	j.judgeOrder()
	j.judgeReach()
	if len(j.breaches) == 0 {
		return nil
	}
	verdict := fmt.Errorf("lincheck: the history of %d puts and %d deliveries is not a queue's, %d offences: %s",
		len(h.Puts), len(h.Deliveries), len(j.breaches), j.breaches[0].text)
	return keep(verdict, dir, func(page io.Writer) error { return queuePage.Execute(page, j.page()) })
}

// queueJudge looks at a history item by item, and then at all of them in the order of time.
type queueJudge struct {
	QueueHistory
	parcels  map[string]*parcel // by body
	items    map[string]*item   // by id
	order    []*item            // as they came up
	marks    map[string]bool
	breaches []breach
}

// parcel is what is known of what one call has put, or has tried to.
type parcel struct {
	*Put
	Parcel

	index int
	id    string // "" unless it was acknowledged
	seen  string // the id under which it was seen first
}

// item is the life of an item.
type item struct {
	id         string
	from       *parcel     // nil: of nobody
	deliveries []*Delivery // in the order of their tokens
	dead       []Dead
}

func newQueueJudge(h QueueHistory) *queueJudge {
	j := &queueJudge{QueueHistory: h, parcels: make(map[string]*parcel), items: make(map[string]*item), marks: make(map[string]bool)}
	for i := range h.Puts {
		p := &h.Puts[i]
		for k, what := range p.Parcels {
			x := &parcel{Put: p, Parcel: what, index: k}
			if k < len(p.IDs) {
				x.id = p.IDs[k]
			}
			j.parcels[what.Body] = x
			if x.id != "" {
				j.item(x.id, what.Body)
			}
		}
	}
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
		slices.SortStableFunc(it.deliveries, func(a, b *Delivery) int { return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Got, b.Got)) })
	}
	return j
}

// item returns the item of an id, which was seen with the body.
func (j *queueJudge) item(id, body string) *item {
	it := j.items[id]
	if it == nil {
		it = &item{id: id, from: j.parcels[body]}
		j.items[id] = it
		j.order = append(j.order, it)
	}
	x := j.parcels[body]
	switch {
	case x == nil:
		j.offend([]string{id}, "item %s, %q, was never put", id, body)
	case it.from != x:
		j.offend([]string{id}, "item %s is %q, and then %q", id, it.body(), body)
	case x.seen == "":
		x.seen = id
	case x.seen != id:
		j.offend([]string{id, x.seen}, "%q is in twice, as items %s and %s", body, x.seen, id)
	}
	return it
}

func (it *item) body() string {
	if it.from == nil {
		return "?"
	}
	return it.from.Body
}

func (j *queueJudge) offend(items []string, format string, args ...any) {
	j.breaches = append(j.breaches, breach{fmt.Sprintf(format, args...), items})
}

// judgePuts judges what the producers were told.
func (j *queueJudge) judgePuts() {
	keys := make(map[string]string) // to the id that stands for it
	stands := func(key, id string) {
		switch other := keys[key]; other {
		case "":
			keys[key] = id
		case id:
		default:
			j.offend([]string{other, id}, "key %q stands for two items, %s and %s", key, other, id)
		}
	}
	for i := range j.Puts {
		p := &j.Puts[i]
		for _, what := range p.Parcels {
			x := j.parcels[what.Body]
			if x.seen != "" && x.id == "" && p.Certain {
				j.offend([]string{x.seen}, "%q is in as item %s, and client %d was told that it is not", x.Body, x.seen, p.Client)
			}
			if x.seen != "" && p.Key != "" {
				stands(p.Key, x.seen)
			}
		}
		if p.Instead != "" {
			stands(p.Key, p.Instead)
		}
	}
}

// describe says in a line what became of a delivery.
func (d *Delivery) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d, session %#x, token %d, attempt %d", d.Client, d.Session, d.Token, d.Attempt)
	if d.Alone {
		fmt.Fprintf(&b, ", alone, knows what was before %d", d.Known)
	}
	return b.String()
}
