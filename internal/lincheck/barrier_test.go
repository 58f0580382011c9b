package lincheck_test

import (
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

func TestBarrierHistories(t *testing.T) {
	t.Parallel()
	type call = lincheck.BarrierCall
	set := call{Client: 1, Op: lincheck.BarrierSet, Asked: 1, Done: 2}
	remove := call{Client: 2, Op: lincheck.BarrierRemove, Asked: 5, Done: 6}
	torn := call{Client: 2, Op: lincheck.BarrierRemove, Asked: 5, Done: 6, Torn: true}
	unknown := call{Client: 2, Op: lincheck.BarrierRemove, Asked: 5}
	early := call{Client: 2, Op: lincheck.BarrierRemove, Asked: 1, Done: 2}
	again := call{Client: 1, Op: lincheck.BarrierSet, Asked: 8, Done: 9}
	wait := func(asked, done int64) call {
		return call{Client: 3, Op: lincheck.BarrierWait, Asked: asked, Done: done}
	}
	up := func(asked, done int64) call {
		return call{Client: 4, Op: lincheck.BarrierUp, Asked: asked, Done: done}
	}
	for name, test := range map[string]struct {
		calls []call
		want  bool
	}{
		"never up":                             {[]call{wait(1, 2)}, true},
		"before it is up":                      {[]call{set, wait(1, 3)}, true},
		"while it is up":                       {[]call{set, wait(3, 4)}, false},
		"while it is up, removed later":        {[]call{set, remove, wait(3, 4)}, false},
		"removed meanwhile":                    {[]call{set, remove, wait(3, 5)}, true},
		"removed before":                       {[]call{set, remove, wait(7, 8)}, true},
		"set again":                            {[]call{set, remove, again, wait(10, 11)}, false},
		"set again meanwhile":                  {[]call{set, remove, again, wait(7, 11)}, true},
		"set again, and a remove unknown":      {[]call{set, unknown, again, wait(10, 11)}, true},
		"set again, and a remove torn":         {[]call{set, torn, again, wait(10, 11)}, true},
		"perhaps set":                          {[]call{{Op: lincheck.BarrierSet, Asked: 1}, wait(3, 4)}, true},
		"up and found up":                      {[]call{set, up(3, 4)}, true},
		"found up, and never set":              {[]call{up(3, 4)}, false},
		"found up, and perhaps set":            {[]call{{Op: lincheck.BarrierSet, Asked: 1}, up(3, 4)}, true},
		"found up, and removed":                {[]call{set, remove, up(7, 8)}, false},
		"found up, and removed at the time":    {[]call{set, remove, up(5, 8)}, true},
		"removed while it was set, found up":   {[]call{set, early, up(7, 8)}, true},
		"removed while it was set, found down": {[]call{set, early, wait(7, 8)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := lincheck.CheckBarrier(test.calls); (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
		})
	}
}

func TestDoubleBarrierHistories(t *testing.T) {
	t.Parallel()
	party := func(client int, asked, entered, leaving, left int64) lincheck.DoubleParty {
		return lincheck.DoubleParty{Client: client, Asked: asked, Entered: entered, Leaving: leaving, Left: left}
	}
	type all []lincheck.DoubleParty
	for name, test := range map[string]struct {
		parties all
		want    bool
	}{
		"together": {all{party(1, 1, 3, 4, 6), party(2, 2, 3, 5, 6)}, true},
		"twice": {all{
			party(1, 1, 3, 4, 6), party(2, 2, 3, 5, 6), party(1, 7, 9, 10, 11), party(2, 8, 9, 10, 11),
		}, true},
		"alone":                {all{party(1, 1, 3, 4, 6)}, false},
		"before the other":     {all{party(1, 1, 2, 6, 7), party(2, 3, 4, 6, 7)}, false},
		"after the other":      {all{party(1, 1, 3, 4, 6), party(2, 2, 3, 5, 6), party(3, 7, 8, 9, 10)}, false},
		"one more, later":      {all{party(1, 1, 3, 8, 9), party(2, 2, 3, 8, 9), party(3, 4, 5, 7, 9)}, true},
		"with one that failed": {all{party(1, 1, 3, 4, 6), party(2, 2, 0, 0, 0)}, true},
		"with one that died": {
			all{party(1, 1, 3, 4, 6), party(2, 2, 3, 0, 0)}, true,
		},
		"one left early": {all{party(1, 1, 3, 4, 5), party(2, 2, 3, 6, 7)}, false},
		"one left before another had entered": {
			all{party(1, 1, 3, 4, 6), party(2, 2, 3, 5, 6), party(3, 4, 5, 8, 9)}, true,
		},
		"one left before one that died": {all{party(1, 1, 3, 4, 5), party(2, 2, 3, 6, 0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := lincheck.CheckDouble(test.parties, 2); (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
		})
	}
}

func TestRoundHistories(t *testing.T) {
	t.Parallel()
	type (
		arrival = lincheck.RoundArrival
		party   = lincheck.RoundParty
		outcome = lincheck.RoundOutcome
	)
	passed := func(round, asked, done int64) arrival { return arrival{Round: round, Asked: asked, Done: done} }
	failed := func(round, asked, done int64) arrival {
		return arrival{Round: round, Asked: asked, Done: done, Failed: true}
	}
	who := func(joined, left int64, arrivals ...arrival) party {
		return party{Asked: joined - 1, Joined: joined, Arrivals: arrivals, Left: left}
	}
	loss := []outcome{{Round: 1, Failed: true, Lost: 1}}
	for name, test := range map[string]struct {
		h    lincheck.RoundHistory
		want bool
	}{
		"passed by both": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 9, passed(1, 4, 5), passed(2, 7, 8)),
		}}, true},
		"passed by one": {lincheck.RoundHistory{Parties: []party{who(2, 9, passed(1, 3, 5))}}, false},
		"passed before the other came": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 4)), who(2, 9, passed(1, 5, 6)),
		}}, false},
		"with one that came and was not told": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9, arrival{Asked: 4}),
		}}, true},
		"with one that came later and was not told": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9, arrival{Asked: 6}),
		}}, false},
		"with one that came to another round": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 9, passed(1, 3, 5), passed(2, 6, 8), arrival{Asked: 8}),
			who(8, 0, passed(3, 9, 10)),
		}}, true},
		"with one that joined before": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9, passed(1, 6, 7)), who(2, 9, arrival{Asked: 3}),
		}}, false},
		"told otherwise": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9, failed(1, 4, 5)), who(2, 0),
		}}, false},
		"told otherwise than the server says": {lincheck.RoundHistory{Outcomes: loss, Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9, passed(1, 4, 5)), who(2, 0),
		}}, false},
		"told of a round that is not over": {lincheck.RoundHistory{Outcomes: []outcome{{Round: 1}}, Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 9, passed(1, 4, 5), passed(2, 7, 8)),
		}}, false},
		"a round twice": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(1, 6, 8)), who(2, 9, passed(1, 4, 5)),
		}}, false},
		"a round left out": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(3, 6, 8)), who(2, 9, passed(1, 4, 5), passed(3, 6, 8)),
		}}, false},
		"failed by a death": {lincheck.RoundHistory{Outcomes: loss, Parties: []party{
			who(2, 9, failed(1, 3, 5)), who(2, 0),
		}}, true},
		"failed by none": {lincheck.RoundHistory{Parties: []party{who(2, 9, failed(1, 3, 5)), who(2, 9)}}, false},
		"failed by one that came later": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, failed(1, 3, 5)), who(7, 0),
		}}, false},
		"failed by one that was told of a later round": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, failed(1, 3, 5), passed(2, 6, 8)), who(2, 0, failed(1, 3, 5), passed(2, 6, 8)),
		}}, false},
		"failed twice by one": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, failed(1, 3, 5), failed(2, 6, 8)), who(2, 0),
		}}, false},
		"failed by a session that ended in a join": {lincheck.RoundHistory{Parties: []party{
			who(2, 9, failed(1, 3, 5)), {Asked: 1, Joined: 2, Left: 9, Ended: 1},
		}}, true},
		"failed without a loss": {lincheck.RoundHistory{Outcomes: []outcome{{Round: 1, Failed: true}}, Parties: []party{
			who(2, 0, failed(1, 3, 5)),
		}}, false},
		"left behind": {lincheck.RoundHistory{Parties: []party{who(2, 9, arrival{Asked: 3, Ousted: true})}}, false},
		"continued by one": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 0, passed(1, 4, 5)),
		}, Outcomes: []outcome{{Round: 1}, {Round: 2, Lost: 1}}}, true},
		"continued with a loss too many": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 0, passed(1, 4, 5)),
		}, Outcomes: []outcome{{Round: 1}, {Round: 2, Lost: 2}}}, false},
		"failed where it should go on": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, failed(1, 3, 5)), who(2, 0, failed(1, 3, 5)),
		}, Outcomes: loss}, false},
		"continued before a living one came": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5), passed(2, 6, 8)), who(2, 9, passed(1, 3, 5), passed(2, 9, 10)),
		}}, false},
		"begun by one, with one that died": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 0),
		}}, true},
		"begun by one, with one that joined": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(2, 9),
		}}, false},
		"begun by one": {lincheck.RoundHistory{Continue: true, Parties: []party{
			who(2, 9, passed(1, 3, 5)), who(7, 9, passed(2, 8, 9)),
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.h.Needed = 2
			if err := lincheck.CheckRounds(test.h); (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
		})
	}
}
