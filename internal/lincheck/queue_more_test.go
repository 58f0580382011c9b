package lincheck_test

// Groups, rates and periodic items of queues.

import (
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// grouped puts items of one group, each in a call of its own.
func (s *history) grouped(bodies ...string) {
	for i, body := range bodies {
		at := int64(1 + 2*i)
		s.put(body, at, at+1).Items[0].Group = "g"
	}
}

// inGroup says that deliveries are those of items of the group.
func inGroup(group string, list ...*lincheck.Delivery) {
	for _, d := range list {
		d.Group = group
	}
}

// Promise: 7
func TestGroupsComeOneByOneAndInOrder(t *testing.T) {
	t.Parallel()
	judgeAll(t, []queueCase{
		{"one after the other", "", func(s *history) {
			s.grouped("a", "b")
			inGroup("g", s.done(1, "a", 5, 1, 10))
			inGroup("g", s.done(2, "b", 6, 1, 20))
		}},
		{"the second first", "which was put before it", func(s *history) {
			s.grouped("a", "b")
			inGroup("g", s.done(2, "b", 5, 1, 10))
			inGroup("g", s.done(1, "a", 6, 1, 20))
		}},
		{"the second first, put at the same time", "", func(s *history) {
			s.grouped("a", "b")
			s.Puts[1].Asked = 1
			inGroup("g", s.done(2, "b", 5, 1, 10))
			inGroup("g", s.done(1, "a", 6, 1, 20))
		}},
		{"the second of a call first", "which was put before it", func(s *history) {
			p := s.batch(1, 2, "a", "b")
			p.Items[0].Group, p.Items[1].Group = "g", "g"
			inGroup("g", s.done(2, "b", 5, 1, 10))
			inGroup("g", s.done(1, "a", 6, 1, 20))
		}},
		{"the second first, in another group", "", func(s *history) {
			s.grouped("a", "b")
			s.Puts[1].Items[0].Group = "h"
			inGroup("h", s.done(2, "b", 5, 1, 10))
			inGroup("g", s.done(1, "a", 6, 1, 20))
		}},
		{"the second before the first is finished", "before client 1 finished item #a", func(s *history) {
			s.grouped("a", "b")
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.Acknowledged, 30, 31)
			s.done(2, "b", 6, 1, 20)
			inGroup("g", &s.Deliveries[0], &s.Deliveries[1])
		}},
		{"the second while the first has a consumer", "had consumers at once", func(s *history) {
			s.grouped("a", "b")
			finish(s.take(1, "a", 5, 1, 10, 11, 25), lincheck.Acknowledged, 26, 0)
			s.done(2, "b", 6, 1, 20)
			inGroup("g", &s.Deliveries[0], &s.Deliveries[1])
		}},
		{"the second before the first comes again", "was delivered again", func(s *history) {
			s.grouped("a", "b")
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.done(2, "b", 6, 1, 20)
			s.done(1, "a", 7, 2, 30)
			inGroup("g", &s.Deliveries[0], &s.Deliveries[1], &s.Deliveries[2])
		}},
		{"the first comes again, then the second", "", func(s *history) {
			s.grouped("a", "b")
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.done(1, "a", 6, 2, 20)
			s.done(2, "b", 7, 1, 30)
			inGroup("g", &s.Deliveries[0], &s.Deliveries[1], &s.Deliveries[2])
		}},
		{"another group", "delivered in group", func(s *history) {
			s.grouped("a")
			inGroup("h", s.done(1, "a", 5, 1, 10))
		}},
	})
}

// claims delivers one item for each token.
func (s *history) claims(tokens ...int64) {
	for i, token := range tokens {
		body, at := string(rune('a'+i)), int64(100*(i+1))
		s.put(body, at, at+1)
		s.done(1, body, token, 1, at+10)
	}
}

