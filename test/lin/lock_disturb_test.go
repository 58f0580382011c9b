//go:build unix

package lin_test

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// limitOf returns the node with the number of permits of a place of kind "watched".
func limitOf(path string) string { return path + "-limit" }

func openWatched(client *zk.Client, path string, number int) (take, error) {
	return permitted(lock.NewSemaphore(client, path, lock.WatchedLimit(limitOf(path)),
		lock.SemaphoreConfig{Retry: retryOf(number)}))
}

// changeLimit lowers the limit for a while. If it were always low or changing, the clients would only wait.
func changeLimit(ctx context.Context, c *contender, p plan) {
	if c.setLimit(ctx, p.place, p.limit) {
		pause(ctx, p.lowers)
	}
	for ctx.Err() == nil && !c.setLimit(ctx, p.place, permits) {
	}
}

// restoreLimit writes the full limit, even if it is there already: then no earlier write can be applied late.
func restoreLimit(ctx context.Context, c *contender, place string) bool {
	return c.setLimit(ctx, place, permits)
}

// setLimit writes a limit over the one that it has read, and reports whether it has. It is a counter's Set with a
// version: see lincheck.Limit.
func (c *contender) setLimit(ctx context.Context, place string, permits int64) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	path := limitOf(c.Root + "/" + place)
	sess, err := c.client.Session(ctx)
	if err != nil {
		return false
	}
	_, stat, err := sess.Get(ctx, path)
	if err != nil {
		return false
	}
	l := lincheck.Limit{Client: c.number, Permits: permits, Version: stat.Version + 1, Asked: clock()}
	c.report(report{Place: place, Limit: &l})
	_, err = sess.Set(ctx, path, binary.BigEndian.AppendUint32(nil, uint32(permits)), stat.Version)
	switch {
	case err == nil:
		l.Done = clock()
	case zk.OutcomeOf(err) == zk.Unknown:
		return false
	default:
		l.Refused = true
	}
	c.report(report{Place: place, Limit: &l})
	return err == nil
}

// revocable are the configurations of mutexes that are revoked. Some of them refuse a revocation without a reason.
var revocable = []lock.Config{
	{Label: "hands off"},
	{Label: "wants a reason", OnRevoke: func(_ context.Context, r lock.Revocation) bool { return r.Reason != "" }},
	{Label: "strict", Handoff: lock.StrictFIFO, Layout: lock.Both},
	{Label: "rests", Delay: 30 * time.Millisecond},
	{Label: "keeps", Retain: 5 * time.Millisecond, Layout: lock.Kazoo},
}

func openRevoked(client *zk.Client, path string, number int) (take, error) {
	return plain(lock.NewMutex(client, path, tryingAgain(revocable[number%len(revocable)], number)))
}

// openRevokedRW opens read/write locks whose holds do not change, because a change also changes their nodes.
func openRevokedRW(client *zk.Client, path string, number int) (take, error) {
	open, err := openRW(client, path, number)
	return func(ctx context.Context, p plan) (*holding, error) {
		g, err := open(ctx, p)
		if err == nil {
			g.change = nil
		}
		return g, err
	}, err
}

// revoke waits for a holder of the lock and asks it to release.
func revoke(ctx context.Context, c *contender, p plan) {
	for range 20 {
		if ctx.Err() != nil || c.ask(ctx, p) || !pause(ctx, 10*time.Millisecond) {
			return
		}
	}
}

// ask asks the holders of the lock to release, and reports whether there were any.
func (c *contender) ask(ctx context.Context, p plan) bool {
	ctx, cancel := context.WithTimeout(ctx, p.grace+timeout)
	defer cancel()
	asked := make(map[string]lincheck.Revocation) // by the holder's node
	opts := lock.RevokeOptions{Reason: p.reason, Grace: p.grace, Force: p.force, Holder: func(who lock.Contender) bool {
		r := lincheck.Revocation{
			Client: c.number, Node: who.Path, Asked: clock(), Grace: int64(p.grace),
			Force: p.force,
		}
		asked[who.Path] = r
		c.report(report{Place: p.place, Revocation: &r})
		return true
	}}
	list, _ := lock.Revoke(ctx, c.client, c.Root+"/"+p.place, opts)
	done := clock()
	for _, who := range list {
		if r := asked[who.Holder.Path]; who.Ending == lock.EndingReleased {
			r.Released = done
			c.report(report{Place: p.place, Revocation: &r})
		}
	}
	return len(asked) > 0
}
