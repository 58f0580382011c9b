package lincheck_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// purge removes n free items.
func (s *history) purge(asked, done int64, n int) *lincheck.Purge {
	s.Purges = append(s.Purges, lincheck.Purge{Client: 3, Serial: len(s.Purges), Asked: asked, Done: done, N: n})
	return &s.Purges[len(s.Purges)-1]
}

// requeue puts back n dead letters: those with these bodies, or all if there are no bodies.
func (s *history) requeue(asked, done int64, n int, bodies ...string) *lincheck.Requeue {
	r := lincheck.Requeue{Client: 4, Serial: len(s.Requeues), Asked: asked, Done: done, N: n}
	for _, body := range bodies {
		r.Items = append(r.Items, "#"+body)
	}
	s.Requeues = append(s.Requeues, r)
	return &s.Requeues[len(s.Requeues)-1]
}

// reject delivers an item and rejects it.
func (s *history) reject(body string, token int64, attempt int, at int64) *lincheck.Delivery {
	d := s.done(1, body, token, attempt, at)
	d.Finish.Fate, d.Finish.Reason = lincheck.Rejected, "bad"
	return d
}

// Promise: 7
func TestItemsThatAreDoneTogetherAreJudgedEach(t *testing.T) {
	t.Parallel()
	// together takes two items and acknowledges both in one call. The call returns at the given time, or fails if
	// that is 0.
	together := func(s *history, returned int64) {
		s.batch(1, 2, "a", "b")
		for i, body := range []string{"a", "b"} {
			d := s.take(1, body, int64(5+i), 1, 10, 11, 12)
			d.Finish = lincheck.Finish{Fate: lincheck.Acknowledged, Others: 1, Asked: 13, Done: returned}
		}
	}
	judgeAll(t, []queueCase{
		{"done together", "", func(s *history) { together(s, 14) }},
		{"done together, and one comes again", "was told that it is done", func(s *history) {
			together(s, 14)
			s.done(2, "b", 7, 2, 20)
		}},
		{"done together, and one is dead", "is a dead letter", func(s *history) {
			together(s, 14)
			s.dead("b", 5, "5 attempts failed")
		}},
		{"no answer, and none comes again", "", func(s *history) { together(s, 0) }},
		{"no answer, and one comes again", "", func(s *history) { together(s, 0); s.done(2, "b", 7, 2, 20) }},
		{"no answer, and one is in its next consumer's hands", "lost", func(s *history) {
			together(s, 0)
			s.take(2, "b", 7, 2, 20, 21, 22)
		}},
	})
}

