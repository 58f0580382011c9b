package lincheck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// history builds a history: every call adds what a client saw, at times that the caller chooses.
type history struct{ lincheck.QueueHistory }

// put puts one item, whose id is # and its body.
func (s *history) put(body string, asked, done int64) *lincheck.Put {
	p := s.batch(asked, done, body)
	return p
}

func (s *history) batch(asked, done int64, bodies ...string) *lincheck.Put {
	p := lincheck.Put{Client: 1, Serial: len(s.Puts), Asked: asked, Done: done, Certain: done > 0}
	for _, body := range bodies {
		p.Items = append(p.Items, lincheck.PutItem{Body: body})
		if done > 0 {
			p.IDs = append(p.IDs, "#"+body)
		}
	}
	s.Puts = append(s.Puts, p)
	return &s.Puts[len(s.Puts)-1]
}

// take delivers an item whose context stays alive until alive.
func (s *history) take(client int, body string, token int64, attempt int, asked, got, alive int64) *lincheck.Delivery {
	d := lincheck.Delivery{
		Client: client, Serial: len(s.Deliveries), Session: int64(client), Item: "#" + body, Body: body,
		Attempt: attempt, Token: token, Asked: asked, Got: got, Alive: alive,
	}
	s.Deliveries = append(s.Deliveries, d)
	return &s.Deliveries[len(s.Deliveries)-1]
}

// alone delivers an item to client 9, which knows everything and acknowledges at once.
func (s *history) alone(body string, at int64) *lincheck.Delivery {
	d := s.take(9, body, at, 1, at, at+1, at+2)
	d.Alone, d.Known = true, at
	finish(d, lincheck.Acknowledged, at+3, at+4)
	return d
}

func finish(d *lincheck.Delivery, fate lincheck.Fate, asked, done int64) {
	d.Finish = lincheck.Finish{Fate: fate, Asked: asked, Done: done}
}

// done delivers an item and acknowledges it.
func (s *history) done(client int, body string, token int64, attempt int, at int64) *lincheck.Delivery {
	d := s.take(client, body, token, attempt, at, at+1, at+2)
	finish(d, lincheck.Acknowledged, at+3, at+4)
	return d
}

func (s *history) dead(body string, attempts int, reason string) {
	s.Dead = append(s.Dead, lincheck.Dead{Item: "#" + body, Body: body, Attempts: attempts, Reason: reason})
}

