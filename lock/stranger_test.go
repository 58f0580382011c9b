package lock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// theirs are nodes of other programs, behind ours, by what their names are called here.
var theirs = map[string]string{
	"lock":  "_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-1000000000",
	"READ":  "_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__1000000001",
	"WRIT":  "_c_0f8fad5b-d9cb-469f-a165-70867728950e-__WRIT__1000000002",
	"kazoo": "0f8fad5bd9cb469fa16570867728950e__lock__1000000003",
	"rlock": "0f8fad5bd9cb469fa16570867728950e__rlock__1000000004",
	"latch": "_c_0f8fad5b-d9cb-469f-a165-70867728950e-latch-1000000005",
	"offer": "n_1000000006",
	"write": "x-72057594037927936-1000000008", // zookeeper-recipes' WriteLock
	"none":  "settings",
	"date":  "x-report-2026112907",
}

// A lock tells of each contender whose program does not look for its nodes, and of no other, once.
func TestLockTellsOfStrangers(t *testing.T) {
	t.Parallel()
	mutex := func(layout lock.Layout) func(*world, lock.Hooks) takeFunc {
		return func(w *world, hooks lock.Hooks) takeFunc {
			return w.mutex(lock.Config{Layout: layout, Hooks: hooks}).Lock
		}
	}
	writer := func(layout lock.Layout) func(*world, lock.Hooks) takeFunc {
		return func(w *world, hooks lock.Hooks) takeFunc {
			return w.rw(lock.RWConfig{Layout: layout, Hooks: hooks}).Lock
		}
	}
	reader := func(layout lock.Layout) func(*world, lock.Hooks) takeFunc {
		return func(w *world, hooks lock.Hooks) takeFunc {
			return w.rw(lock.RWConfig{Layout: layout, Hooks: hooks}).RLock
		}
	}
	for name, c := range map[string]struct {
		take func(*world, lock.Hooks) takeFunc
		want string
	}{
		"mutex":        {mutex(lock.Curator), "READ WRIT kazoo latch offer rlock write"},
		"kazoo":        {mutex(lock.Kazoo), "READ WRIT latch lock offer write"},
		"both":         {mutex(lock.Both), "READ WRIT latch offer write"},
		"writer":       {writer(lock.Curator), "kazoo latch lock offer rlock write"},
		"reader":       {reader(lock.Curator), "kazoo latch lock offer write"},
		"kazoo writer": {writer(lock.Kazoo), "READ WRIT latch lock offer write"},
		"kazoo reader": {reader(lock.Kazoo), "WRIT latch lock offer write"},
		"both reader":  {reader(lock.Both), "latch lock offer write"},
		"set": {func(w *world, hooks lock.Hooks) takeFunc {
			client := w.Client(w.t, 20*time.Second)
			set, err := lock.NewSet(client, []string{path, path + "-2"}, lock.SetConfig{Hooks: hooks})
			if err != nil {
				w.t.Fatal(err)
			}
			return set.Lock
		}, "READ WRIT kazoo latch offer rlock write"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				unlock(t, locked(t, w.mutex(lock.Config{Layout: lock.Kazoo}).Lock)) // makes the path, for good
				sess := session(t, w.Client(t, 20*time.Second))
				for _, node := range theirs {
					if _, err := sess.Create(t.Context(), path+"/"+node, nil, zk.Ephemeral); err != nil {
						t.Fatal(err)
					}
				}
				var told []string
				take := c.take(w, lock.Hooks{Stranger: func(e lock.Event) {
					for name, node := range theirs {
						if e.Path == path && e.Node == path+"/"+node {
							told = append(told, name)
						}
					}
				}})
				for range 2 {
					unlock(t, locked(t, take))
				}
				slices.Sort(told)
				if got := strings.Join(told, " "); got != c.want {
					t.Errorf("was told of %s, want %s", got, c.want)
				}
			})
		})
	}
}
