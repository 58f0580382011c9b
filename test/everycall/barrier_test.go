package everycall_test

// The calls of package barrier.

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
)

var barrierTypes = []reflect.Type{
	reflect.TypeFor[*barrier.Barrier](), reflect.TypeFor[*barrier.Double](), reflect.TypeFor[*barrier.Member](),
	reflect.TypeFor[*barrier.Rounds](), reflect.TypeFor[*barrier.Party](),
}

func onPlainBarrier(f func(ctx context.Context, b *barrier.Barrier) error) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		b, err := barrier.NewBarrier(a.client, a.path, barrier.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		return f(ctx, b)
	}
}

// onDouble returns a call of a party that has entered a barrier for one, and has to leave.
func onDouble(
	f func(ctx context.Context, d *barrier.Double, m *barrier.Member) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		d, err := barrier.NewDouble(a.client, a.path, 1, barrier.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		m, err := d.Enter(ctx)
		if err != nil {
			return err
		}
		return f(ctx, d, m)
	}
}

// both calls f twice at the same time.
func both(f func() error) error {
	first := make(chan error, 1)
	go func() { first <- f() }()
	return errors.Join(f(), <-first)
}

// onRounds returns a call of a party that has joined, and leaves.
func onRounds(
	f func(ctx context.Context, r *barrier.Rounds, p *barrier.Party) error,
) func(context.Context, args) error {
	return func(ctx context.Context, a args) error {
		r, err := barrier.NewRounds(a.client, a.path, barrier.RoundsConfig{Parties: 1, ACL: a.acl})
		if err != nil {
			return err
		}
		p, err := r.Join(ctx)
		if err != nil {
			return err
		}
		return errors.Join(f(ctx, r, p), p.Leave(ctx))
	}
}

var barrierCalls = []call{
	{name: "barrier.Barrier.Set", do: onPlainBarrier(func(ctx context.Context, b *barrier.Barrier) error {
		return b.Set(ctx)
	}), done: wantWhatLasts("barrier")},
	{name: "barrier.Barrier.Remove", do: onPlainBarrier(func(ctx context.Context, b *barrier.Barrier) error {
		return errors.Join(b.Set(ctx), b.Remove(ctx))
	}), done: wantNone},
	{name: "barrier.Barrier.Wait", do: onPlainBarrier(func(ctx context.Context, b *barrier.Barrier) error {
		return b.Wait(ctx)
	}), done: wantNone},
	{name: "barrier.Barrier.Wait until it is removed", do: onPlainBarrier(
		func(ctx context.Context, b *barrier.Barrier) error {
			if err := b.Set(ctx); err != nil {
				return err
			}
			removed := make(chan error, 1)
			time.AfterFunc(time.Minute, func() { removed <- b.Remove(ctx) })
			if err := b.Wait(ctx); err != nil {
				return err
			}
			return <-removed
		},
	), done: wantNone},
	{name: "barrier.Double.Enter", do: onDouble(
		func(ctx context.Context, _ *barrier.Double, m *barrier.Member) error { return m.Leave(ctx) },
	), leavesNothing: true},
	{name: "barrier.Member.Leave and coming again", do: onDouble(
		func(ctx context.Context, d *barrier.Double, m *barrier.Member) error {
			if err := m.Leave(ctx); err != nil {
				return err
			}
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
	), leavesNothing: true},
	{name: "barrier.Double.Enter of two", do: func(ctx context.Context, a args) error {
		d, err := barrier.NewDouble(a.client, a.path, 2, barrier.Config{ACL: a.acl})
		if err != nil {
			return err
		}
		return both(func() error {
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		})
	}, leavesNothing: true},
	{name: "barrier.Party.Arrive of two", do: func(ctx context.Context, a args) error {
		r, err := barrier.NewRounds(a.client, a.path, barrier.RoundsConfig{Parties: 2, ACL: a.acl})
		if err != nil {
			return err
		}
		return both(func() error {
			p, err := r.Join(ctx)
			if err != nil {
				return err
			}
			got, err := p.Arrive(ctx)
			if err == nil && got != 1 {
				err = fmt.Errorf("got round %d, want 1", got)
			}
			return errors.Join(err, p.Leave(ctx))
		})
	}, done: wantNobody},
	{name: "barrier.Rounds.Join", do: onRounds(
		func(context.Context, *barrier.Rounds, *barrier.Party) error { return nil },
	), done: wantNobody},
	{name: "barrier.Rounds.Outcome", do: onRounds(
		func(ctx context.Context, r *barrier.Rounds, p *barrier.Party) error {
			if _, err := p.Arrive(ctx); err != nil {
				return err
			}
			o, err := r.Outcome(ctx, 1)
			if want := (barrier.Outcome{Round: 1}); err == nil && o != want {
				err = fmt.Errorf("got outcome %+v, want %+v", o, want)
			}
			return err
		},
	), done: wantWhatLasts("rounds")},
	{name: "barrier.Party.Arrive", do: onRounds(
		func(ctx context.Context, _ *barrier.Rounds, p *barrier.Party) error {
			for want := range int64(2) {
				if got, err := p.Arrive(ctx); err != nil || got != want+1 {
					return fmt.Errorf("got round %d, %w, want %d", got, err, want+1)
				}
			}
			return nil
		},
	), done: wantNobody},
	{name: "barrier.Party.Leave", do: onRounds(
		func(ctx context.Context, _ *barrier.Rounds, p *barrier.Party) error { return p.Leave(ctx) },
	), done: wantNobody},
}
