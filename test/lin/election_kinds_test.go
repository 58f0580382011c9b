//go:build unix

package lin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/zk"
)

func openElection(client *zk.Client, path string, number int) (take, error) {
	c, err := elect.NewCandidate(client, path, fmt.Sprintf("candidate %d", number),
		elect.Config{Layout: electionLayout(path)})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, p plan) (*holding, error) {
		ctx, cancel := patient(ctx, p)
		defer cancel()
		campaign := c.Campaign
		if p.manner == trying {
			campaign = c.TryCampaign
		}
		l, err := campaign(ctx)
		if err != nil {
			return nil, err
		}
		return &holding{
			ctx: l.Context(), sess: l.Session(), guard: l.Guard(), node: l.Path(), token: int64(l.Token()),
			release: func(ctx context.Context, wait bool) {
				if wait {
					_ = l.ResignWait(ctx)
					return
				}
				_ = l.Resign()
			},
		}, nil
	}, nil
}

// electionLayout returns the layout of all candidates of a path. Every layout is used for some path.
func electionLayout(path string) elect.Layout {
	switch {
	case isSlow(path):
		return elect.LeaderSelector
	case strings.Contains(path, "/run-"):
		return elect.KazooElection
	default:
		return elect.LeaderLatch
	}
}

// openRun opens candidates that lead within Run.
func openRun(client *zk.Client, path string, number int) (take, error) {
	return func(ctx context.Context, p plan) (*holding, error) {
		waiting, cancel := patient(ctx, p)
		defer cancel()
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		won, over, ended := make(chan *holding, 1), make(chan struct{}), make(chan struct{})
		g := &holding{release: func(ctx context.Context, wait bool) {
			close(over)
			select {
			case <-ended:
			case <-ctx.Done():
			}
		}}
		id, cfg := fmt.Sprintf("candidate %d", number), elect.Config{Layout: electionLayout(path)}
		c, err := elect.NewCandidate(client, path, id, cfg)
		if err != nil {
			stop()
			return nil, err
		}
		go func() {
			defer close(ended)
			err = c.Run(running, func(term context.Context, l *elect.Leadership) error {
				g.ctx, g.sess, g.guard, g.node, g.token = term, l.Session(), l.Guard(), l.Path(), int64(l.Token())
				won <- g
				<-over
				stop() // once is enough, also after a loss
				return nil
			})
			stop()
		}()
		select {
		case g := <-won:
			return g, nil
		case <-ended:
			return nil, err
		case <-waiting.Done():
			stop()
		}
		select {
		case g := <-won: // at the same moment
			return g, nil
		case <-ended:
			return nil, errors.Join(err, context.Cause(waiting))
		}
	}, nil
}

func observeElection(ctx context.Context, client *zk.Client, path string, seen func(token int64)) error {
	c, err := elect.NewCandidate(client, path, "", elect.Config{Layout: electionLayout(path)})
	if err != nil {
		return err
	}
	for leader, err := range c.Observe(ctx) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !leader.Nobody():
			seen(int64(leader.Token))
		}
	}
	return nil
}