// Promise: 7
func TestHistoriesThatNoQueueHasAreRefused(t *testing.T) {
	t.Parallel()
	judgeAll(t, []queueCase{
		{"nothing", "", func(*history) {}},
		{"put, taken, done", "", func(s *history) { s.put("a", 1, 2); s.done(1, "a", 5, 1, 10) }},

		// Nothing is lost.
		{"acknowledged and not there", "lost", func(s *history) { s.put("a", 1, 2) }},
		{"one of a batch is not there", "lost", func(s *history) { s.batch(1, 2, "a", "b"); s.done(1, "a", 5, 1, 10) }},
		{"no answer, and not there", "", func(s *history) { s.put("a", 1, 0) }},
		{"no answer, and there", "", func(s *history) { s.put("a", 1, 0); s.done(1, "a", 5, 1, 10) }},
		{"its consumer did nothing with it", "lost", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 12)
		}},
		{"no answer, seen, and gone", "lost", func(s *history) { s.put("a", 1, 0); s.take(1, "a", 5, 1, 10, 11, 12) }},
		{"its consumer had no answer", "", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.Acknowledged, 13, 0)
		}},
		{"given back, and not there", "lost", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.GivenBack, 13, 14)
		}},
		{"put off, and not there", "lost", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.PutOff, 13, 0)
		}},
		{"rejected, and not there", "lost", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.Rejected, 13, 0)
		}},

		// Nothing comes from nowhere, and nothing is doubled.
		{"not put", "never put", func(s *history) { s.done(1, "a", 5, 1, 10) }},
		{"a dead letter that was not put", "never put", func(s *history) { s.dead("a", 4, "4 attempts failed") }},
		{"the put has failed for certain", "was told that it is not in the queue", func(s *history) {
			s.put("a", 1, 0).Certain = true
			s.done(1, "a", 5, 1, 10)
		}},
		{"the rest of a batch, and it has failed", "was told that it is not in the queue", func(s *history) {
			s.batch(1, 2, "a", "b").IDs = []string{"#a"}
			s.done(1, "a", 5, 1, 10)
			s.done(1, "b", 5, 1, 20)
		}},
		{"the rest of a batch, and its outcome is unknown", "", func(s *history) {
			p := s.batch(1, 2, "a", "b")
			p.IDs, p.Certain = []string{"#a"}, false
			s.done(1, "a", 5, 1, 10)
			s.done(1, "b", 6, 1, 20)
		}},
		{"one put, two items", "is in the queue twice", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.done(1, "a", 6, 1, 20).Item = "#b"
		}},
		{"two items of a put without an answer", "is in the queue twice", func(s *history) {
			s.put("a", 1, 0)
			s.done(1, "a", 5, 1, 10)
			s.done(1, "a", 6, 1, 20).Item = "#b"
		}},
		{"another body", "and then", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.done(1, "a", 5, 1, 10)
			s.done(1, "b", 6, 1, 20).Item = "#a"
		}},
		{"another priority", "priority", func(s *history) { s.put("a", 1, 2); s.done(1, "a", 5, 1, 10).Priority = 1 }},
		{"a key, twice", "stands for two items", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			s.put("b", 3, 4).Key = "k"
			s.done(1, "a", 5, 1, 10)
			s.done(1, "b", 6, 1, 20)
		}},
		{"a key, the second time it was there", "", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			p := s.put("b", 3, 4)
			p.Key, p.IDs, p.Instead = "k", nil, "#a"
			s.done(1, "a", 5, 1, 10)
		}},
		{"a key that stands for an item that was never seen", "stands for two items", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			p := s.put("b", 3, 4)
			p.Key, p.IDs, p.Instead = "k", nil, "#c"
			s.done(1, "a", 5, 1, 10)
		}},

		// What is done stays done.
		{"delivered again under a later claim", "was told that it is done", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.done(2, "a", 6, 2, 20)
		}},
		{"delivered again under an earlier claim", "was told that it is done", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 2, 10)
			s.take(2, "a", 4, 1, 20, 21, 0)
		}},
		{"asked for before, under an earlier claim, and over", "", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 2, 10)
			s.take(2, "a", 4, 1, 5, 21, 0)
		}},
		{"acknowledged by the former owner", "was told that it is done", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.Acknowledged, 13, 30)
			s.done(2, "a", 6, 2, 20)
		}},
		{"acknowledged twice", "was told that it is done", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.done(1, "a", 6, 2, 20)
		}},
		{"no answer, and delivered again", "", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.Acknowledged, 13, 0)
			s.done(2, "a", 6, 2, 20)
		}},
		{"acknowledged, and dead", "is a dead letter", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.dead("a", 4, "4 attempts failed")
		}},
		{"done, with its mark", "", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10).Finish.Marked = true
			s.Marks = []string{"#a"}
		}},
		{"done, without its mark", "was not done", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10).Finish.Marked = true
		}},
		{"not done, with its mark, and delivered again", "had left its mark", func(s *history) {
			s.put("a", 1, 2)
			d := s.done(1, "a", 5, 1, 10)
			d.Finish.Marked, d.Finish.Done = true, 0
			s.done(2, "a", 6, 2, 20)
			s.Marks = []string{"#a"}
		}},
		{"unknown outcome, no mark, and gone", "lost", func(s *history) {
			s.put("a", 1, 2)
			d := s.done(1, "a", 5, 1, 10)
			d.Finish.Marked, d.Finish.Done = true, 0
		}},
		{"a mark without an acknowledgement", "no acknowledgement left", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.Marks = []string{"#a"}
		}},

		// One consumer at a time.
		{"two at once", "two consumers at once", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 30)
			s.done(2, "a", 6, 2, 20)
		}},
		{"the second is over before it is seen", "", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 30)
			s.take(2, "a", 6, 2, 20, 21, 0)
			s.done(2, "a", 7, 3, 40)
		}},
		{"one after the other", "", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 20)
			s.done(2, "a", 6, 2, 20)
		}},
		{"the earlier one has the larger token", "two consumers at once", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 6, 2, 10, 11, 12)
			s.done(2, "a", 5, 1, 20)
		}},
		{"one claim, twice", "under one claim", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 12)
			s.done(1, "a", 5, 2, 20)
		}},

		// Attempts.
		{"an attempt twice", "attempt 1 (client 2) after attempt 1", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 12)
			s.done(2, "a", 6, 1, 20)
		}},
		{"as many too many as may be", "", func(s *history) { s.put("a", 1, 2); s.done(2, "a", 6, 3, 20) }},
		{"one more", "without a delivery", func(s *history) { s.put("a", 1, 2); s.done(2, "a", 6, 4, 20) }},
		{"past the last", "attempt 6 of 5", func(s *history) {
			s.put("a", 1, 2)
			s.Rules.Spare = 9
			s.done(2, "a", 6, 6, 20)
		}},
		{"dead of its last attempt", "", func(s *history) {
			s.put("a", 1, 2)
			s.Rules.Spare = 9
			finish(s.take(1, "a", 5, 5, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.dead("a", 5, "5 attempts failed")
		}},
		{"delivered after its last attempt", "was told that it is put off", func(s *history) {
			s.put("a", 1, 2)
			s.Rules.MaxAttempts = 1
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.take(2, "a", 6, 2, 20, 21, 22)
			s.dead("a", 2, "2 attempts failed")
		}},
		{"dead too soon", "no consumer gave", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 12)
			s.dead("a", 2, "2 attempts failed")
		}},
		{"rejected", "", func(s *history) {
			s.put("a", 1, 2)
			d := s.take(1, "a", 5, 1, 10, 11, 12)
			d.Finish = lincheck.Finish{Fate: lincheck.Rejected, Reason: "bad", Asked: 13, Done: 14}
			s.dead("a", 1, "bad")
		}},
		{"rejected for another reason", "no consumer gave", func(s *history) {
			s.put("a", 1, 2)
			d := s.take(1, "a", 5, 1, 10, 11, 12)
			d.Finish = lincheck.Finish{Fate: lincheck.Rejected, Reason: "bad", Asked: 13, Done: 14}
			s.dead("a", 1, "good")
		}},
		{"dead twice", "2 dead letters", func(s *history) {
			s.put("a", 1, 2)
			d := s.take(1, "a", 5, 1, 10, 11, 12)
			d.Finish = lincheck.Finish{Fate: lincheck.Rejected, Reason: "bad", Asked: 13, Done: 14}
			s.dead("a", 1, "bad")
			s.dead("a", 1, "bad")
		}},

		// Order, for a consumer that is alone.
		{"in order", "", func(s *history) { s.put("a", 1, 2); s.put("b", 3, 4); s.alone("a", 10); s.alone("b", 20) }},
		{"out of order", "which had arrived before it", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.alone("b", 10)
			s.alone("a", 20)
		}},
		{"out of order, and not alone", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.done(1, "b", 5, 1, 10)
			s.done(2, "a", 6, 1, 20)
		}},
		{"put at the same time", "", func(s *history) {
			s.put("a", 1, 3)
			s.put("b", 2, 4)
			s.alone("b", 10)
			s.alone("a", 20)
		}},
		{"out of order within a call", "in the same call", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.alone("b", 10)
			s.alone("a", 20)
		}},
		{"no answer, seen later", "", func(s *history) {
			s.put("a", 1, 0)
			s.put("b", 3, 4)
			s.alone("b", 10)
			s.alone("a", 20)
		}},
		{"delayed", "", func(s *history) {
			s.put("a", 1, 2).Items[0].Delayed = true
			s.put("b", 3, 4)
			s.alone("b", 10)
			s.alone("a", 20)
		}},
		{"the less urgent first", "which it knew", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4).Items[0].Priority = -1
			s.alone("a", 10)
			s.alone("b", 20).Priority = -1
		}},
		{"the less urgent first, and it could not know", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4).Items[0].Priority = -1
			s.alone("a", 10).Known = 4
			s.alone("b", 20).Priority = -1
		}},
		{"the more urgent first", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4).Items[0].Priority = -1
			s.alone("b", 10).Priority = -1
			s.alone("a", 20)
		}},
		{"given back, and not the next", "which had arrived before it", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			finish(s.alone("a", 10), lincheck.GivenBack, 13, 14)
			s.alone("b", 20)
			s.alone("a", 30).Attempt = 2
		}},
		{"given back while the next is taken", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			finish(s.alone("a", 10), lincheck.GivenBack, 13, 20)
			s.alone("b", 20)
			s.alone("a", 30).Attempt = 2
		}},
		{"put off", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			finish(s.alone("a", 10), lincheck.PutOff, 13, 14)
			s.alone("b", 20)
			s.alone("a", 30).Attempt = 2
		}},
		{"left behind by a consumer that is gone, and not the next", "which had arrived before it", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.take(1, "a", 5, 1, 5, 6, 7)
			s.alone("b", 20)
			s.alone("a", 30).Attempt = 2
		}},
		{"in order of their places, put at the same time", "", func(s *history) {
			s.put("a", 1, 3)
			s.put("b", 2, 4)
			s.alone("b", 10).Place = "/1"
			s.alone("a", 20).Place = "/2"
		}},
		{"out of order of their places, put at the same time", "before item #a in place /1", func(s *history) {
			s.put("a", 1, 3)
			s.put("b", 2, 4)
			s.alone("b", 10).Place = "/2"
			s.alone("a", 20).Place = "/1"
		}},
		{"places that are not in the order of the puts", "which had arrived before it", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.done(1, "b", 5, 1, 10).Place = "/1"
			s.done(2, "a", 6, 1, 20).Place = "/2"
		}},
		{"a later place after it was put off", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			first := s.alone("a", 10)
			first.Place = "/1"
			finish(first, lincheck.PutOff, 13, 14)
			s.alone("b", 20).Place = "/2"
			next := s.alone("a", 30)
			next.Attempt, next.Place = 2, "/3"
		}},
		{"in the same consumer's hands", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			first := s.alone("a", 10)
			first.Finish = lincheck.Finish{}
			s.alone("b", 20)
			next := s.alone("a", 30)
			next.Attempt, next.Session = 2, 10
		}},

		// Order, for several consumers.
		{"a part out of its order", "before item #a in place /1", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.done(1, "b", 5, 1, 10).Place = "/2"
			s.done(1, "a", 5, 1, 20).Place = "/1"
		}},
		{"a part that is given to two at the same time", "", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.done(1, "b", 5, 1, 10).Place = "/2"
			s.take(1, "a", 5, 1, 5, 25, 26).Place = "/1"
			finish(&s.Deliveries[1], lincheck.Acknowledged, 27, 28)
		}},
		{"two parts", "", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.done(1, "b", 6, 1, 10).Place = "/2"
			s.done(1, "a", 5, 1, 20).Place = "/1"
		}},
		{"within reach", "", func(s *history) { s.passOver(3) }},
		{"out of reach", "want at most 3", func(s *history) { s.passOver(4) }},
	})
}

