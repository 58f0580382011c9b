package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zktest"
)

// ledger judges what a queue does.
type ledger struct {
	t *testing.T

	mu       sync.Mutex // guards what follows
	put      map[string]string
	delivers map[string]int
	finished map[string]bool
	unclear  map[string]bool
	bodies   map[string]string // to the id that was seen
	tokens   map[string]queue.Token
	wrong    []error
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	return &ledger{
		t: t, put: make(map[string]string), delivers: make(map[string]int), finished: make(map[string]bool),
		unclear: make(map[string]bool), bodies: make(map[string]string), tokens: make(map[string]queue.Token),
	}
}

func (l *ledger) acknowledged(id, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put[id] = body
}

func (l *ledger) delivered(item *queue.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, body := item.ID(), string(item.Body())
	if l.finished[id] {
		l.wrong = append(l.wrong, fmt.Errorf("item %s was delivered again after Done", body))
	}
	if other := l.bodies[body]; other != "" && other != id {
		l.wrong = append(l.wrong, fmt.Errorf("item %s is in twice", body))
	}
	if item.Token() < l.tokens[id] {
		l.wrong = append(l.wrong, fmt.Errorf("item %s: token %d after %d", body, item.Token(), l.tokens[id]))
	}
	l.bodies[body], l.tokens[id] = id, item.Token()
	l.delivers[id]++
}

func (l *ledger) done(item *queue.Item, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.finished[item.ID()] = true
	} else {
		l.unclear[item.ID()] = true
	}
}

// judge returns what was wrong when all has come to rest.
func (l *ledger) judge() error {
	l.mu.Lock()
	err := errors.Join(l.wrong...)
	l.mu.Unlock()
	if open := l.open(); len(open) > 0 {
		err = errors.Join(err, fmt.Errorf("lost: %v", open))
	}
	return err
}

func (l *ledger) open() (open []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, body := range l.put {
		if !l.finished[id] && !l.unclear[id] {
			open = append(open, body)
		}
	}
	return open
}

// Producers and consumers in processes of their own, whose connections break at random, with and without what was
// asked last being done, and whose sessions end at random: nothing that was put is lost, nothing that was done is
// delivered again, nothing is put twice.
func TestQueueUnderRandomFaults(t *testing.T) {
	t.Parallel()
	for seed := range soak.Pick[uint64](2, 6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 1)) // the control function's
				seeds := rand.New(rand.NewPCG(seed, 2))
				l := newLedger(t)
				var cuts sync.WaitGroup
				defer cuts.Wait()
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Session == 0 {
						return zktest.Pass
					}
					switch rng.IntN(100) {
					case 0, 1:
						return zktest.DropReply
					case 2:
						return zktest.Refuse
					case 3:
						return zktest.CutAfter
					case 4:
						if rng.IntN(10) == 0 {
							cuts.Go(func() { cutOff(w, r.Session) })
						}
						return zktest.Pass
					default:
						return zktest.Pass
					}
				})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var consumers, producers sync.WaitGroup
				for range 4 {
					backoff := queue.Backoff{First: time.Second, Max: time.Second}
					q := w.queue(queue.Config{MaxAttempts: -1, Backoff: backoff}.WithSegment(7))
					moods := rand.New(rand.NewPCG(seed, seeds.Uint64()))
					consumers.Go(func() { consume(ctx, q, l, moods) })
				}
				for p := range 3 {
					q := w.queue(queue.Config{}.WithSegment(7))
					moods := rand.New(rand.NewPCG(seed, seeds.Uint64()))
					producers.Go(func() { produce(ctx, q, l, p, moods) })
				}
				producers.Wait()
				for n := 0; len(l.open()) > 0; n++ {
					pass(time.Second)
					if n == 600 {
						break
					}
				}
				w.Control(func(zktest.Request) zktest.Fault { return zktest.Pass })
				pass(time.Minute)
				stop()
				consumers.Wait()
				if err := l.judge(); err != nil {
					t.Error(err)
				}
				q := w.queue(queue.Config{})
				wantLen(t, q, queue.Counts{})
				w.NoNodes(t, root+"/claims")
				w.NoNodes(t, root+"/waiters")
			})
		})
	}
}

// cutOff keeps a session from the servers until it has timed out. (A session that is ended by force hears of it after
// the fact, and may hand out what it has claimed for an instant longer; finishing that is refused.)
func cutOff(w *world, session int64) {
	w.Cut(session)
	pass(40 * time.Second)
	w.Heal(session)
}

func produce(ctx context.Context, q *queue.Queue, l *ledger, p int, moods *rand.Rand) {
	for i := 0; i < 60; {
		var list []queue.Message
		for range 1 + moods.IntN(12) {
			m := queue.Message{Body: fmt.Appendf(nil, "%d.%d", p, i)}
			m.Priority = moods.IntN(3) - 1
			m.Delay = time.Duration(max(0, moods.IntN(6)-3)) * 20 * time.Second
			list = append(list, m)
			i++
		}
		ids, err := q.PutBatch(ctx, list)
		if err != nil {
			l.t.Errorf("put: %v", err)
			return
		}
		for k, id := range ids {
			l.acknowledged(id, string(list[k].Body))
		}
		pass(time.Duration(moods.IntN(200)) * time.Millisecond)
	}
}

func consume(ctx context.Context, q *queue.Queue, l *ledger, moods *rand.Rand) {
	for {
		items, err := q.TakeBatch(ctx, 1+moods.IntN(4))
		if err != nil {
			if ctx.Err() == nil {
				l.t.Errorf("take: %v", err)
			}
			return
		}
		for _, item := range items {
			l.delivered(item)
		}
		for _, item := range items {
			if moods.IntN(4) == 0 {
				pass(time.Duration(moods.IntN(300)) * time.Millisecond)
			}
			switch moods.IntN(6) {
			case 0:
				err = item.Fail(context.Background(), &queue.RetryError{})
			case 1:
				err = item.Fail(context.Background(), errors.New("mood"))
			default:
				err = item.Done(context.Background())
				l.done(item, err)
			}
			if err != nil && !errors.Is(err, queue.ErrClaimLost) {
				l.t.Errorf("finish: %v", err)
			}
		}
	}
}
