package queue_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// every is the schedule of all multiples of a duration.
type every time.Duration

func (e every) Next(t time.Time) time.Time { return t.Truncate(time.Duration(e)).Add(time.Duration(e)) }

// after is the schedule of all times that are a duration behind the full hour.
type after time.Duration

func (a after) Next(t time.Time) time.Time {
	next := t.Truncate(time.Hour).Add(time.Duration(a))
	if !next.After(t) {
		next = next.Add(time.Hour)
	}
	return next
}

// never is a schedule without times.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// only is a schedule with a single time.
type only struct{ at time.Time }

func (o only) Next(t time.Time) time.Time {
	if t.Before(o.at) {
		return o.at
	}
	return time.Time{}
}

// scheduleFunc is a schedule.
type scheduleFunc func(t time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

// A schedule that does not go on would put one item after the other.
func TestScheduleThatDoesNotGoOnIsRefused(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]scheduleFunc{
		"fixed":   func(time.Time) time.Time { return time.Date(2000, 1, 1, 0, 0, 5, 0, time.UTC) },
		"earlier": func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"rounded": func(t time.Time) time.Time { return t.Truncate(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				err := q.Repeat(t.Context(), queue.Periodic{
					Name: name, Schedule: next, Message: func(time.Time) queue.Message { return queue.Message{} },
				})
				if !errors.Is(err, zk.BadArguments) {
					t.Errorf("got %v, want that the schedule is refused", err)
				}
				if bodies := takeEach(t, q); len(bodies) > 1 {
					t.Errorf("%d items were put", len(bodies))
				}
			})
		})
	}
}

// A list of items may be empty.
func TestRepeatOfNothingEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.queue(queue.Config{}).Repeat(ctx); err != nil || ctx.Err() == nil {
			t.Errorf("got %v and %v, want nil once the context has ended", err, ctx.Err())
		}
	})
}

// puts records what repeaters have put.
type puts struct {
	mu    sync.Mutex
	times []time.Time
}

func (p *puts) add(due time.Time, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times = append(p.times, due)
}

// repeat begins to repeat an item of which the body is its time, until stop is called.
func repeat(t *testing.T, q *queue.Queue, s queue.Schedule, p *puts) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- q.Repeat(ctx, queue.Periodic{
			Name: "*/5 the report", Schedule: s, Put: p.add,
			Message: func(due time.Time) queue.Message {
				return queue.Message{Body: []byte(due.UTC().Format(time.TimeOnly))}
			},
		})
	}()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// takeEach takes all items and returns their bodies.
func takeEach(t *testing.T, q *queue.Queue) (list []string) {
	t.Helper()
	for {
		item, err := q.TryTake(t.Context())
		if errors.Is(err, queue.ErrEmpty) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(item.Body()))
		done(t, item)
	}
}

// isPeriodicPut reports whether a request puts a periodic item, and not only writes what its last time is.
func isPeriodicPut(r zktest.Request) bool {
	return len(r.Parts) > 2 && strings.HasPrefix(r.Parts[1].Path, root+"/periodic/")
}

// Promise: 7
func TestEachTimeOfAScheduleIsPutOnceByManyProcesses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		var stops []func()
		for range 4 {
			stops = append(stops, repeat(t, w.queue(queue.Config{}), every(time.Minute), &all))
		}
		tries := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isPeriodicPut(r) {
				tries++
			}
			return zktest.Pass
		})
		pass(10*time.Minute + time.Second)
		w.Control(nil)
		if tries != 10 {
			t.Errorf("there were %d puts of 10 items, want that only the elected process tries", tries)
		}
		q := w.queue(queue.Config{})
		want := []string{
			"00:01:00", "00:02:00", "00:03:00", "00:04:00", "00:05:00",
			"00:06:00", "00:07:00", "00:08:00", "00:09:00", "00:10:00",
		}
		if got := takeEach(t, q); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for i, stop := range stops { // each leaves in turn, and the others go on
			stop()
			pass(time.Minute)
			if got := len(takeEach(t, q)); got != min(1, len(stops)-1-i) {
				t.Errorf("%d items after %d processes have left", got, i+1)
			}
		}
		if len(all.times) != 13 {
			t.Errorf("%d puts were reported, want 13", len(all.times))
		}
	})
}

