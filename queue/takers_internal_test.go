package queue

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/zktest"
)

// withConsumer calls f with a consumer of a queue.
func withConsumer(t *testing.T, f func(t *testing.T, q *Queue, co *consumer)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		q, err := New(srv.Client(t, 20*time.Second), "/q", Config{})
		if err != nil {
			t.Fatal(err)
		}
		co, err := q.dispatcher.openConsumer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f(t, q, co)
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// withTakers calls f with takers that nothing serves, and a function that makes n items of a consumer that lives.
func withTakers(t *testing.T, f func(t *testing.T, ts *takers, items func(n int) next)) {
	t.Helper()
	withConsumer(t, func(t *testing.T, _ *Queue, co *consumer) {
		f(t, newTakers(), func(n int) next {
			return func() (*Item, bool) {
				if n == 0 {
					return nil, false
				}
				n--
				return &Item{co: co}, n == 1
			}
		})
	})
}

func newTaker(want int, try bool) *taker {
	return &taker{want: want, try: try, answer: make(chan error, 1)}
}

// answered returns false if a taker has no answer, and otherwise that.
func answered(t *taker) (bool, error) {
	select {
	case err := <-t.answer:
		return true, err
	default:
		return false, nil
	}
}

// While some wait, or items are to be claimed ahead, there is exactly one goroutine that serves.
func TestTakersAreServedByOneGoroutine(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		first, second := newTaker(1, false), newTaker(1, false)
		if start, err := ts.add(first); !start || err != nil {
			t.Fatalf("got %v %v for the first taker, want a start", start, err)
		}
		if start, _ := ts.add(second); start {
			t.Error("the second taker starts another goroutine")
		}
		if ts.rest() {
			t.Error("the goroutine ends while takers wait")
		}
		if n := ts.serve(items(3), nil); n != 0 {
			t.Errorf("%d takers wait after there was an item for each", n)
		}
		if ts.rest() {
			t.Error("the goroutine ends before it has claimed ahead")
		}
		if !ts.mustClaimAhead() || ts.mustClaimAhead() {
			t.Error("items are not claimed ahead once")
		}
		if !ts.rest() {
			t.Error("the goroutine goes on without work")
		}
		if item, start := ts.take(items(2)); item == nil || !start {
			t.Errorf("got %v %v, want an item and a start: few are left", item, start)
		}
		if item, start := ts.take(items(2)); item == nil || start {
			t.Errorf("got %v %v, want an item and no second start", item, start)
		}
	})
}

func TestTakersAreServedInTheirOrder(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		two, one := newTaker(2, false), newTaker(1, true)
		for _, taker := range []*taker{two, one} {
			if _, err := ts.add(taker); err != nil {
				t.Fatal(err)
			}
		}
		if n := ts.demand(); n != 3 {
			t.Errorf("got a demand of %d, want 3", n)
		}
		if item, _ := ts.take(items(1)); item != nil {
			t.Error("a caller gets an item before those that wait")
		}
		ts.serve(items(1), nil)
		if ok, _ := answered(two); ok || len(two.got) != 1 {
			t.Errorf("the first has %d items and answer %v, want one item and none", len(two.got), ok)
		}
		if n := ts.demand(); n != 2 {
			t.Errorf("got a demand of %d, want 2", n)
		}
		// Only one that has had a look is told that nothing is there.
		if n := ts.refuse(ErrEmpty); n != 1 {
			t.Errorf("%d wait after the one with an item was answered, want the other", n)
		}
		if ok, err := answered(two); err != nil || !ok {
			t.Errorf("got %v %v, want the item that it has", err, ok)
		}
		ts.noteFetch()
		if n := ts.serve(items(0), func(trying bool) error {
			if !trying {
				t.Error("the one that does not want to wait is not known")
			}
			return ErrPaused
		}); n != 0 {
			t.Errorf("%d wait, want none", n)
		}
		if _, err := answered(one); !errors.Is(err, ErrPaused) {
			t.Errorf("got %v, want ErrPaused", err)
		}
	})
}

func TestTakersLeaveWithWhatTheyHave(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		taker := newTaker(2, false)
		if _, err := ts.add(taker); err != nil {
			t.Fatal(err)
		}
		given := false
		if !ts.begin(func() { given = true }) {
			t.Fatal("there is nothing to do")
		}
		ts.serve(items(1), nil)
		if got, left := ts.leave(taker); !left || len(got) != 1 || !given {
			t.Errorf("got %d items, left %v, and the step ended %v, want one and both", len(got), left, given)
		}
		if _, left := ts.leave(taker); left {
			t.Error("it leaves twice")
		}
		if ts.begin(func() {}) {
			t.Error("there is something to do for none")
		}
	})
}

func TestClosedTakersAnswerAll(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		some, none := newTaker(2, false), newTaker(1, false)
		for _, taker := range []*taker{some, none} {
			if _, err := ts.add(taker); err != nil {
				t.Fatal(err)
			}
		}
		ts.serve(items(1), nil)
		ts.close(ErrClosed)
		if ok, err := answered(some); err != nil || !ok || len(some.got) != 1 {
			t.Errorf("got %v %v, want the item that it has", err, ok)
		}
		if _, err := answered(none); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if _, err := ts.add(newTaker(1, false)); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v for one that comes later, want ErrClosed", err)
		}
		if item, start := ts.take(items(2)); item != nil || start {
			t.Errorf("got %v %v after the end, want nothing: its claim may be about to go", item, start)
		}
	})
}

// To claim ahead would fail as well, again and again and without a pause.
func TestNothingIsToDoForTakersThatHaveFailed(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		if _, start := ts.take(items(2)); !start {
			t.Fatal("nothing is to be claimed ahead")
		}
		ts.fail(errAgain)
		if ts.begin(func() {}) || !ts.rest() {
			t.Error("there is something to do")
		}
	})
}

// Each taker gets one answer, however many goroutines add, serve and end at the same time.
func TestEachTakerGetsOneAnswer(t *testing.T) {
	t.Parallel()
	withTakers(t, func(t *testing.T, ts *takers, items func(n int) next) {
		serve := func() {
			for {
				if !ts.begin(func() {}) {
					if ts.rest() {
						return
					}
					continue
				}
				ts.mustClaimAhead()
				ts.serve(items(2), nil)
			}
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				taker := newTaker(1, false)
				start, err := ts.add(taker)
				if err != nil {
					t.Error(err)
					return
				}
				if start {
					all.Go(serve)
				}
				if err := <-taker.answer; err != nil || len(taker.got) != 1 { // without one the bubble ends the test
					t.Errorf("got %v with %d items, want one", err, len(taker.got))
				}
			})
		}
		all.Wait()
	})
}
