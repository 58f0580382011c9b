package everycall_test

// The calls of the recipes. A recipe adds its rows here; TestEveryMethodHasARow tells which are missing.

import (
	"context"
	"errors"
	"reflect"

	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
)

// recipes are the types whose methods need rows: those with methods that take a context.
var recipes = []reflect.Type{
	reflect.TypeFor[*counter.Counter](),
	reflect.TypeFor[*counter.Sequence](),
	reflect.TypeFor[*counter.Value](),
	reflect.TypeFor[*elect.Candidate](),
	reflect.TypeFor[*elect.Leadership](),
}

// calls are the rows: one for each method, and more for a method with several ways.
var calls = []call{
	{name: "counter.Counter.Get", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		_, err := c.Get(ctx)
		return err
	})},
	{name: "counter.Counter.Add", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		_, err := c.Add(ctx, 1)
		return err
	}), done: func(w *world) error { return w.wantData("\x00\x00\x00\x00\x00\x00\x00\x01") }},
	{name: "counter.Counter.AddUpTo", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		_, _, err := c.AddUpTo(ctx, 1, 5)
		return err
	}), done: func(w *world) error { return w.wantData("\x00\x00\x00\x00\x00\x00\x00\x01") }},
	{name: "counter.Counter.CompareAndSet", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		done, err := c.CompareAndSet(ctx, 0, 7)
		if err == nil && !done {
			err = errors.New("it says that it was not done")
		}
		return err
	}), done: func(w *world) error { return w.wantData("\x00\x00\x00\x00\x00\x00\x00\x07") }},
	{name: "counter.Counter.Set", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		return c.Set(ctx, 7)
	}), done: func(w *world) error { return w.wantData("\x00\x00\x00\x00\x00\x00\x00\x07") }},
	{name: "counter.Counter.Close", do: onCounter(func(ctx context.Context, c *counter.Counter) error {
		_, err := c.Add(ctx, 1)
		return errors.Join(err, c.Close(ctx))
	})},
	{name: "counter.Sequence.Next", do: onSequence(func(ctx context.Context, s *counter.Sequence) error {
		_, err := s.Next(ctx)
		return err
	})},
	{name: "counter.Sequence.Close", do: onSequence(func(ctx context.Context, s *counter.Sequence) error {
		_, err := s.Next(ctx)
		return errors.Join(err, s.Close(ctx))
	})},
	{name: "counter.Value.Get", do: onValue(func(ctx context.Context, v *counter.Value, _ []byte) error {
		_, err := v.Get(ctx)
		return err
	})},
	{name: "counter.Value.Set", takesData: true, do: onValue(
		func(ctx context.Context, v *counter.Value, data []byte) error { return v.Set(ctx, data) },
	), done: func(w *world) error { return w.wantData("data") }},
	{name: "counter.Value.Seed", takesData: true, do: onValue(
		func(ctx context.Context, v *counter.Value, data []byte) error {
			_, err := v.Seed(ctx, data)
			return err
		},
	), done: func(w *world) error { return w.wantData("data") }},
	{name: "counter.Value.CompareAndSet", takesData: true, do: onValue(
		func(ctx context.Context, v *counter.Value, data []byte) error {
			_, done, err := v.CompareAndSet(ctx, counter.Versioned{}, data)
			if err == nil && !done {
				err = errors.New("it says that it was not done")
			}
			return err
		},
	), done: func(w *world) error { return w.wantData("data") }},
	{name: "counter.Value.Watch", do: onValue(func(ctx context.Context, v *counter.Value, _ []byte) error {
		for _, err := range v.Watch(ctx) {
			return err
		}
		return errors.New("the watch ended")
	})},
	{name: "counter.Value.Close", do: onValue(func(ctx context.Context, v *counter.Value, _ []byte) error {
		return errors.Join(v.Set(ctx, []byte("data")), v.Close(ctx))
	}), done: func(w *world) error { return w.wantData("data") }},
	{name: "elect.Candidate.Campaign", do: onCandidate(func(ctx context.Context, c *elect.Candidate, _ []byte) error {
		l, err := c.Campaign(ctx)
		if err == nil {
			err = l.Resign()
		}
		return err
	}), leavesNothing: true},
	{name: "elect.Candidate.TryCampaign", do: onCandidate(
		func(ctx context.Context, c *elect.Candidate, _ []byte) error {
			l, err := c.TryCampaign(ctx)
			if err == nil {
				err = l.Resign()
			}
			return err
		},
	), leavesNothing: true},
	{name: "elect.Candidate.Run", do: onCandidate(func(ctx context.Context, c *elect.Candidate, _ []byte) error {
		return c.Run(ctx, func(context.Context, *elect.Leadership) error { return nil })
	}), leavesNothing: true, runs: true},
	{name: "elect.Candidate.Observe", do: onCandidate(func(ctx context.Context, c *elect.Candidate, _ []byte) error {
		for _, err := range c.Observe(ctx) {
			return err
		}
		return errors.New("the iteration ended")
	})},
	{name: "elect.Candidate.Participants", do: onCandidate(
		func(ctx context.Context, c *elect.Candidate, _ []byte) error {
			_, err := c.Participants(ctx)
			return err
		},
	)},
	{name: "elect.Leadership.Proclaim", takesData: true, do: onCandidate(
		func(ctx context.Context, c *elect.Candidate, data []byte) error {
			l, err := c.Campaign(ctx)
			if err == nil {
				err = errors.Join(l.Proclaim(ctx, data), l.Resign())
			}
			return err
		},
	), leavesNothing: true},
	{name: "elect.Leadership.ResignWait", do: onCandidate(
		func(ctx context.Context, c *elect.Candidate, _ []byte) error {
			l, err := c.Campaign(ctx)
			if err == nil {
				err = l.ResignWait(ctx)
			}
			return err
		},
	), leavesNothing: true},
}

func onCounter(f func(context.Context, *counter.Counter) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		c, err := counter.New(a.client, a.path, counter.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, c)
	}
}

func onSequence(f func(context.Context, *counter.Sequence) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		s, err := counter.NewSequence(a.client, a.path, counter.SequenceConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, s)
	}
}

func onValue(f func(context.Context, *counter.Value, []byte) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		v, err := counter.NewValue(a.client, a.path, counter.ValueConfig{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, v, a.data)
	}
}

func onCandidate(f func(context.Context, *elect.Candidate, []byte) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		c, err := elect.NewCandidate(a.client, a.path, "host", elect.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, c, a.data)
	}
}

// args is what a call is given.
type args struct {
	client *zk.Client
	path   string
	acl    []zk.ACL
	data   []byte
}