// Promise: 7
func TestMissedTimesArePutAsOneItem(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		q := w.queue(queue.Config{})
		stop := repeat(t, q, every(time.Minute), &all)
		pass(90 * time.Second)
		stop()
		if got := takeEach(t, q); !slices.Equal(got, []string{"00:01:00"}) {
			t.Errorf("got %v", got)
		}
		pass(time.Hour)
		stop = repeat(t, w.queue(queue.Config{}), every(time.Minute), &all)
		pass(70 * time.Second)
		stop()
		if got := takeEach(t, q); !slices.Equal(got, []string{"00:02:00", "01:02:00"}) {
			t.Errorf("got %v, want the first that was missed, and the next", got)
		}
	})
}

// Whichever request gets lost, or its reply, and whichever process is cut off or loses its session: each time is put
// once.
//
// Promise: 7
func TestFaultsMakeNoPeriodicItemTwice(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"reply lost": zktest.DropReply, "cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var all puts
				var stops []func()
				for range 3 {
					stops = append(stops, repeat(t, w.queue(queue.Config{}), every(10*time.Second), &all))
				}
				w.Control(oneIn(13, fault))
				pass(5 * time.Minute)
				for i := range 6 {
					if ids := w.Connected(); len(ids) > 0 {
						w.ExpireSession(ids[i%len(ids)])
					}
					pass(time.Minute)
				}
				w.Control(nil)
				for _, stop := range stops {
					stop()
				}
				got := takeEach(t, w.queue(queue.Config{}))
				if n := len(slices.Compact(slices.Clone(got))); n != len(got) || !slices.IsSorted(got) || n < 30 {
					t.Errorf("%d items, %d different: %v", len(got), n, got)
				}
			})
		})
	}
}

// A leader that is cut off puts nothing that its successor puts, too, however late its request arrives.
//
// Promise: 7
func TestLeaderThatWasCutOffPutsNothingTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		first := repeat(t, w.queue(queue.Config{}), every(time.Minute), &all)
		pass(time.Second)
		second := repeat(t, w.queue(queue.Config{}), every(time.Minute), &all)
		pass(time.Second)
		for _, id := range w.Connected() {
			w.Mute(id)
		}
		pass(150 * time.Second)
		w.Heal()
		pass(10 * time.Minute)
		first()
		second()
		got := takeEach(t, w.queue(queue.Config{}))
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) || n < 10 {
			t.Errorf("%d items, %d different: %v", len(got), n, got)
		}
	})
}

// A leader whose place in line was removed does not put what its successor has put, while it still believes to lead.
//
// Promise: 7
func TestTwoLeadersPutATimeOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		first := repeat(t, w.queue(queue.Config{}), every(time.Minute), &all)
		pass(time.Second)
		second := repeat(t, w.queue(queue.Config{}), every(time.Minute), &all)
		pass(time.Second)
		held, release := context.WithCancel(t.Context())
		puts := 0
		w.Control(func(r zktest.Request) zktest.Fault {
			if isPeriodicPut(r) {
				if puts++; puts == 1 {
					return zktest.Until(held)
				}
			}
			return zktest.Pass
		})
		pass(59 * time.Second)
		dir := root + "/periodic/" + w.children(root + "/periodic")[0]
		line := w.children(dir)
		leader := slices.MinFunc(line, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
		if err := w.Session(t, time.Minute).Delete(t.Context(), dir+"/"+leader, -1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		release()
		pass(time.Second)
		first()
		second()
		got := takeEach(t, w.queue(queue.Config{}))
		if !slices.Equal(got, []string{"00:01:00"}) || puts != 2 || len(all.times) != 1 {
			t.Errorf("got %v after %d puts, want 00:01:00 once after 2", got, puts)
		}
	})
}

// Promise: 7
func TestPeriodicItemsWaitForRoomInAFullQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		q := w.queue(queue.Config{MaxItems: 1})
		putAll(t, q, 0, 1)
		stop := repeat(t, q, every(time.Minute), &all)
		pass(3 * time.Minute)
		doneInOrder(t, q, 0, 1)
		pass(2 * time.Second)
		stop()
		if got := takeEach(t, q); !slices.Equal(got, []string{"00:01:00"}) {
			t.Errorf("got %v", got)
		}
	})
}

