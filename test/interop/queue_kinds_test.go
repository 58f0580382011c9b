package interop_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// A classicQueue is one of our queues in another project's format.
type classicQueue struct {
	put  func(ctx context.Context, arg string, bodies ...string) error
	take func(ctx context.Context) (body string, done func(context.Context) error, err error)
	asks map[string]ask // by their names in peers' commands
}

// A classicKind is a kind of queue of another project, and our queue on the same nodes.
type classicKind struct {
	name string // in peers' commands
	java bool   // otherwise kazoo
	lock bool
	poll bool               // the peer can take one item and report that there is none
	arg  func(i int) string // the argument of item i
	open func(client *zk.Client, path, locks string) (classicQueue, error)
}

func (k classicKind) String() string {
	if k.lock && k.java {
		return k.name + " with locks"
	}
	return k.name
}

// path returns the path of a test's queue. Peers call the queue by the last part.
func (k classicKind) path(test string) string { return "/" + k.label(test) }

func (k classicKind) label(test string) string {
	return strings.ReplaceAll(k.String(), " ", "-") + "-" + test
}

func (k classicKind) locks(test string) string {
	if k.java && k.lock {
		return k.path(test) + "-locks"
	}
	return ""
}

func (k classicKind) tell(t *testing.T, p *queuePeer, test, suffix string) string {
	t.Helper()
	name, locks := k.label(test)+suffix, k.locks(test)
	if locks == "" {
		locks = "-"
	}
	p.order(t, "open %s %s %s %s", name, k.name, k.path(test), locks)
	return name
}

func none(int) string { return "-" }

// spread is an argument for which the items' order is not that of their puts.
func spread(i int) int { return i * 7 % 5 }

func raw(bodies []string) [][]byte {
	var all [][]byte
	for _, body := range bodies {
		all = append(all, []byte(body))
	}
	return all
}

func openSimple(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewSimple(client, path, classic.Config{})
	return classicQueue{
		put: func(ctx context.Context, _ string, bodies ...string) error { return q.Offer(ctx, []byte(bodies[0])) },
		take: func(ctx context.Context) (string, func(context.Context) error, error) {
			body, err := q.Take(ctx)
			return string(body), func(context.Context) error { return nil }, err
		},
		asks: simpleAsks(q),
	}, err
}

// itemsOf is a queue whose items are taken and then finished.
func itemsOf(q items, put func(ctx context.Context, arg string, bodies ...string) error) classicQueue {
	return classicQueue{
		put: put,
		take: func(ctx context.Context) (string, func(context.Context) error, error) {
			item, err := q.Take(ctx)
			if err != nil {
				return "", nil, err
			}
			return textOf(item), item.Done, nil
		},
		asks: itemAsks(q),
	}
}

func openCurator(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCurator(client, path, classic.Config{LockPath: locks})
	return itemsOf(q, func(ctx context.Context, _ string, bodies ...string) error {
		return q.PutMulti(ctx, raw(bodies)...)
	}), err
}

func openPriority(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorPriority(client, path, classic.Config{LockPath: locks})
	return itemsOf(q, func(ctx context.Context, arg string, bodies ...string) error {
		priority, err := strconv.ParseInt(arg, 10, 32)
		if err != nil {
			return err
		}
		return q.PutMulti(ctx, int32(priority), raw(bodies)...)
	}), err
}

func openDelay(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorDelay(client, path, classic.Config{LockPath: locks})
	return itemsOf(q, func(ctx context.Context, arg string, bodies ...string) error {
		due, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return err
		}
		return q.PutMulti(ctx, time.UnixMilli(due), raw(bodies)...)
	}), err
}

func openID(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorID(client, path, classic.Config{LockPath: locks})
	all := itemsOf(q, func(ctx context.Context, arg string, bodies ...string) error {
		return q.Put(ctx, arg, []byte(bodies[0]))
	})
	all.asks["remove"] = func(ctx context.Context, id string) (string, error) {
		n, err := q.Remove(ctx, id)
		return fmt.Sprintf("removed %d", n), err
	}
	return all, err
}

func openKazoo(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewKazoo(client, path, classic.Config{})
	all := itemsOf(q, func(ctx context.Context, arg string, bodies ...string) error {
		priority, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		return q.Put(ctx, []byte(bodies[0]), priority)
	})
	all.asks["poll"] = orNone(q.Get)
	return all, err
}

func openKazooLocking(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewKazooLocking(client, path, classic.Config{})
	return itemsOf(q, func(ctx context.Context, arg string, bodies ...string) error {
		priority, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		return q.PutAll(ctx, raw(bodies), priority)
	}), err
}

func classicKinds() []classicKind {
	began := time.Now()
	priority := func(i int) string { return strconv.Itoa(spread(i) - 2) }
	due := func(i int) string { // all different: Curator delivers equal ones in any order
		return strconv.FormatInt(began.Add(-time.Minute).UnixMilli()+int64(1000*spread(i)+i), 10)
	}
	id := func(i int) string { return "id" + strconv.Itoa(i%3) }
	kinds := []classicKind{
		{name: "simple", java: true, poll: true, arg: none, open: openSimple},
		{name: "zookeeper", java: true, poll: true, arg: none, open: openSimple},
		{name: "queue", poll: true, arg: func(i int) string { return strconv.Itoa(100 + spread(i)) }, open: openKazoo},
		{name: "locking", lock: true, poll: true, arg: func(i int) string {
			return strconv.Itoa(100 + spread(i))
		}, open: openKazooLocking},
	}
	for _, lock := range []bool{false, true} {
		kinds = append(
			kinds,
			classicKind{name: "plain", java: true, lock: lock, arg: none, open: openCurator},
			classicKind{name: "priority", java: true, lock: lock, arg: priority, open: openPriority},
			classicKind{name: "delay", java: true, lock: lock, arg: due, open: openDelay},
			classicKind{name: "id", java: true, lock: lock, arg: id, open: openID},
		)
	}
	return kinds
}

// ordered returns n bodies in the order in which the queue must deliver them.
func (k classicKind) ordered(n int) []string {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if k.arg(0) != "-" && k.name != "id" {
		slices.SortStableFunc(order, func(a, b int) int { return spread(a) - spread(b) })
	}
	bodies := make([]string, n)
	for i, number := range order {
		bodies[i] = fmt.Sprintf("item%d", number)
	}
	return bodies
}
