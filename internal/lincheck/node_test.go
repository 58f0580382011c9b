package lincheck_test

import (
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

func TestCopiesOfNodesAreJudged(t *testing.T) {
	t.Parallel()
	type (
		state  = lincheck.NodeState
		change = lincheck.NodeChange
	)
	var (
		none = state{}
		one  = state{Czxid: 1, Mzxid: 1}
		set  = state{Czxid: 1, Mzxid: 3, Version: 1}
		anew = state{Czxid: 5, Mzxid: 5}
	)
	full := []change{
		{0, "/a", "created", none, one},
		{1, "/a", "created", none, set},
		{0, "/a", "changed", one, set},
		{1, "/a", "deleted", set, none},
		{0, "/a", "replaced", set, anew},
		{1, "/a", "created", none, anew},
	}
	server := map[string]state{"/a": anew}
	both := []lincheck.NodeCopy{{Reader: 0, View: server, Told: server}, {Reader: 1, View: server, Told: server}}
	told := func(changes ...change) lincheck.NodeHistory { return lincheck.NodeHistory{Changes: changes} }
	copied := func(view, sum, at map[string]state) lincheck.NodeHistory {
		return lincheck.NodeHistory{Copies: []lincheck.NodeCopy{{View: view, Told: sum}}, Server: at}
	}
	other := one
	other.Data = "x"
	for name, row := range map[string]struct {
		history lincheck.NodeHistory
		want    string // in the error; none if empty
	}{
		"whole":         {lincheck.NodeHistory{Changes: full, Copies: both, Server: server}, ""},
		"gap":           {told(full[0], full[1], full[4]), "told of"},
		"wrong kind":    {told(change{0, "/a", "changed", none, one}), "kind created"},
		"nothing":       {told(change{0, "/a", "changed", none, none}), "no change"},
		"back":          {told(full[1], full[3], change{1, "/a", "created", none, one}), "goes back"},
		"two truths":    {told(full[0], change{1, "/a", "created", none, other}), "elsewhere"},
		"old state":     {told(change{0, "/a", "created", none, state{Czxid: 2, Mzxid: 1}}), "older"},
		"missing node":  {copied(nil, server, server), "its cache"},
		"missed change": {copied(server, map[string]state{"/a": set}, server), "sum of changes"},
		"extra node":    {copied(server, server, nil), "the server as"},
	} {
		err := lincheck.CheckNodes(row.history)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", name, err, row.want)
		}
	}
}