// Promise: 7
func TestPurgesThatNoQueueHasAreRefused(t *testing.T) {
	t.Parallel()
	alone := func(p *lincheck.Purge) { p.Session, p.Known = 9, p.Asked }
	judgeAll(t, []queueCase{
		// Items that may be gone.
		{"put before, and gone", "", func(s *history) { s.put("a", 1, 2); s.purge(5, 6, 1) }},
		{"put before, and there", "", func(s *history) {
			s.put("a", 1, 2)
			s.purge(5, 6, 0)
			s.done(1, "a", 5, 1, 10)
		}},
		{"its key is free again", "", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			s.purge(5, 6, 1)
			s.put("b", 7, 8).Key = "k"
			s.done(1, "b", 9, 1, 10)
		}},
		{"its key is free again meanwhile", "", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			s.purge(5, 20, 1)
			s.put("b", 7, 8).Key = "k"
			s.done(1, "b", 9, 1, 10)
		}},
		{"its key stands for another before", "stands for two items", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			s.put("b", 3, 4).Key = "k"
			s.purge(5, 6, 2)
		}},
		{"its key stands for another, and it was not removed", "stands for two items", func(s *history) {
			s.put("a", 1, 2).Key = "k"
			s.done(1, "a", 3, 1, 3)
			s.purge(8, 9, 0)
			s.put("b", 10, 11).Key = "k"
			s.done(1, "b", 12, 1, 12)
		}},
		{"of an item that only its key tells of", "", func(s *history) {
			p := s.put("a", 1, 2)
			p.Key, p.IDs, p.Instead = "k", nil, "#c"
			s.purge(5, 6, 0)
			s.put("b", 7, 8).Key = "k"
			s.done(1, "b", 9, 1, 10)
		}},
		{"put meanwhile, and gone", "", func(s *history) { s.put("a", 5, 9); s.purge(4, 6, 1) }},
		{"put after it, and gone", "lost", func(s *history) { s.put("a", 7, 8); s.purge(5, 6, 0) }},
		{"put after one that has failed, and gone", "lost", func(s *history) {
			s.put("a", 7, 8)
			s.purge(5, 6, 0).Failed = true
		}},
		{"put before one that has failed, and gone", "", func(s *history) {
			s.put("a", 1, 2)
			s.purge(5, 6, 0).Failed = true
		}},
		{"put after one that has no answer, and gone", "", func(s *history) { s.put("a", 7, 8); s.purge(5, 0, 0) }},
		{"given back before its end, and gone", "", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.GivenBack, 13, 14)
			s.purge(5, 20, 1)
		}},
		{"given back after its end, and gone", "lost", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 12), lincheck.GivenBack, 30, 31)
			s.purge(5, 20, 0)
		}},
		{"left behind by its consumer, and gone", "", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 12)
			s.purge(15, 20, 1)
		}},
		{"in hand until after its end, and gone", "lost", func(s *history) {
			s.put("a", 1, 2)
			s.take(1, "a", 5, 1, 10, 11, 25)
			s.purge(15, 20, 0)
		}},
		{"rejected, and gone", "lost", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.purge(15, 20, 0)
		}},

		// Items that must stay, and their number.
		{"claimed, and removed by another client", "another client has removed", func(s *history) {
			s.put("a", 1, 2)
			d := s.done(1, "a", 5, 1, 10)
			d.Finish.Done, d.Finish.Robbed = 0, true
			s.purge(5, 20, 1)
		}},
		{"more than there was", "only 1 can have been", func(s *history) { s.put("a", 1, 2); s.purge(5, 6, 2) }},
		{"what was done", "only 0 can have been", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.purge(20, 21, 1)
		}},
		{"what had no answer", "", func(s *history) { s.put("a", 1, 0); s.purge(5, 6, 1) }},

		// A purge that is alone removes everything.
		{"alone, and there", "and was delivered to client 1, token 5, afterwards", func(s *history) {
			s.put("a", 1, 2)
			alone(s.purge(5, 6, 0))
			s.done(1, "a", 5, 1, 10)
		}},
		{"alone, and put meanwhile", "", func(s *history) {
			s.put("a", 1, 5)
			alone(s.purge(5, 6, 0))
			s.done(1, "a", 5, 1, 10)
		}},
		{"alone, failed, and there", "", func(s *history) {
			s.put("a", 1, 2)
			p := s.purge(5, 6, 0)
			alone(p)
			p.Failed = true
			s.done(1, "a", 5, 1, 10)
		}},
		{"alone, given back before, and there", "afterwards", func(s *history) {
			s.put("a", 1, 2)
			finish(s.alone("a", 10), lincheck.GivenBack, 13, 14)
			alone(s.purge(20, 21, 0))
			s.alone("a", 30).Attempt = 2
		}},
		{"alone, and in its own hands", "", func(s *history) {
			s.put("a", 1, 2)
			finish(s.alone("a", 10), lincheck.GivenBack, 25, 26)
			alone(s.purge(20, 21, 0))
			s.alone("a", 30).Attempt = 2
		}},
	})
}

