package elect_test

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var layouts = []elect.Layout{
	elect.LeaderLatch, elect.LeaderSelector, elect.KazooElection, elect.Both, elect.LeaderElectionSupport,
}

// Promise: 1
func TestNodesAreNamedAsThePeersNameTheirs(t *testing.T) {
	t.Parallel()
	const guid = `[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	for layout, want := range map[elect.Layout]string{
		elect.LeaderLatch:    `^/app/leader/_c_` + guid + `-latch-[0-9]{10}$`,
		elect.LeaderSelector: `^/app/leader/_c_` + guid + `-lock-[0-9]{10}$`,
		elect.KazooElection:  `^/app/leader/_c_` + guid + `-__lock__[0-9]{10}$`,
		elect.Both:           `^/app/leader/_c_` + guid + `-lock-[0-9]{10}$`,

		elect.LeaderElectionSupport: `^/app/leader/n_[0-9]{10}$`,
	} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				l := win(t, w.candidate("host-1", elect.Config{Layout: layout}))
				if !regexp.MustCompile(want).MatchString(l.Path()) {
					t.Errorf("got %s, want %s", l.Path(), want)
				}
				data, stat, err := w.session().Get(t.Context(), l.Path())
				if err != nil || string(data) != "host-1" || stat.EphemeralOwner != l.Session().ID() {
					t.Errorf("got data %q of session %#x, %v", data, stat.EphemeralOwner, err)
				}
				resign(t, l)
				time.Sleep(10 * time.Minute) // the server collects containers
				_, there, err := w.session().Exists(t.Context(), path)
				if err != nil || there != (layout >= elect.KazooElection) {
					t.Errorf("the path is there: %t, %v", there, err)
				}
			})
		})
	}
}

func TestCandidateForBothHasANodeOfEachLayout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		cfg := elect.Config{Layout: elect.Both}
		l := win(t, w.candidate("one", cfg))
		second := strings.Replace(l.Path(), "-lock-", "-__lock__", 1)
		second = second[:len(second)-1] + "1" // the next number
		for _, node := range []string{l.Path(), second} {
			data, stat, err := w.session().Get(t.Context(), node)
			if string(data) != "one" || stat.EphemeralOwner != l.Session().ID() || err != nil {
				t.Errorf("%s: got %q of session %#x, %v", node, data, stat.EphemeralOwner, err)
			}
		}
		if n := len(l.Guards()); n != 2 {
			t.Errorf("got %d guards, want 2", n)
		}
		ctx, leave := context.WithCancel(t.Context())
		waiting := campaign(ctx, w.candidate("two", cfg))
		time.Sleep(time.Second) // in a bubble: the leader watches its nodes, and the other stands in line
		list, err := w.candidate("", cfg).Participants(t.Context())
		if err != nil || len(list) != 2 || list[0].ID != "one" || list[1].ID != "two" || list[1].Leads {
			t.Errorf("got participants %+v, %v", list, err)
		}
		leave()
		<-waiting
		if err := w.session().Delete(t.Context(), second, -1); err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		if err := context.Cause(l.Context()); !errors.Is(err, elect.ErrDeleted) {
			t.Errorf("without the second node: got %v, want ErrDeleted", err)
		}
		_ = l.Resign() // the node that is left goes, too
		time.Sleep(time.Second)
		if names, _, err := w.session().Children(t.Context(), path); err != nil || len(names) > 0 {
			t.Errorf("got %v, %v, want no node", names, err)
		}
	})
}

// Promise: 1
func TestPeersCandidatesAreRespectedAndForeignChildrenIgnored(t *testing.T) {
	t.Parallel()
	const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e-"
	for layout, peers := range map[elect.Layout][]string{
		elect.LeaderLatch:    {guid + "latch-"},
		elect.LeaderSelector: {guid + "lock-", "0f8fad5bd9cb469fa16570867728950e__lock__"},
		elect.KazooElection:  {"0f8fad5bd9cb469fa16570867728950e__lock__", guid + "lock-", guid + "__lock__"},
		elect.Both:           {"0f8fad5bd9cb469fa16570867728950e__lock__", guid + "lock-", guid + "__lock__"},

		elect.LeaderElectionSupport: {"n_"},
	} {
		for _, name := range peers {
			t.Run(layout.String()+"/"+name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					sess := w.session()
					dirs := []string{"/app", path}
					for _, child := range []string{"00-first", "zzz", "x-0000000000", "x_n_0000000000"} {
						dirs = append(dirs, path+"/"+child)
					}
					for _, dir := range dirs {
						if _, err := sess.Create(t.Context(), dir, nil, zk.Persistent); err != nil {
							t.Fatal(err)
						}
					}
					peer, err := sess.Create(t.Context(), path+"/"+name, []byte("java"), zk.EphemeralSequential)
					if err != nil {
						t.Fatal(err)
					}
					c := w.candidate("go", elect.Config{Layout: layout})
					waiting := campaign(t.Context(), c)
					time.Sleep(time.Minute) // in the bubble of inWorld: it takes no time
					waits(t, waiting)
					list, err := c.Participants(t.Context())
					if err != nil || len(list) != 2 || list[0].ID != "java" || !list[0].Leads ||
						list[1].ID != "go" || list[1].Leads {
						t.Errorf("got participants %+v, %v", list, err)
					}
					if err := sess.Delete(t.Context(), peer.Path, -1); err != nil {
						t.Fatal(err)
					}
					resign(t, won(t, waiting))
				})
			})
		}
	}
}

func TestNobodyStandsWhereThereIsNoPath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		list, err := w.candidate("", elect.Config{}).Participants(t.Context())
		if err != nil || len(list) != 0 {
			t.Errorf("got %+v, %v, want nobody", list, err)
		}
	})
}

// Curator and kazoo compare the text of numbers, we compare numbers: near the wrap there is no order that all see.
//
// Promise: 9
func TestElectionWithOthersNearTheWrapIsRefused(t *testing.T) {
	t.Parallel()
	errWaits := errors.New("it waits")
	const guid = "_c_0f8fad5b-d9cb-469f-a165-70867728950e-"
	for layout, peer := range map[elect.Layout]string{
		elect.LeaderLatch: guid + "latch-", elect.LeaderSelector: guid + "lock-",
		elect.KazooElection: "0f8fad5bd9cb869fa16570867728950e__lock__", elect.Both: guid + "lock-",
		elect.LeaderElectionSupport: "n_",
	} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				sess := w.session()
				for _, dir := range []string{"/app", path} {
					if _, err := sess.Create(t.Context(), dir, nil, zk.Persistent); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range []struct {
					next int32
					want error
				}{
					{1 << 30, errWaits},
					{math.MaxInt32 - 1<<21, errWaits},
					{math.MaxInt32 - 100, elect.ErrWrap},
					{math.MaxInt32, elect.ErrWrap},
					{math.MinInt32, elect.ErrWrap},
					{-100, elect.ErrWrap},
				} {
					w.PresetSequence(path, c.next)
					theirs, err := sess.Create(t.Context(), path+"/"+peer, []byte("ours"), zk.EphemeralSequential)
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errWaits)
					_, err = w.candidate("ours", elect.Config{Layout: layout}).Campaign(ctx)
					cancel()
					if !errors.Is(err, c.want) {
						t.Errorf("%d: got %v, want %v", c.next, err, c.want)
					}
					synctest.Wait()
					if names, _, err := sess.Children(t.Context(), path); err != nil || len(names) != 1 {
						t.Errorf("%d: left behind beside %s: %v, %v", c.next, theirs.Path, names, err)
					}
					if err := sess.Delete(t.Context(), theirs.Path, -1); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// Nodes of LeaderElectionSupport have no random part, and all candidates of a session have the same owner. Each finds
// its own all the same when the replies to all creations are lost.
func TestLostRepliesGiveEachCandidateOfASessionItsOwnNode(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]zktest.Fault{
		"reply lost": zktest.DropReply, "request lost": zktest.Refuse, "cut before": zktest.CutBefore,
		"cut after": zktest.CutAfter,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				cfg, client := elect.Config{Layout: elect.LeaderElectionSupport}, w.Client(t, timeout)
				for step := 1; step <= 12; step++ {
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq == step || r.Op == zktest.OpCreate && r.Nth <= 3 {
							return fault
						}
						return zktest.Pass
					})
					var all []<-chan result
					for range 3 { // with one id
						all = append(all, campaign(t.Context(), candidate(t, client, "a", cfg)))
					}
					time.Sleep(time.Minute)
					seen := map[string]bool{}
					for len(seen) < len(all) {
						for _, c := range all {
							select {
							case r := <-c:
								if r.err != nil || seen[r.leadership.Path()] {
									t.Fatalf("step %d: got %v, %v after %v", step, r.leadership, r.err, seen)
								}
								seen[r.leadership.Path()] = true
								resign(t, r.leadership)
							default:
							}
						}
						synctest.Wait()
					}
					w.Control(nil)
					w.NoNodes(t, path)
				}
			})
		})
	}
}

// A node of no session keeps all candidates waiting.
func TestCandidateBehindANodeOfNoSessionIsTold(t *testing.T) {
	t.Parallel()
	for layout, stray := range map[elect.Layout]string{
		elect.LeaderLatch:    "_c_0f8fad5b-d9cb-469f-a165-70867728950e-latch-0000000000",
		elect.LeaderSelector: "_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-0000000000",
		elect.KazooElection:  "0f8fad5bd9cb469fa16570867728950e__lock__0000000000",

		elect.LeaderElectionSupport: "n_0000000000",
	} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				stray = path + "/" + stray
				sess := w.session()
				if _, err := sess.CreateAll(t.Context(), zk.Node{Path: stray}, zk.Parents{}); err != nil {
					t.Fatal(err)
				}
				if err := sess.Delete(t.Context(), stray, -1); err != nil { // so that ours has a larger number
					t.Fatal(err)
				}
				if _, err := sess.Create(t.Context(), stray, nil, zk.Persistent); err != nil {
					t.Fatal(err)
				}
				told := make(chan string, 1)
				c := w.candidate("one", elect.Config{Layout: layout, Hooks: elect.Hooks{
					Stray: func(node string) { told <- node },
				}})
				elected := make(chan *elect.Leadership, 1)
				go func() {
					l, err := c.Campaign(t.Context())
					if err != nil {
						t.Error(err)
					}
					elected <- l
				}()
				if node := <-told; node != stray {
					t.Errorf("was told of %s, want %s", node, stray)
				}
				list, err := c.Participants(t.Context())
				if err != nil || len(list) != 1 || list[0].ID != "one" || list[0].Leads {
					t.Errorf("got %+v, %v, want one that does not lead", list, err)
				}
				for leader, err := range c.Observe(t.Context()) {
					if err != nil || !leader.Nobody() {
						t.Errorf("got the leader %+v, %v", leader, err)
					}
					break
				}
				if err := sess.Delete(t.Context(), stray, -1); err != nil {
					t.Fatal(err)
				}
				resign(t, <-elected)
			})
		})
	}
}

// A candidate tells of each contender whose program does not look for its nodes, and of no other, once.
func TestCandidateTellsOfStrangers(t *testing.T) {
	t.Parallel()
	theirs := map[string]string{
		"lock":  "_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-1000000000",
		"WRIT":  "_c_0f8fad5b-d9cb-469f-a165-70867728950e-__WRIT__1000000002",
		"kazoo": "0f8fad5bd9cb469fa16570867728950e__lock__1000000003",
		"latch": "_c_0f8fad5b-d9cb-469f-a165-70867728950e-latch-1000000005",
		"ours":  "_c_0f8fad5b-d9cb-869f-a165-70867728950e-latch-1000000006", // a candidate of this package
		"offer": "n_1000000007",
		"write": "x-72057594037927936-1000000008", // zookeeper-recipes' WriteLock
		"none":  "settings",
		"date":  "x-report-2026112907",
	}
	for layout, want := range map[elect.Layout]string{
		elect.LeaderLatch: "WRIT kazoo lock offer write", elect.LeaderSelector: "WRIT kazoo latch offer ours write",
		elect.KazooElection: "WRIT latch lock offer ours write", elect.Both: "WRIT latch offer ours write",
		elect.LeaderElectionSupport: "WRIT kazoo latch lock ours write",
	} {
		t.Run(layout.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var told []string
				c := w.candidate("one", elect.Config{Layout: layout, Hooks: elect.Hooks{Stranger: func(node string) {
					for name, their := range theirs {
						if node == path+"/"+their {
							told = append(told, name)
						}
					}
				}}})
				resign(t, win(t, c))
				sess := w.session()
				for _, dir := range []string{"/app", path} { // the container may be gone
					_, err := sess.Create(t.Context(), dir, nil, zk.Persistent)
					if err != nil && !errors.Is(err, zk.NodeExists) {
						t.Fatal(err)
					}
				}
				for _, node := range theirs {
					if _, err := sess.Create(t.Context(), path+"/"+node, nil, zk.Ephemeral); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					resign(t, win(t, c))
				}
				slices.Sort(told)
				if got := strings.Join(told, " "); got != want {
					t.Errorf("was told of %s, want %s", got, want)
				}
			})
		})
	}
}