// Promise: 7
func TestNoMoreIsClaimedThanTheRateAllows(t *testing.T) {
	t.Parallel()
	rate := lincheck.QueueRate{Items: 10, Per: time.Second, Burst: 1} // one in 100 ms
	judgeAll(t, []queueCase{
		{"at the rate", "", func(s *history) {
			s.Rules.Rate = rate
			s.claims(1, 2, 3, 4)
			s.Rates = []lincheck.RateState{{Zxid: 1, At: 1000}, {Zxid: 4, At: 1300}}
		}},
		{"twice the burst at once", "", func(s *history) {
			s.Rules.Rate = rate
			s.claims(1, 2)
			s.Rates = []lincheck.RateState{{Zxid: 2, At: 1000}, {Zxid: 1, At: 1000}}
		}},
		{"more at once", "3 items were claimed from transaction 1 to 3, in 0 ms", func(s *history) {
			s.Rules.Rate = rate
			s.claims(1, 2, 3)
			s.Rates = []lincheck.RateState{{Zxid: 3, At: 1000}, {Zxid: 1, At: 1000}}
		}},
		{"more in a while", "more than the rate allows: 5", func(s *history) {
			s.Rules.Rate = rate
			s.claims(1, 2, 3, 4, 5, 6)
			s.Rates = []lincheck.RateState{{Zxid: 1, At: 1000}, {Zxid: 6, At: 1300}}
		}},
		{"several in one transaction", "3 items were claimed", func(s *history) {
			s.Rules.Rate = rate
			s.claims(7, 7, 7)
			s.Rates = []lincheck.RateState{{Zxid: 7, At: 1000}}
		}},
		{"after the rate was lifted", "", func(s *history) {
			s.Rules.Rate = rate
			s.claims(1, 3, 4, 5, 6)
			s.Rates = []lincheck.RateState{{Zxid: 1, At: 1000}, {Zxid: 2, At: 1001, Lifted: true}, {Zxid: 6, At: 1002}}
		}},
		{"no rate", "", func(s *history) {
			s.claims(1, 2, 3)
			s.Rates = []lincheck.RateState{{Zxid: 1, At: 1000}, {Zxid: 3, At: 1000}}
		}},
	})
}

// due delivers the item of a time of the schedule, which was put at another.
func (s *history) due(body string, token, due, enqueued int64) {
	d := s.done(1, body, token, 1, token*10)
	d.Due, d.Enqueued = due, enqueued
}

func (s *history) periodic(body, id string) {
	s.Periodic = append(s.Periodic, lincheck.PeriodicPut{Client: 1, Body: body, ID: id})
}

// Promise: 7
func TestEachTimeOfAScheduleIsPutOnce(t *testing.T) {
	t.Parallel()
	judgeAll(t, []queueCase{
		{"each once", "", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.periodic("a", "#a")
			s.due("a", 5, 100, 101)
			s.due("b", 6, 200, 200) // its process was killed before it could report the put
		}},
		{"twice", "is in the queue twice", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.due("a", 5, 100, 101)
			s.due("a", 6, 100, 102)
			s.Deliveries[1].Item = "#b"
		}},
		{"put twice, and delivered once", "is in the queue twice", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.periodic("a", "#a")
			s.periodic("a", "#b")
			s.due("a", 5, 100, 101)
		}},
		{"put, and not there", "is lost", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.periodic("a", "#a")
		}},
		{"too early", "put before its time", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.due("a", 5, 100, 99)
		}},
		{"left out", "no item was put for 200", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.due("a", 5, 100, 101)
			s.due("c", 6, 300, 301)
		}},
		{"left out because the first was late", "", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.due("a", 5, 100, 350)
			s.due("d", 6, 400, 401)
		}},
		{"more left out than the first was late", "no item was put for 400", func(s *history) {
			s.Rules.Every = 100 * time.Millisecond
			s.due("a", 5, 100, 350)
			s.due("e", 6, 500, 501)
		}},
	})
}
