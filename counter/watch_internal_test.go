package counter

import "testing"

// A server that lags behind, under a new session, may show a node as it was before what the watch has yielded.
func TestWatchTellsOldValuesFromNewOnesByTheirTransaction(t *testing.T) {
	t.Parallel()
	at := func(mzxid int64, version int32) Versioned {
		return Versioned{Exists: true, Mzxid: mzxid, Version: version}
	}
	for name, test := range map[string]struct {
		w    watcher
		now  Versioned
		want bool
	}{
		"the first":                        {watcher{}, at(5, 0), true},
		"the first, missing":               {watcher{}, Versioned{}, true},
		"the same":                         {watcher{told: true, exists: true, newest: 5}, at(5, 0), false},
		"older, with a larger version":     {watcher{told: true, exists: true, newest: 5}, at(4, 9), false},
		"newer, in a new node":             {watcher{told: true, exists: true, newest: 5}, at(6, 0), true},
		"newer, past the version overflow": {watcher{told: true, exists: true, newest: 5}, at(6, -2147483648), true},
		"deleted":                          {watcher{told: true, exists: true, newest: 5}, Versioned{}, true},
		"still missing":                    {watcher{told: true, newest: 5}, Versioned{}, false},
		"the old one again after deletion": {watcher{told: true, newest: 5}, at(5, 0), false},
	} {
		if got := test.w.isNews(test.now); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
