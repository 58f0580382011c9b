package lincheck_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

func TestCounterHistories(t *testing.T) {
	t.Parallel()
	add := func(client int, asked, done, n, value int64) lincheck.CounterCall {
		return lincheck.CounterCall{
			Client: client, Op: lincheck.CounterAdd, N: n, Asked: asked, Done: done, Value: value, OK: true,
		}
	}
	unknown := lincheck.CounterCall{Client: 9, Op: lincheck.CounterAdd, N: 1, Asked: 1}
	vain := lincheck.CounterCall{Client: 9, Op: lincheck.CounterAdd, N: 1, Asked: 1, Vain: true}
	get := func(asked, done, value int64) lincheck.CounterCall {
		return lincheck.CounterCall{Client: 5, Op: lincheck.CounterGet, Asked: asked, Done: done, Value: value}
	}
	compare := lincheck.CounterCall{Client: 4, Op: lincheck.CounterCompare, Other: 1, N: 7, Asked: 3, Done: 4, OK: true}
	refused := lincheck.CounterCall{Client: 4, Op: lincheck.CounterCompare, Other: 1, N: 7, Asked: 3, Done: 4}
	upTo := lincheck.CounterCall{Client: 4, Op: lincheck.CounterAddUpTo, Other: 1, N: 7, Asked: 3, Done: 4, Value: 1}
	for name, test := range map[string]struct {
		calls []lincheck.CounterCall
		want  bool
	}{
		"in turn":                      {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), add(2, 3, 4, 1, 2)}, true},
		"at once, in any order":        {[]lincheck.CounterCall{add(1, 1, 4, 1, 2), add(2, 2, 3, 1, 1)}, true},
		"the earlier got the later":    {[]lincheck.CounterCall{add(1, 1, 2, 1, 2), add(2, 3, 4, 1, 1)}, false},
		"one got what another got":     {[]lincheck.CounterCall{add(1, 1, 4, 1, 1), add(2, 2, 3, 1, 1)}, false},
		"one was done twice":           {[]lincheck.CounterCall{add(1, 1, 2, 1, 2)}, false},
		"unknown and done":             {[]lincheck.CounterCall{unknown, add(1, 3, 4, 1, 2)}, true},
		"unknown and not done":         {[]lincheck.CounterCall{unknown, add(1, 3, 4, 1, 1)}, true},
		"unknown and done twice":       {[]lincheck.CounterCall{unknown, add(1, 3, 4, 1, 3)}, false},
		"in vain and done":             {[]lincheck.CounterCall{vain, add(1, 3, 4, 1, 2)}, false},
		"lost":                         {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), get(3, 4, 0)}, false},
		"compared":                     {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), compare, get(5, 6, 7)}, true},
		"compared with another value":  {[]lincheck.CounterCall{add(1, 1, 2, 2, 2), compare}, false},
		"refused although it was that": {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), refused}, false},
		"up to the limit":              {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), upTo, get(5, 6, 1)}, true},
		"past the limit":               {[]lincheck.CounterCall{add(1, 1, 2, 1, 1), upTo, get(5, 6, 8)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := lincheck.CheckCounter(test.calls, t.TempDir())
			if (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "is not that of a counter") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestValueHistories(t *testing.T) {
	t.Parallel()
	type call = lincheck.ValueCall
	first := call{Client: 1, Data: "a", Asked: 1, Done: 2}
	for name, test := range map[string]struct {
		calls []call
		want  bool
	}{
		"set if it is that":     {[]call{first, {Client: 2, If: true, Old: "a", Data: "b", Asked: 3, Done: 4}}, true},
		"set if it was that":    {[]call{first, {Client: 2, If: true, Old: "x", Data: "b", Asked: 3, Done: 4}}, false},
		"perhaps":               {[]call{first, {Client: 2, If: true, Old: "x", Data: "b", Asked: 3}}, true},
		"deleted, then created": {[]call{first, {Asked: 3, Done: 4}, {If: true, Data: "b", Asked: 5, Done: 6}}, true},
		"created while it is":   {[]call{first, {If: true, Data: "b", Asked: 5, Done: 6}}, false},
		"lost":                  {[]call{first, {Read: true, Asked: 5, Done: 6}}, false},
		"replaced by a later arrival of an earlier set": {[]call{
			first, {Client: 2, Data: "b", Asked: 3, Done: 4}, {Read: true, Old: "a", Asked: 5, Done: 6},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := lincheck.CheckValue(test.calls, t.TempDir()); (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
		})
	}
}

func TestSequenceHistories(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ids  []lincheck.IDs
		want bool
	}{
		"with gaps":  {[]lincheck.IDs{{Client: 1, IDs: []int64{1, 2, 30}}, {Client: 2, IDs: []int64{11, 12}}}, true},
		"repeated":   {[]lincheck.IDs{{Client: 1, IDs: []int64{1, 2}}, {Client: 2, IDs: []int64{2, 3}}}, false},
		"descending": {[]lincheck.IDs{{Client: 1, IDs: []int64{2, 1}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := lincheck.CheckSequence(test.ids); (err == nil) != test.want {
				t.Errorf("got %v, want it accepted: %v", err, test.want)
			}
		})
	}
}

// Two dozen clients waited for servers that were cut off, and some of them never learned the outcome: porcupine alone
// found no order in minutes.
func TestHistoryWithManyCallsAtOnceIsJudged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"counter", "counter-lost", "counter-reset"} { // 7, 14 and 19 calls of unknown outcome
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var calls []lincheck.CounterCall
			if err := json.Unmarshal(text, &calls); err != nil {
				t.Fatal(err)
			}
			if err := lincheck.CheckCounter(calls, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}
