package elect_test

// Nodes whose names come again: those of LeaderElectionSupport, after the path was deleted and made again.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var (
	support = elect.Config{Layout: elect.LeaderElectionSupport}
	offer   = zk.CreateNodeOp(zk.Node{Path: path + "/n_", Mode: zk.EphemeralSequential})
)

// empty deletes the path and all that stands there, so that numbers begin anew, and creates what is given, if anything.
func (w *world) empty(sess *zk.Session, creates ...zk.Op) {
	w.t.Helper()
	names, _, err := sess.Children(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(names)
	var ops []zk.Op
	for _, name := range names {
		ops = append(ops, zk.DeleteOp(path+"/"+name, -1))
	}
	ops = append(ops, zk.DeleteOp(path, -1))
	if len(creates) > 0 {
		ops = append(append(ops, zk.CreateOp(path, nil, zk.Persistent)), creates...)
	}
	if _, err := sess.Multi(w.t.Context(), ops...); err != nil {
		w.t.Fatal(err)
	}
}

// leads reports an error unless the leader keeps its node.
func leads(t *testing.T, l *elect.Leadership) {
	t.Helper()
	time.Sleep(time.Minute) // in a bubble: longer than anything that goes on in the background
	if cause := context.Cause(l.Context()); cause != nil {
		t.Fatalf("the leader has lost its node: %v", cause)
	}
	resign(t, l)
}

// Promise: 1
func TestFormerLeaderLeavesTheNodeOfTheNextOneThatHasItsName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		former := win(t, w.candidate("one", support))
		time.Sleep(time.Second) // in a bubble: its node is watched
		w.empty(w.session())
		next := win(t, w.candidate("two", support))
		if next.Path() != former.Path() || next.Token() <= former.Token() {
			t.Errorf("got %s with %d after %s with %d", next.Path(), next.Token(), former.Path(), former.Token())
		}
		if err := former.ResignWait(t.Context()); !errors.Is(err, elect.ErrDeleted) {
			t.Errorf("got %v, want ErrDeleted", err)
		}
		leads(t, next)
	})
}

// A campaign that begins right behind Resign is no reason to delete by name.
//
// Promise: 1
func TestCampaignBehindResignLeavesTheNodeOfAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.candidate("one", support)
		former := win(t, c)
		time.Sleep(time.Second) // in a bubble
		w.empty(w.session())
		next := win(t, w.candidate("two", support))
		_ = former.Resign()
		again := campaign(t.Context(), c)
		time.Sleep(time.Second) // in a bubble
		waits(t, again)
		leads(t, next)
		resign(t, won(t, again))
	})
}

// The answer to a deletion is lost, and the path is deleted and made again before the client can ask once more.
//
// Promise: 1
func TestRemovalIsNotRepeatedOnAnothersNode(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, c *elect.Candidate){
		"resigned": func(t *testing.T, c *elect.Candidate) {
			t.Helper()
			_ = win(t, c).Resign()
		},
		"canceled before it was there": func(t *testing.T, c *elect.Candidate) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			campaigned := campaign(ctx, c)
			cancel()
			if r := <-campaigned; !errors.Is(r.err, context.Canceled) {
				t.Fatalf("got %+v, want context.Canceled", r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				first, other := candidate(t, w.Client(t, time.Minute), "one", support), w.session()
				resign(t, win(t, first)) // the path is there
				var cut int64            // the session that has lost an answer, and cannot come back
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Op == zktest.OpCreate && r.Path == path+"/n_" && r.Session != other.ID():
						return zktest.DelayReply(time.Second)
					case r.Op == zktest.OpDelete && strings.HasPrefix(r.Path, path) && cut == 0:
						cut = r.Session
						return zktest.DropReply
					case r.Op == zktest.OpConnect && r.Session == cut && cut != 0:
						return zktest.Refuse
					}
					return zktest.Pass
				})
				leave(t, first)
				time.Sleep(5 * time.Second) // in a bubble
				if cut == 0 {
					t.Fatal("no answer was lost")
				}
				w.empty(other, offer, zk.DeleteOp(path+"/n_0000000000", -1))
				next := win(t, w.candidate("two", support)) // n_0000000001, as the one that was left
				w.Control(nil)
				leads(t, next)
			})
		})
	}
}

// The one ahead, a waiter's node and the path go in one transaction, which makes another's node of the waiter's name.
//
// Promise: 1
func TestWaiterDoesNotLeadByAnothersNodeOfItsName(t *testing.T) {
	t.Parallel()
	for name, waiters := range map[string]int{"second in line": 1, "further behind": 3} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				win(t, w.candidate("gone", support))
				client := w.Client(t, timeout)
				var all []<-chan result
				nodes := []zk.Op{offer}
				for range waiters {
					all = append(all, campaign(t.Context(), candidate(t, client, "one", support)))
					nodes = append(nodes, offer)
				}
				other := w.session()
				w.empty(other, append(nodes, zk.DeleteOp(path+"/n_0000000000", -1))...)
				time.Sleep(time.Second) // in a bubble
				for i := range all {
					waits(t, all[i])
					at := fmt.Sprintf("%s/n_%010d", path, i+1)
					if _, stat, err := other.Get(t.Context(), at); err != nil || stat.EphemeralOwner != other.ID() {
						t.Fatalf("another's node %s: session %#x, %v", at, stat.EphemeralOwner, err)
					}
				}
				for i := range all {
					if err := other.Delete(t.Context(), fmt.Sprintf("%s/n_%010d", path, i+1), -1); err != nil {
						t.Fatal(err)
					}
				}
				for len(all) > 0 { // they have come again, in some order
					time.Sleep(time.Second) // in a bubble
					first := slices.IndexFunc(all, func(c <-chan result) bool { return len(c) > 0 })
					if first < 0 {
						t.Fatal("nobody leads")
					}
					resign(t, won(t, all[first]))
					all = slices.Delete(all, first, first+1)
				}
			})
		})
	}
}

// A leader whose node is another's now does not tell the next waiter of its process that it is the first in line.
//
// Promise: 1
func TestFormerLeaderDoesNotCountAsTheOneAheadThatHasItsName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c, other := w.candidate("one", support), w.session()
		before := win(t, w.candidate("two", support))
		waiting := campaign(t.Context(), c)
		resign(t, before)
		former := won(t, waiting) // n_0000000001, and not resigned below
		w.empty(other, offer, offer)
		again := campaign(t.Context(), c)
		time.Sleep(time.Second) // in a bubble
		if err := other.Delete(t.Context(), former.Path(), -1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in a bubble
		waits(t, again)         // for n_0000000000
		if err := other.Delete(t.Context(), path+"/n_0000000000", -1); err != nil {
			t.Fatal(err)
		}
		resign(t, won(t, again))
		_ = former.Resign()
	})
}
