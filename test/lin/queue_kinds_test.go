//go:build unix

package lin_test

import (
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// The queues of an epoch.
const (
	loneQueue   = "queue-lone"   // has one consumer at a time, so its order is strict
	manyQueue   = "queue-many"   // all clients but the quiet ones consume in every manner, and items die
	slowQueue   = "queue-slow"   // all clients consume, and those that do nothing else keep their items for long
	boundQueue  = "queue-bound"  // is full most of the time; some puts are refused, others wait
	deadQueue   = "queue-dead"   // items die soon and are put back
	purgedQueue = "queue-purged" // all clients but the quiet ones consume, and sometimes a client purges
	sweptQueue  = "queue-swept"  // has one consumer at a time, so its purges leave nothing
	groupQueue  = "queue-group"  // its items are in groups
	rateQueue   = "queue-rate"   // has a rate, below that of its puts
	tickQueue   = "queue-tick"   // all clients but the quiet ones repeat a periodic item, and nothing else is put
)

// queueKind is how clients use a queue.
type queueKind struct {
	cfg    queue.Config
	takers int // goroutines of a client that share one Queue
	hands  int // how many items a client has at most, in all its goroutines

	lone     bool // only one client of a process takes from it
	home     int  // the number of that process
	requeues bool // consumers put dead letters back
	purges   bool // consumers purge it
	pauses   bool // consumers pause it

	rate  queue.Rate    // of deliveries
	every time.Duration // between the times of its periodic item
}

// loneClient is the number, in its process, of the client that is a queue's only consumer.
const loneClient = 1

// batchSize is how many items are taken at once, at most. A goroutine has that many items, and up to twice as many in
// its basket.
const (
	batchSize = 5
	handful   = 3 * batchSize
)

var queueKinds = map[string]queueKind{
	loneQueue: {takers: 1, hands: handful, lone: true, home: 0, pauses: true, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 50, Linger: 200 * time.Millisecond, Backoff: backoff,
	}},
	manyQueue: {takers: 2, hands: 2 * handful, pauses: true, cfg: queue.Config{
		Timeout: 12 * time.Millisecond, MaxAttempts: 6, Prefetch: 30, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
	slowQueue: {takers: 1, hands: 1, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 4, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
	boundQueue: {takers: 1, hands: handful, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff, MaxItems: 8,
	}},
	deadQueue: {takers: 1, hands: handful, requeues: true, cfg: queue.Config{
		MaxAttempts: 3, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
	purgedQueue: {takers: 2, hands: 2 * handful, purges: true, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
	sweptQueue: {takers: 1, hands: handful, lone: true, home: 1, purges: true, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 20, Linger: 200 * time.Millisecond, Backoff: backoff,
	}},
	groupQueue: {takers: 2, hands: 2 * handful, cfg: queue.Config{
		MaxAttempts: 4, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
	rateQueue: {
		takers: 1, hands: handful, rate: queue.Rate{Items: 8, Per: time.Second, Burst: 2},
		cfg: queue.Config{
			MaxAttempts: -1, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff,
		},
	},
	tickQueue: {takers: 1, hands: handful, every: 100 * time.Millisecond, cfg: queue.Config{
		MaxAttempts: -1, Prefetch: 10, Linger: 100 * time.Millisecond, Backoff: backoff,
	}},
}

var backoff = queue.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond}

// purgeSize is how many items a purge takes at once, at most.
const purgeSize = 1000

// rules returns a queue's promises for this many sessions of consumers and this many purges that failed. It does not
// matter how many of the sessions were lost: a session that was closed in order leaves a little slack.
func (k queueKind) rules(lives, cut int) lincheck.QueueRules {
	claimed := k.cfg.Prefetch*5/4 + k.hands // by one consumer, and not handed out
	// A consumer marks as many items as it can have before it hands them out. A consumer that is killed, or loses its
	// session, may have received as many that it could not report. Beside what others have claimed, a consumer may
	// pass over as many abandoned claims as there are consumers.
	rules := lincheck.QueueRules{
		MaxAttempts: max(0, k.cfg.MaxAttempts), Reach: 2 * lives * claimed,
		Spare: lives*2*k.hands + cut*purgeSize, MaxItems: k.cfg.MaxItems,
		Rate: lincheck.QueueRate{Items: k.rate.Items, Per: k.rate.Per, Burst: k.rate.Burst}, Every: k.every,
	}
	if k.purges {
		rules.Reach = 0 // a purge passes over nothing, but what it had claimed when it ended comes again later
	}
	return rules
}

// queueTrial tries queues.
type queueTrial struct {
	names    []string // all queues if nil
	deaf     bool     // see orders
	unproved bool     // see orders
}

func (t queueTrial) places() []string {
	if t.names != nil {
		return t.names
	}
	return []string{
		loneQueue, manyQueue, slowQueue, boundQueue, deadQueue, purgedQueue, sweptQueue, groupQueue, rateQueue,
		tickQueue,
	}
}

// marks returns the node below which acknowledgements leave their marks.
func marks(path string) string { return path + "-marks" }

func (t queueTrial) prepare(e *epoch, sess *zk.Session) error {
	for _, place := range t.places() {
		if _, err := sess.Create(e.t.Context(), marks(e.root+"/"+place), nil, zk.Persistent); err != nil {
			return err
		}
		kind := queueKinds[place]
		if kind.rate == (queue.Rate{}) {
			continue
		}
		q, err := queue.New(e.client, e.root+"/"+place, kind.cfg)
		if err != nil {
			return err
		}
		if err := errors.Join(q.SetRate(e.t.Context(), kind.rate), q.Close(e.t.Context())); err != nil {
			return err
		}
	}
	return nil
}

func (t queueTrial) instruct(o *orders) {
	o.Job, o.Places, o.Deaf, o.Unproved = queueJob, t.places(), t.deaf, t.unproved
}

func (queueTrial) newJournal() journal { return newQueueJournal() }

// settle drains the queues to find out what was in them.
func (t queueTrial) settle(e *epoch, sess *zk.Session) error {
	for _, place := range t.places() {
		if err := e.drain(place, sess); err != nil {
			return err
		}
	}
	return nil
}
