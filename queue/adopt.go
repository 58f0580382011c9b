package queue

// Taking over claims that were given back or left behind.

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/zk"
)

// leftBehind returns the claims that may be taken over, in the order of their places: free ones, and those whose
// owner is gone.
//
// It only asks which owners are gone if the list of consumers has changed since it last asked. It sets the watch on
// that list before it lists the claims, so that a consumer that goes later fires the watch, and the claims of one
// that went before are seen. Consumers are listed once more after the claims: see listClaims. It does not list the free
// claims again if they were listed just now, after that watch was set.
func (f *fetcher) leftBehind(ctx context.Context, listed []string) ([]claim, error) {
	q := f.co.q
	known := f.co.claims.Knows(claims.Consumers)
	if !known {
		_, _, w, err := f.co.sess.ChildrenW(ctx, q.layout.path(dirConsumers))
		if err != nil {
			return nil, err
		}
		b := f.co.sess.Batch()
		claimed, consumers := b.Children(q.layout.path(dirClaims)), b.Children(q.layout.path(dirConsumers))
		b.Send()
		list, live, err := q.layout.owned(ctx, claimed, consumers)
		if err != nil {
			w.Close()
			return nil, err
		}
		f.orphans = slices.DeleteFunc(list, func(c claim) bool { return !c.free })
		f.consumers = max(1, len(live))
		if f.spread = min(f.spread, f.consumers); f.spread == 0 {
			f.spread = max(1, f.consumers/4) // consumers that come together meet
		}
		f.co.claims.Watch(claims.Consumers, w)
	}
	if !known || listed == nil {
		var err error
		if listed, _, err = f.co.sess.Children(ctx, q.layout.path(dirFree)); err != nil {
			return nil, err
		}
	}
	free, err := q.layout.freed(zk.Children{Names: listed}, nil)
	f.co.claims.SetFreeClaims(len(free))
	return inPlace(append(free, f.orphans...)), err
}

// maxTries is how many claims a consumer tries to take over before it lists them anew: the list grows old.
const maxTries = 3

// adoptAny takes over one of the claims, which are in the order of their places: the first that exists; or, if others
// take some at the same time, one of the first few.
func (f *fetcher) adoptAny(ctx context.Context, list []claim) (bool, error) {
	for tries := 0; len(list) > 0; {
		i := rand.IntN(min(f.spread, len(list)))
		ok, err := f.adopt(ctx, &list[i])
		switch {
		case errors.Is(err, errTaken):
			if tries++; tries == maxTries {
				return false, err
			}
		case ok || err != nil:
			if ok && tries == 0 {
				f.metNone()
			}
			return ok, err
		}
		list = slices.Delete(list, i, i+1)
	}
	return false, nil
}

// metOthers records that another consumer was quicker, and metNone that none was. Consumers that meet others choose
// among as many claims as will keep them apart. A consumer that is alone always takes the first.
func (f *fetcher) metOthers() { f.spread = min(2*f.spread, f.consumers) }

func (f *fetcher) metNone() { f.spread = max(1, f.spread-(f.spread+7)/8) }

// adopt takes over a claim that was given back, or left behind by a consumer that is gone. Items that were delivered
// there count as tried. What there is no room for becomes free claims, as many as there are consumers.
func (f *fetcher) adopt(ctx context.Context, c *claim) (bool, error) {
	q := f.co.q
	data, stat, err := f.co.sess.Get(ctx, c.path)
	if errors.Is(err, zk.NoNode) {
		f.adopted(c)
		f.metOthers()
		return false, errTaken
	}
	if err != nil {
		return false, err
	}
	old, ok := claims.ParseRange(data)
	if !ok {
		f.adopted(c)
		return false, nil // not a claim; it is in no consumer's way
	}
	left := func(claims.Range) bool { return true }
	if c.owner != freeOwner {
		if left, err = f.unfinished(ctx, c, &old); err != nil {
			return false, err
		}
	}
	s, rest := old.Split()
	if s.Empty() {
		s, rest = rest, claims.Range{Last: -1}
	}
	room := f.room()
	parts := max(1, min(f.consumers, f.maxParts()/2))
	var free []claims.Range
	for _, s := range []claims.Range{s.From(s.First + room), rest} {
		free = append(free, s.Cut(max(room, (s.Size()+parts-1)/parts))...)
	}
	free = slices.DeleteFunc(free, func(s claims.Range) bool { return !left(s) })
	s = s.UpTo(s.First + room - 1)
	ready := q.layout.readyList(c.Priority)
	l := f.newLease(ready, c.At(s.First), s)
	ops := append([]zk.Op{takeOver(c.path, stat.Version)}, f.makeFree(ready, l.Place, free)...)
	if err := f.make(l, ops...); err != nil {
		return false, err // it may still exist: its owner has written it meanwhile
	}
	f.adopted(c)
	// Other claims may come before what was claimed ahead: more that was left behind with this one, and items that its
	// owner gave back, which are claims of their own. A consumer that keeps apart from others leaves those to them.
	if f.spread == 1 && (len(s.Except) > 0 || !f.co.claims.Empty()) {
		f.co.claims.LookFirst()
	}
	return f.fill(l)
}

// unfinished makes a range that a consumer has left behind begin with the first item that it has not finished, if
// there is one, and returns a function that tells whether something is left of a part of it. No other consumer
// finishes what that one had claimed, so an item that does not exist now never will.
func (f *fetcher) unfinished(ctx context.Context, c *claim, s *claims.Range) (func(claims.Range) bool, error) {
	items, err := f.co.q.layout.readyList(c.Priority).Items(ctx, f.co.sess, c.Segment)
	if err != nil {
		return nil, err
	}
	if i, _ := slices.BinarySearch(items, s.First); i < len(items) && items[i] <= s.Last {
		s.First = items[i]
	}
	return func(s claims.Range) bool {
		i, _ := slices.BinarySearch(items, s.First)
		return i < len(items) && items[i] <= s.Last
	}, nil
}

// adopted forgets a claim of a consumer that is gone, after it was taken over.
func (f *fetcher) adopted(c *claim) {
	f.orphans = slices.DeleteFunc(f.orphans, func(o claim) bool { return o.path == c.path })
}
