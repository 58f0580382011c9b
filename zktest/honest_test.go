package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// action is one call of a client, and a check of whether the server has applied it.
type action struct {
	name string
	do   func(ctx context.Context, s *zk.Session, dir string) error
	done func(ctx context.Context, s *zk.Session, dir string) (bool, error)
}

func there(name string) func(context.Context, *zk.Session, string) (bool, error) {
	return func(ctx context.Context, s *zk.Session, dir string) (bool, error) {
		_, found, err := s.Exists(ctx, dir+"/"+name)
		return found, err
	}
}

func gone(name string) func(context.Context, *zk.Session, string) (bool, error) {
	return func(ctx context.Context, s *zk.Session, dir string) (bool, error) {
		found, err := there(name)(ctx, s, dir)
		return !found, err
	}
}

// actions are independent of one another, so that any of them may fail.
var actions = []action{
	{"create", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Create(ctx, dir+"/a", nil, zk.Persistent)
		return err
	}, there("a")},
	{"create an ephemeral", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Create(ctx, dir+"/e", nil, zk.Ephemeral)
		return err
	}, there("e")},
	{"set", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Set(ctx, dir+"/given", []byte("new"), -1)
		return err
	}, func(ctx context.Context, s *zk.Session, dir string) (bool, error) {
		data, _, err := s.Get(ctx, dir+"/given")
		return string(data) == "new", err
	}},
	{"multi", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Multi(ctx,
			zk.CheckOp(dir, -1), zk.CreateOp(dir+"/m", nil, zk.Persistent), zk.DeleteOp(dir+"/unwanted", -1))
		return err
	}, func(ctx context.Context, s *zk.Session, dir string) (bool, error) {
		made, err := there("m")(ctx, s, dir)
		if err != nil {
			return false, err
		}
		removed, err := gone("unwanted")(ctx, s, dir)
		if made != removed {
			return false, errors.Join(err, errors.New("only part of a multi was applied"))
		}
		return made, err
	}},
	{"delete", func(ctx context.Context, s *zk.Session, dir string) error {
		return s.Delete(ctx, dir+"/old", -1)
	}, gone("old")},
	{"refused create", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Create(ctx, dir+"/absent/a", nil, zk.Persistent)
		return err
	}, there("absent/a")},
	{"batch", func(ctx context.Context, s *zk.Session, dir string) error {
		b := s.Batch()
		first, second := b.Create(dir+"/b1", nil, zk.Persistent), b.Children(dir)
		b.Send()
		_, err := first.Get(ctx)
		_, _ = second.Get(ctx)
		return err
	}, there("b1")},
	{"last create", func(ctx context.Context, s *zk.Session, dir string) error {
		_, err := s.Create(ctx, dir+"/z", nil, zk.Persistent)
		return err
	}, there("z")},
}

var everyFault = map[string]zktest.Fault{
	"Pass": zktest.Pass, "Refuse": zktest.Refuse, "CutBefore": zktest.CutBefore, "DropReply": zktest.DropReply,
	"CutAfter": zktest.CutAfter, "Mute": zktest.Mute,
}

// tryEveryStep runs the actions with a fault at each of their requests in turn, and compares what the client reports
// of each action with what the server has applied.
func tryEveryStep(t *testing.T, l *zktest.Link, dir string, fault zktest.Fault) {
	t.Helper()
	judge := l.Session(t, 30*time.Second)
	steps := 0
	for tryStep(t, l, judge, fmt.Sprintf("%s-%d", dir, steps+1), steps+1, fault) {
		steps++
	}
	if steps < len(actions) {
		t.Errorf("got %d requests, want at least one for each of %d actions", steps, len(actions))
	}
	if err := judge.Client().Close(); err != nil {
		t.Error(err)
	}
	l.NoWatches(t)
}

// tryStep runs the actions with a fault at one step. It reports whether there was such a step.
func tryStep(t *testing.T, l *zktest.Link, judge *zk.Session, dir string, step int, fault zktest.Fault) (reached bool) {
	t.Helper()
	ctx := t.Context()
	for _, node := range []string{dir, dir + "/given", dir + "/unwanted", dir + "/old", dir + "/watched"} {
		if _, err := judge.Create(ctx, node, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	s := l.Session(t, 30*time.Second)
	id, requests := s.ID(), 0
	l.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != id || r.Seq == 0 {
			return zktest.Pass
		}
		if requests++; requests != step {
			return zktest.Pass
		}
		reached = true
		return fault
	})

	_, _, w, watchErr := s.GetW(ctx, dir+"/watched")
	errs := make([]error, len(actions))
	for i, d := range actions {
		errs[i] = d.do(ctx, s, dir)
	}
	if _, err := judge.Set(ctx, dir+"/watched", []byte("changed"), -1); err != nil {
		t.Fatal(err)
	}
	if watchErr == nil {
		if e, err := w.Next(ctx); err != nil || e.Type != zk.EventDataChanged {
			t.Errorf("step %d: watch returned %v, %v", step, e, err)
		}
	}
	l.Control(nil)

	for i, d := range actions {
		done, err := d.done(ctx, judge, dir)
		if err != nil {
			t.Fatal(err)
		}
		switch known := errs[i] == nil || zk.OutcomeOf(errs[i]) != zk.Unknown; {
		case known && done != (errs[i] == nil):
			t.Errorf("step %d: %s: applied: %t; client's error: %v", step, d.name, done, errs[i])
		case fault == zktest.Pass && !known:
			t.Errorf("step %d: %s: got an unknown outcome without a fault: %v", step, d.name, errs[i])
		}
	}
	if s.Context().Err() != nil || s.ID() != id {
		t.Errorf("step %d: session ended: %v", step, context.Cause(s.Context()))
	}
	if err := s.Client().Close(); err != nil {
		t.Error(err)
	}
	if done, err := there("e")(ctx, judge, dir); done || err != nil {
		t.Errorf("step %d: ephemeral node after the end of its session: %v", step, err)
	}
	return reached
}

// Promise: 8
func TestClientKnowsWhatItDidWhateverTheFaultAndTheStep(t *testing.T) {
	t.Parallel()
	for name, fault := range everyFault {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				tryEveryStep(t, srv.Link, "/t", fault)
			})
		})
	}
}

// Promise: 8
//
//nolint:tparallel // serial, because each subtest counts the watches of all clients
func TestClientKnowsWhatItDidAtApacheZooKeeper(t *testing.T) {
	t.Parallel()
	zoo := peer.ZooKeeper(t, peer.Options{})
	for name, fault := range everyFault {
		if fault == zktest.Mute {
			continue // it takes real seconds
		}
		t.Run(name, func(t *testing.T) {
			tryEveryStep(t, zktest.Proxy(t, zoo.ConnectString()), "/"+name, fault)
		})
	}
}