// Promise: 7
func TestPeriodicItemsThatMakeNoSenseAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		message := func(time.Time) queue.Message { return queue.Message{} }
		for _, p := range []queue.Periodic{
			{Schedule: never{}, Message: message},
			{Name: "..", Schedule: never{}, Message: message},
			{Name: "a", Message: message},
			{Name: "a", Schedule: never{}},
		} {
			if err := q.Repeat(t.Context(), p); !errors.Is(err, zk.BadArguments) {
				t.Errorf("%+v: got %v", p, err)
			}
		}
		large := queue.Periodic{Name: "large", Schedule: every(time.Second), Message: func(time.Time) queue.Message {
			return queue.Message{Body: make([]byte, 2<<20)}
		}}
		wrong := queue.Periodic{Name: "wrong", Schedule: every(time.Second), Message: func(time.Time) queue.Message {
			return queue.Message{Priority: queue.LeastUrgent + 1}
		}}
		if err := q.Repeat(t.Context(), wrong); !errors.Is(err, zk.BadArguments) {
			t.Errorf("got %v, want BadArguments", err)
		}
		other := queue.Periodic{Name: "n", Schedule: never{}, Message: message}
		if err := q.Repeat(t.Context(), large, other); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("got %v, want ErrTooLarge", err)
		}
		// What another program wrote there is no time, and the schedule begins anew.
		sess := w.Session(t, time.Hour)
		var all puts
		for _, data := range []string{"soon", "-1", "9223372036854775807"} {
			stop := repeat(t, q, never{}, &all)
			pass(time.Second)
			stop()
			if _, err := sess.Set(t.Context(), root+"/periodic/%2A%2F5%20the%20report", []byte(data), -1); err != nil {
				t.Fatal(err)
			}
			stop = repeat(t, q, every(time.Minute), &all)
			pass(time.Minute)
			stop()
			if got := takeEach(t, q); len(got) != 1 {
				t.Errorf("%q: got %v, want one", data, got)
			}
		}
	})
}

// What a server wrote whose clock was ahead: the item of the next time was put then, and is not put again. If more than
// one would be missing, the schedule goes on with the clock as it is.
func TestScheduleGoesOnAfterTheClockWasAhead(t *testing.T) {
	t.Parallel()
	const quarter, month = 15 * time.Minute, 30 * 24 * time.Hour
	fives := every(5 * time.Minute)
	for name, c := range map[string]struct {
		ahead, passes time.Duration
		s             queue.Schedule
		want          []string
	}{
		"a month, each 5 minutes":    {month, quarter, fives, []string{"00:05:00", "00:10:00", "00:15:00"}},
		"10 minutes, each 5 minutes": {10 * time.Minute, quarter, fives, []string{"00:05:00", "00:10:00", "00:15:00"}},
		"5 minutes, each 5 minutes":  {5 * time.Minute, quarter, fives, []string{"00:10:00", "00:15:00"}},
		"1 minute, each half minute, which servers may differ by": {
			time.Minute, 2 * time.Minute, every(30 * time.Second), []string{"00:01:30", "00:02:00"},
		},
		"90 seconds, each half minute": {
			90 * time.Second, 2 * time.Minute, every(30 * time.Second),
			[]string{"00:00:30", "00:01:00", "00:01:30", "00:02:00"},
		},
		"a century, never":    {100 * 365 * 24 * time.Hour, quarter, never{}, nil},
		"a month, each month": {month, quarter, every(month), nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var all puts
				q := w.queue(queue.Config{})
				start := time.Now()
				stop := repeat(t, q, c.s, &all)
				synctest.Wait()
				stop()
				last := strconv.FormatInt(start.Add(c.ahead).UnixMilli(), 10)
				sess := w.Session(t, time.Hour)
				_, err := sess.Set(t.Context(), root+"/periodic/%2A%2F5%20the%20report", []byte(last), -1)
				if err != nil {
					t.Fatal(err)
				}
				stop = repeat(t, q, c.s, &all)
				pass(c.passes + time.Second)
				stop()
				got := takeEach(t, q)
				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

// zoned is a schedule that complains of times that are not in UTC: such as github.com/robfig/cron has take the zone of
// the time that they are asked for, and processes differ in theirs.
type zoned struct {
	every
	t *testing.T
}

func (z zoned) Next(t time.Time) time.Time {
	if t.Location() != time.UTC {
		z.t.Errorf("the schedule is asked for the time after %v", t)
	}
	return z.every.Next(t)
}

func TestScheduleIsAskedInUTC(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		q := w.queue(queue.Config{})
		for range 2 {
			stop := repeat(t, q, zoned{every(time.Minute), t}, &all)
			pass(2*time.Minute + time.Second)
			stop()
			late := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
			sess := w.Session(t, time.Hour)
			if _, err := sess.Set(t.Context(), root+"/periodic/%2A%2F5%20the%20report", []byte(late), -1); err != nil {
				t.Fatal(err)
			}
		}
		if len(all.times) != 4 {
			t.Errorf("got %v, want four", all.times)
		}
	})
}

// Whichever process's queue is closed, the leader's or that of one that waits: Repeat returns, and the others go on.
//
// Promise: 7
func TestRepeatEndsWhenItsQueueIsClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var all puts
		stop := repeat(t, w.queue(queue.Config{}), every(time.Hour), &all)
		pass(time.Second)
		closed := w.queue(queue.Config{})
		ended := make(chan error, 2)
		run := func() {
			ended <- closed.Repeat(t.Context(), queue.Periodic{
				Name: "*/5 the report", Schedule: every(time.Hour), Put: all.add,
				Message: func(time.Time) queue.Message { return queue.Message{} },
			}, queue.Periodic{
				Name: "alone", Schedule: never{},
				Message: func(time.Time) queue.Message { return queue.Message{} },
			})
		}
		go run()
		pass(time.Second)
		if err := closed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, queue.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
		default:
			t.Fatal("Repeat goes on when its queue is closed")
		}
		w.NoNodes(t, root+"/periodic/alone")
		pass(time.Hour)
		stop()
		if len(all.times) != 1 {
			t.Errorf("%d puts were reported, want 1", len(all.times))
		}
	})
}