// queueCase is a history and its violation.
type queueCase struct {
	why  string
	want string // part of the violation's text; empty if there is none
	tell func(s *history)
}

func judgeAll(t *testing.T, cases []queueCase) {
	t.Helper()
	for _, c := range cases {
		s := &history{lincheck.QueueHistory{Rules: lincheck.QueueRules{MaxAttempts: 5, Reach: 3, Spare: 2}}}
		c.tell(s)
		dir := filepath.Join(t.TempDir(), "kept")
		err := lincheck.CheckQueue(s.QueueHistory, dir)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v, want nil", c.why, err)
		case c.want != "" && err == nil:
			t.Errorf("%s: got nil, want an error", c.why)
		case err != nil:
			page, pageErr := os.ReadFile(filepath.Join(dir, "history.html"))
			if pageErr != nil || !strings.Contains(string(page), c.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: got %v, %v, want a page that says %q\n%s", c.why, err, pageErr, c.want, page)
			}
		}
	}
}

// passOver lets one consumer take an item before n others, which another takes later.
func (s *history) passOver(n int) {
	for i := range n {
		s.put(fmt.Sprintf("a%d", i), int64(2*i+1), int64(2*i+2))
	}
	s.put("z", 100, 101)
	s.done(1, "z", 1, 1, 200)
	for i := range n {
		s.done(2, fmt.Sprintf("a%d", i), 2, 1, 300+10*int64(i))
	}
}
