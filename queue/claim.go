package queue

// The nodes of claims.

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/queue/internal/claims"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// freeOwner stands for the owner of a claim that was given back.
const freeOwner = "free"

// claim is a claim's node: its name tells its owner and where it begins, so that a list of names tells which claims
// may be taken over. Free claims have a directory of their own: a consumer that looks for items lists them each time,
// and the claims of other consumers only when one of those has gone.
type claim struct {
	path string
	claims.Place
	owner string
	free  bool // given back, or its owner is gone
}

// claimName returns the name of a claim's node. Serial makes it unique.
func claimName(p claims.Place, owner, serial string) string {
	return fmt.Sprintf("%s.%s.%s.%s.%s",
		priorityName(p.Priority), segment.Name(p.Segment), segment.ItemName(p.Item), owner, serial)
}

// parseClaim returns the claim with that name in dir, and false if it is not the name of one.
func parseClaim(dir, name string) (claim, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 {
		return claim{}, false
	}
	c := claim{path: dir + "/" + name, owner: parts[3]}
	var ok [3]bool
	c.Priority, ok[0] = parsePriority(parts[0])
	c.Segment, ok[1] = segment.ParseName(parts[1])
	c.Item, ok[2] = segment.ParseItem(parts[2])
	return c, ok[0] && ok[1] && ok[2]
}

// listClaims lists all claims in the order of their places.
//
// It lists claims before consumers, so that an owner that is missing is gone: no consumer claims before its node
// exists, and once that is gone it does not come back under its name.
func (y *layout) listClaims(ctx context.Context, sess *zk.Session) ([]claim, error) {
	list, _, err := y.listAll(ctx, sess)
	return list, err
}

// listAll is listClaims, and returns the live consumers as well.
func (y *layout) listAll(ctx context.Context, sess *zk.Session) ([]claim, map[string]bool, error) {
	b := sess.Batch()
	claimed := b.Children(y.path(dirClaims))
	consumers := b.Children(y.path(dirConsumers))
	free := b.Children(y.path(dirFree)) // last, so that it does not miss what is given back meanwhile
	b.Send()
	list, live, err := y.owned(ctx, claimed, consumers)
	if err != nil {
		return nil, nil, err
	}
	more, err := y.freed(free.Get(ctx))
	return inPlace(append(list, more...)), live, err
}

// owned returns the claims of consumers, and the live consumers.
func (y *layout) owned(
	ctx context.Context, claimed, consumers *zk.Future[zk.Children],
) ([]claim, map[string]bool, error) {
	names, err := claimed.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	alive, err := consumers.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	live := make(map[string]bool, len(alive.Names))
	for _, name := range alive.Names {
		live[name] = true
	}
	var list []claim
	for _, name := range names.Names {
		if c, ok := parseClaim(y.path(dirClaims), name); ok {
			c.free = !live[c.owner]
			list = append(list, c)
		}
	}
	return list, live, nil
}

// freed returns the free claims.
func (y *layout) freed(names zk.Children, err error) ([]claim, error) {
	var list []claim
	for _, name := range names.Names {
		if c, ok := parseClaim(y.path(dirFree), name); ok {
			c.free = true
			list = append(list, c)
		}
	}
	return list, err
}

func inPlace(list []claim) []claim {
	slices.SortFunc(list, func(a, b claim) int { return a.Compare(b.Place) })
	return list
}

// freePath returns the path of a new free claim that begins at a place.
func (co *claimant) freePath(at claims.Place) string {
	return co.q.layout.path(dirFree, claimName(at, freeOwner, co.nextSerial()))
}
