package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// deed is something that a client does and that can be seen afterwards.
type deed struct {
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

// deeds are independent of one another, so that any of them may fail.
var deeds = []deed{
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
		_, err := s.Multi(ctx, zk.CheckOp(dir, -1), zk.CreateOp(dir+"/m", nil, zk.Persistent), zk.DeleteOp(dir+"/unwanted", -1))
		return err
	}, func(ctx context.Context, s *zk.Session, dir string) (bool, error) {
		made, err := there("m")(ctx, s, dir)
		if err != nil {
			return false, err
		}
		removed, err := gone("unwanted")(ctx, s, dir)
		if made != removed {
			return false, errors.Join(err, errors.New("half of a multi was applied"))
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

// tryEveryStep lets the deeds be done with a fault at each of the requests in turn, and compares what the client says about
// each with what the server has.
func tryEveryStep(t *testing.T, l *zktest.Link, dir string, fault zktest.Fault) {
	t.Helper()
	judge := l.Session(t, 30*time.Second)
	steps := 0
	for tryStep(t, l, judge, fmt.Sprintf("%s-%d", dir, steps+1), steps+1, fault) {
		steps++
	}
	if steps < len(deeds) {
		t.Errorf("the client has made %d requests, want one for each of the %d deeds at least", steps, len(deeds))
	}
	if err := judge.Client().Close(); err != nil {
		t.Error(err)
	}
	l.NoWatches(t)
}

// tryStep reports whether there was such a step.
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
	errs := make([]error, len(deeds))
	for i, d := range deeds {
		errs[i] = d.do(ctx, s, dir)
	}
	if _, err := judge.Set(ctx, dir+"/watched", []byte("changed"), -1); err != nil {
		t.Fatal(err)
	}
	if watchErr == nil {
		if e, err := w.Next(ctx); err != nil || e.Type != zk.EventDataChanged {
			t.Errorf("step %d: the watch says %v, %v", step, e, err)
		}
	}
	l.Control(nil)

	for i, d := range deeds {
		done, err := d.done(ctx, judge, dir)
		if err != nil {
			t.Fatal(err)
		}
		switch known := errs[i] == nil || zk.OutcomeOf(errs[i]) != zk.Unknown; {
		case known && done != (errs[i] == nil):
			t.Errorf("step %d: %s: done is %t at the server; the client says %v", step, d.name, done, errs[i])
		case fault == zktest.Pass && !known:
			t.Errorf("step %d: %s: without a fault the outcome is unknown: %v", step, d.name, errs[i])
		}
	}
	if s.Context().Err() != nil || s.ID() != id {
		t.Errorf("step %d: the session has ended: %v", step, context.Cause(s.Context()))
	}
	if err := s.Client().Close(); err != nil {
		t.Error(err)
	}
	if done, err := there("e")(ctx, judge, dir); done || err != nil {
		t.Errorf("step %d: the ephemeral node outlives its session: %v", step, err)
	}
	return reached
}

func TestClientKnowsWhatItDidWhateverTheFaultAndTheStep(t *testing.T) {
	t.Parallel()
	for name, fault := range everyFault {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n zktest.Net
				srv := zktest.Run(t, zktest.On(&n))
				tryEveryStep(t, srv.Link, "/t", fault)
			})
		})
	}
}

func TestClientKnowsWhatItDidAtApacheZooKeeper(t *testing.T) { //nolint:tparallel // one after the other, for the watches
	t.Parallel()
	zoo := peer.ZooKeeper(t, peer.Options{})
	for name, fault := range everyFault {
		if fault == zktest.Mute {
			continue // takes real seconds
		}
		t.Run(name, func(t *testing.T) {
			tryEveryStep(t, zktest.Proxy(t, zoo.ConnectString()), "/"+name, fault)
		})
	}
}
