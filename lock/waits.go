package lock

// What clients tell of their waits.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/zk"
)

// A NestedWait is a call that has waited inside of holds for 200 ms, as its client tells of it: see OnDeadlock. It may
// have ended meanwhile.
type NestedWait struct {
	Paths   []string // of the lock, set or election that it waits for
	Session int64    // of its contender, with its Token: as in Contender
	Token   Token    // 0 for a Simple, which has no contender
	Owner   Owner
	Since   time.Time // when the call began, by its own clock
	Inside  []NestedHold
}

// A NestedHold is a lock or a leadership that somebody holds while waiting for another.
type NestedHold struct {
	Paths []string
	Token Token
}

// Of reports whether it is a hold of a contender, at whichever of its paths: one transaction has made all of a
// contender's nodes, and no node of another.
func (h NestedHold) Of(c Contender) bool { return h.Token/line.Turns == c.Token/line.Turns }

// NestedWaits returns the waits inside of holds that the clients tell of below waitsPath (DefaultWaitsPath if empty),
// in no particular order. It returns none if nothing is there.
func NestedWaits(ctx context.Context, client *zk.Client, waitsPath string) ([]NestedWait, error) {
	records, err := readWaits(ctx, client, waitsPath)
	if err != nil {
		return nil, err
	}
	var list []NestedWait
	for _, name := range slices.Sorted(maps.Keys(records)) {
		r := records[name]
		for _, w := range r.Waits {
			n := NestedWait{Paths: w.Paths, Session: r.Session, Owner: Owner(r.Owner), Since: w.Since}
			n.Owner.Label = w.Label
			if token, err := line.Token(w.Czxid, 0); err == nil {
				n.Token = Token(token)
			}
			for _, h := range w.Holds {
				n.Inside = append(n.Inside, NestedHold{Paths: h.Paths, Token: Token(h.Token)})
			}
			list = append(list, n)
		}
	}
	return list, nil
}

// A FoundDeadlock is one that the clients of an ensemble tell of.
type FoundDeadlock struct {
	Steps []DeadlockStep // as in DeadlockError

	// Confirmed says that all of its clients have confirmed it: it has existed. Otherwise it may be about to be
	// confirmed, or may never have existed: a client that no longer waits may still be shown.
	Confirmed bool
}

// Deadlocks returns the deadlocks of waits inside of holds, as the clients tell of them below waitsPath
// (DefaultWaitsPath if empty). It returns none if nothing is there.
func Deadlocks(ctx context.Context, client *zk.Client, waitsPath string) ([]FoundDeadlock, error) {
	records, err := readWaits(ctx, client, waitsPath)
	if err != nil {
		return nil, err
	}
	var list []FoundDeadlock
	for _, found := range waits.Find(records) {
		e := newDeadlockError(found, func(record string) line.Owner { return records[record].Owner })
		list = append(list, FoundDeadlock{Steps: e.Steps, Confirmed: waits.Certain(found, records)})
	}
	return list, nil
}

func readWaits(ctx context.Context, client *zk.Client, path string) (map[string]*waits.Record, error) {
	path = cmp.Or(path, DefaultWaitsPath)
	if err := attempt.ReadArgs("lock", client, path); err != nil {
		return nil, err
	}
	records, err := attempt.Run(ctx, client, func(sess *zk.Session) (map[string]*waits.Record, error) {
		return waits.Read(ctx, sess, path)
	})
	if ignoreNoNode(err) != nil {
		return nil, fmt.Errorf("lock: waits at %s: %w", path, err)
	}
	return records, nil
}