// Promise: 7
func TestRequeuesThatNoQueueHasAreRefused(t *testing.T) {
	t.Parallel()
	judgeAll(t, []queueCase{
		{"put back, and delivered", "", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1, "a")
			s.done(2, "a", 6, 1, 30)
		}},
		{"put back with all others, and delivered", "", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1)
			s.done(2, "a", 6, 1, 30)
		}},
		{"put back, perhaps, and dead", "", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 0, 0, "a")
			s.dead("a", 1, "bad")
		}},
		{"put back, and dead", "not delivered again", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1, "a")
			s.dead("a", 1, "bad")
		}},
		{"put back, and gone", "lost", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1, "a")
		}},
		{"put back before it died, and delivered again", "was told that it is rejected", func(s *history) {
			s.put("a", 1, 2)
			s.requeue(5, 6, 0, "a")
			s.reject("a", 5, 1, 10)
			s.done(2, "a", 6, 2, 30)
		}},
		{"another one put back", "was told that it is rejected", func(s *history) {
			s.batch(1, 2, "a", "b")
			s.reject("a", 5, 1, 10)
			s.done(1, "b", 5, 1, 15)
			s.requeue(20, 21, 0, "b")
			s.done(2, "a", 6, 2, 30)
		}},
		{"put back after it was delivered again", "was told that it is rejected", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.done(2, "a", 6, 2, 30)
			s.requeue(40, 41, 0)
		}},
		{"put back after it was done", "was told that it is done", func(s *history) {
			s.put("a", 1, 2)
			s.done(1, "a", 5, 1, 10)
			s.requeue(20, 21, 1)
			s.done(2, "a", 6, 1, 30)
		}},
		{"put back, and its attempts go on", "without a delivery", func(s *history) {
			s.put("a", 1, 2)
			s.Rules.Spare = 0
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1)
			s.done(2, "a", 6, 2, 30)
		}},
		{"put back by a client that is alone, and its attempts go on", "want 1", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 1, "a").Session = 9
			s.alone("a", 30).Attempt = 2
		}},
		{"attempts that begin anew without a requeue", "after attempt 3", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 3, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.done(2, "a", 6, 1, 30)
		}},
		{"died of its attempts, and put back", "", func(s *history) {
			s.put("a", 1, 2)
			s.Rules.Spare = 9
			finish(s.take(1, "a", 5, 5, 10, 11, 12), lincheck.PutOff, 13, 14)
			s.requeue(20, 21, 1)
			s.done(2, "a", 6, 1, 30)
		}},
		{"given back for the last time, passed over, and put back", "", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.Rules.Spare = 9
			finish(s.take(1, "a", 5, 5, 10, 11, 12), lincheck.GivenBack, 13, 14)
			s.alone("b", 20)
			s.requeue(30, 31, 1, "a")
			s.alone("a", 40)
		}},
		{"given back, and passed over", "before item #a", func(s *history) {
			s.put("a", 1, 2)
			s.put("b", 3, 4)
			s.Rules.Spare = 9
			finish(s.take(1, "a", 5, 4, 10, 11, 12), lincheck.GivenBack, 13, 14)
			s.alone("b", 20)
			s.alone("a", 40).Attempt = 5
			s.requeue(50, 51, 0, "a")
		}},
		{"two at once, one after it was put back", "two consumers at once", func(s *history) {
			s.put("a", 1, 2)
			finish(s.take(1, "a", 5, 1, 10, 11, 40), lincheck.Rejected, 41, 0)
			s.requeue(20, 21, 1)
			s.done(2, "a", 6, 1, 30)
		}},
		{"seen dead for its reason", "", func(s *history) {
			s.put("a", 1, 2)
			s.reject("a", 5, 1, 10)
			s.requeue(20, 21, 0).Seen = []lincheck.Dead{{Item: "#a", Body: "a", Attempts: 1, Reason: "bad"}}
			s.dead("a", 1, "bad")
		}},
		{"seen dead before anybody said so", "which no consumer had given", func(s *history) {
			s.put("a", 1, 2)
			s.requeue(5, 6, 0).Seen = []lincheck.Dead{{Item: "#a", Body: "a", Attempts: 1, Reason: "bad"}}
			s.reject("a", 5, 1, 10)
			s.dead("a", 1, "bad")
		}},
	})
}

