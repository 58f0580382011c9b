package lock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// shape is what a test wants to know of a contender.
func shape(c lock.Contender) string {
	role := "waits"
	if c.Holder {
		role = "holds"
	}
	return fmt.Sprintf("%v %v %s", c.Kind, role, c.Data)
}

func TestInspectTellsKindsAndWhoHoldsTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sess := w.Session(t, 20*time.Second)
		if _, err := sess.CreateNode(t.Context(), zk.Node{Path: "/locks", Mode: zk.Container}); err != nil {
			t.Fatal(err)
		}
		const guid = "0f8fad5b-d9cb-469f-a165-70867728950e"
		for i, c := range []struct {
			nodes []string
			want  []string
		}{
			{[]string{"_c_" + guid + "-lock-", "x-lock-"}, []string{"exclusive holds 0", "exclusive waits 1"}},
			{
				[]string{
					"_c_" + guid + "-__READ__", "y__rlock__", "z__READ__", "_c_" + guid + "-__WRIT__",
					"u__READ__",
				},
				[]string{"reader holds 0", "reader holds 1", "reader holds 2", "writer waits 3", "reader waits 4"},
			},
			{[]string{"a__lock__", "b__rlock__"}, []string{"exclusive holds 0", "reader waits 1"}},
			{[]string{"_c_" + guid + "-latch-", "c-latch-"}, []string{"candidate holds 0", "candidate waits 1"}},
			{[]string{"foreign", "lock-x", "d__READ__"}, []string{"reader holds 2"}},
			// two nodes of one contender
			{
				[]string{"_c_" + guid + "-__READ__", "_c_" + guid + "-__rlock__", "e-lock-"},
				[]string{"reader holds 0", "exclusive waits 2"},
			},
		} {
			dir := fmt.Sprintf("/locks/%d", i)
			if _, err := sess.Create(t.Context(), dir, nil, zk.Container); err != nil {
				t.Fatal(err)
			}
			for n, name := range c.nodes {
				_, err := sess.Create(t.Context(), dir+"/"+name, fmt.Append(nil, n), zk.EphemeralSequential)
				if err != nil {
					t.Fatal(err)
				}
			}
			line, err := lock.Inspect(t.Context(), w.Client(t, 20*time.Second), dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range line {
				got = append(got, shape(c))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v: got %q, want %q", c.nodes, got, c.want)
			}
		}
	})
}

func TestInspectTellsOfASetsOtherPathsAndShowsTwoNodesOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client := w.Client(t, 20*time.Second)
		s, err := lock.NewSet(client, []string{pathA, pathB}, lock.SetConfig{Layout: lock.Both})
		if err != nil {
			t.Fatal(err)
		}
		hold := locked(t, s.Lock)
		line, err := lock.Inspect(t.Context(), client, pathB)
		if err != nil || len(line) != 1 || !line[0].Holder || !slices.Equal(line[0].Owner.Set, s.Paths()) {
			t.Errorf("got %+v, %v, want one holder that tells of both paths", line, err)
		}
		unlock(t, hold)
	})
}
