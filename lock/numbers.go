package lock

// How many sequence numbers are left.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Numbers says how many more contenders a lock can have before its sequence numbers are used up; see ErrWrap.
type Numbers struct {
	Path string // of the node that counts, whose deletion restarts it: the lock's, or a semaphore's child with its line
	Left int    // how many more nodes its contenders can make: one each, or two with Layout Both
	Low  bool   // 2^30 are used, about half
}

// InspectNumbers returns how many sequence numbers are left at the path of a lock, an election or a semaphore. Left
// is too large for a server that counts past 2147483647, as package server does, while no contender is there.
func InspectNumbers(ctx context.Context, client *zk.Client, path string) (Numbers, error) {
	if err := attempt.ReadArgs("lock", client, path); err != nil {
		return Numbers{}, err
	}
	n, err := attempt.Run(ctx, client, func(sess *zk.Session) (Numbers, error) {
		return inspectNumbers(ctx, sess, path)
	})
	if err != nil {
		return Numbers{}, fmt.Errorf("lock: inspect numbers of %s: %w", path, err)
	}
	return n, nil
}

func inspectNumbers(ctx context.Context, sess *zk.Session, path string) (Numbers, error) {
	children, stat, err := sess.Children(ctx, path)
	contenders := line.Contenders(children, line.Every)
	switch {
	case err != nil:
	case slices.Contains(children, leasesDir):
		path = attempt.Join(path, queueDir)
		children, stat, err = sess.Children(ctx, path)
		contenders = line.Contenders(children, line.Every)
	case len(contenders) == 0: // a semaphore in kazoo's layout, perhaps one of which no permit is taken
		beside, counts, besideErr := sess.Children(ctx, path+kazooQueue)
		none := errors.Is(besideErr, zk.NoNode) || errors.Is(besideErr, zk.NoAuth)
		if !none || slices.ContainsFunc(children, line.KazooPermit) {
			path, stat, err = path+kazooQueue, counts, besideErr
			contenders = line.Contenders(beside, line.Every)
		}
	}
	if err != nil && !errors.Is(err, zk.NoNode) {
		return Numbers{}, err
	}
	left := line.NumbersLeft(contenders, stat)
	return Numbers{Path: path, Left: left, Low: left <= line.HalfLeft}, nil
}