// The receipt that would tell what became of a put is gone, as after an outage of more than an hour. The periodic
// item's node tells, too.
//
// Promise: 7
func TestRepeatGoesOnWhenItCannotLearnWhatBecameOfAPut(t *testing.T) {
	t.Parallel()
	type fate struct {
		fault zktest.Fault
		parts int // 2: the write that tells the time; 3: the put
	}
	for name, fate := range map[string]fate{
		"put lost": {zktest.CutBefore, 3}, "put done": {zktest.CutAfter, 3},
		"look lost": {zktest.CutBefore, 2}, "look done": {zktest.CutAfter, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q, sess := w.queue(queue.Config{}), w.Session(t, time.Hour)
				var all puts
				stop := repeat(t, q, every(time.Minute), &all)
				pass(90 * time.Second)
				var once sync.Once
				w.Control(func(r zktest.Request) (f zktest.Fault) {
					const node = root + "/periodic/%2A%2F5%20the%20report"
					if min(len(r.Parts), 3) == fate.parts && r.Parts[1].Path == node {
						once.Do(func() {
							f = fate.fault
							go func() { _ = sess.Delete(t.Context(), r.Parts[0].Path, -1) }()
						})
					}
					return f
				})
				pass(2 * time.Minute)
				stop()
				if got := takeEach(t, q); !slices.Equal(got, []string{"00:01:00", "00:02:00", "00:03:00"}) {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// Promise: 7
func TestTimeThatIsCenturiesAheadIsNotPut(t *testing.T) {
	t.Parallel()
	for _, year := range []int{2300, 9999} {
		t.Run(strconv.Itoa(year), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				q := w.queue(queue.Config{})
				var all puts
				stop := repeat(t, q, only{time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}, &all)
				pass(time.Minute)
				stop()
				if len(all.times) != 0 {
					t.Errorf("%d items were put, want none", len(all.times))
				}
				wantLen(t, q, queue.Counts{})
			})
		})
	}
}

// The last time is stored in milliseconds.
//
// Promise: 7
func TestTimesBelowAMillisecondArePutOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		q := w.queue(queue.Config{})
		bounded(t, w, 1000)
		var all puts
		stop := repeat(t, q, after(5*time.Minute+333*time.Microsecond), &all)
		pass(2 * time.Hour)
		stop()
		w.Control(nil)
		if got := takeEach(t, q); !slices.Equal(got, []string{"00:05:00", "01:05:00"}) {
			t.Errorf("got %v", got)
		}
		for _, due := range all.times {
			if due.Nanosecond() != int(time.Millisecond) {
				t.Errorf("got %v, want the time rounded up to milliseconds", due)
			}
		}
	})
}