// Promise: 7
func TestBoundsThatNoQueueKeepsAreRefused(t *testing.T) {
	t.Parallel()
	// fill puts three items, which is the bound. Later puts know of them.
	fill := func(s *history) *lincheck.Put {
		s.Rules = lincheck.QueueRules{MaxItems: 3, Spare: 9}
		s.batch(1, 2, "a", "b", "c")
		p := s.put("d", 10, 11)
		p.Known = 9
		return p
	}
	// empty takes all of them, beginning at a time.
	empty := func(s *history, at int64) {
		for i, body := range []string{"a", "b", "c"} {
			s.done(1, body, 5, 1, at+5*int64(i))
		}
	}
	refuse := func(p *lincheck.Put) { p.IDs, p.Full = nil, true }
	judgeAll(t, []queueCase{
		{"one too many", "more than the bound", func(s *history) { fill(s); empty(s, 20); s.done(1, "d", 6, 1, 40) }},
		{"one too many, of which it could not know", "", func(s *history) {
			fill(s).Known = 1
			empty(s, 20)
			s.done(1, "d", 6, 1, 40)
		}},
		{"room was made meanwhile", "", func(s *history) { fill(s).Done = 24; empty(s, 20); s.done(1, "d", 6, 1, 40) }},
		{"one was given back meanwhile", "more than the bound", func(s *history) {
			fill(s).Done = 24
			finish(s.take(1, "a", 4, 1, 20, 21, 22), lincheck.GivenBack, 23, 24)
			s.done(1, "b", 5, 1, 30)
			s.done(1, "c", 5, 1, 40)
			s.done(1, "a", 6, 2, 50)
			s.done(1, "d", 6, 1, 60)
		}},
		{"one was delayed", "", func(s *history) {
			fill(s)
			s.Puts[0].Items[0].Delayed = true
			empty(s, 20)
			s.done(1, "d", 6, 1, 40)
		}},
		{"two at the same time", "", func(s *history) {
			fill(s)
			s.Puts[0].Done = 12
			empty(s, 20)
			s.done(1, "d", 6, 1, 40)
		}},
		{"refused", "", func(s *history) { refuse(fill(s)); empty(s, 20) }},
		{"refused, and not full", "at most 2 of 3 can have been", func(s *history) {
			refuse(fill(s))
			s.Puts[0].Items, s.Puts[0].IDs = s.Puts[0].Items[:2], s.Puts[0].IDs[:2]
			s.done(1, "a", 5, 1, 20)
			s.done(1, "b", 5, 1, 25)
		}},
		{"refused, and one had gone before", "at most 2 of 3 can have been", func(s *history) {
			p := fill(s)
			refuse(p)
			p.Asked, p.Done, p.Known = 31, 32, 30
			s.done(1, "a", 5, 1, 20)
			s.done(1, "b", 5, 1, 40)
			s.done(1, "c", 5, 1, 45)
		}},
		{"refused, and one had no answer", "", func(s *history) {
			refuse(fill(s))
			s.Puts[0].Done, s.Puts[0].IDs, s.Puts[0].Certain = 0, nil, false
		}},
		{"refused, and was to wait", "was to wait", func(s *history) {
			p := fill(s)
			refuse(p)
			p.Waits = true
			empty(s, 20)
		}},
		{"refused, and its key is in", "has its key", func(s *history) {
			p := fill(s)
			refuse(p)
			p.Key, s.Puts[0].Key = "k", "k"
			s.Puts[0].Items, s.Puts[0].IDs = s.Puts[0].Items[:1], s.Puts[0].IDs[:1]
			s.done(1, "a", 5, 1, 20)
		}},
	})
}

// Promise: 7
func TestPausesThatNoQueueHasAreRefused(t *testing.T) {
	t.Parallel()
	states := func(s *history, list ...lincheck.PauseState) { s.Pauses = list }
	judgeAll(t, []queueCase{
		{"claimed before, and delivered meanwhile", "", func(s *history) {
			s.put("a", 1, 2)
			states(s, lincheck.PauseState{Version: 1, Zxid: 8, Paused: true}, lincheck.PauseState{Version: 2, Zxid: 90})
			s.done(1, "a", 5, 1, 10)
		}},
		{"claimed afterwards", "", func(s *history) {
			s.put("a", 1, 2)
			states(s, lincheck.PauseState{Version: 2, Zxid: 4}, lincheck.PauseState{Version: 1, Zxid: 3, Paused: true})
			s.done(1, "a", 5, 1, 10)
		}},
		{"claimed meanwhile", "while the queue was paused", func(s *history) {
			s.put("a", 1, 2)
			states(s, lincheck.PauseState{Version: 2, Zxid: 9}, lincheck.PauseState{Version: 1, Zxid: 3, Paused: true},
				lincheck.PauseState{Version: 2, Zxid: 9})
			s.done(1, "a", 5, 1, 10)
		}},
		{"claimed when it may have been resumed", "", func(s *history) {
			s.put("a", 1, 2)
			states(s, lincheck.PauseState{Version: 1, Zxid: 3, Paused: true}, lincheck.PauseState{Version: 3, Zxid: 9})
			s.done(1, "a", 5, 1, 10)
		}},
		{"paused twice", "and again", func(s *history) {
			states(s, lincheck.PauseState{Version: 1, Zxid: 3, Paused: true},
				lincheck.PauseState{Version: 2, Zxid: 9, Paused: true})
		}},
		{"one version twice", "was seen at", func(s *history) {
			states(s, lincheck.PauseState{Version: 1, Zxid: 3}, lincheck.PauseState{Version: 1, Zxid: 9})
		}},
	})
}
