package main

// What docs/migrating-curator*.md show.

import (
	"context"
	"errors"
	"log"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// curator has the functions of the page by their names.
var curator = map[string]function{
	"exclusive": curatorExclusive,
	"readWrite": curatorReadWrite,
	"permits":   curatorPermits,
	"lead":      curatorLead,
	"simple":    curatorSimple,
	"orders":    curatorOrders,
	"meet":      curatorMeet,
	"count":     curatorCount,
	"shared":    curatorShared,
	"follow":    curatorFollow,
	"children":  curatorChildren,
	"join":      curatorJoin,
	"services":  curatorServices,
}

func curatorExclusive(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewMutex(client, "/locks/report", lock.Config{Layout: lock.Curator})
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
		return work(ctx) // ctx ends before another client can have the lock
	})
}

func curatorReadWrite(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewRWMutex(client, "/locks/data", lock.RWConfig{Layout: lock.Curator})
	if err != nil {
		return err
	}
	hold, err := m.RLock(ctx) // or m.Lock, to write
	if err != nil {
		return err
	}
	defer hold.Unlock()
	return work(hold.Context())
}

func curatorPermits(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := lock.SemaphoreConfig{Layout: lock.Curator}
	s, err := lock.NewSemaphore(client, "/pools/gpu", lock.StoredLimit(8), cfg)
	if err != nil {
		return err
	}
	return s.Do(ctx, 1, func(ctx context.Context, hold *lock.Hold) error { return work(ctx) })
}

func curatorLead(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := elect.Config{Layout: elect.LeaderLatch} // or LeaderSelector
	c, err := elect.NewCandidate(client, "/app/leader", "host-1", cfg)
	if err != nil {
		return err
	}
	l, err := c.Campaign(ctx) // or c.Run, which campaigns again after a loss
	if err != nil {
		return err
	}
	defer l.Resign()
	return work(l.Context())
}

func curatorSimple(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	q, err := classic.NewSimple(client, "/mail", classic.Config{}) // the nodes of SimpleDistributedQueue
	if err != nil {
		return err
	}
	if err := q.Offer(ctx, []byte("to: ann")); err != nil {
		return err
	}
	item, err := q.Take(ctx) // removed when it is taken
	if err != nil {
		return err
	}
	log.Printf("%s", item)
	return nil
}

func curatorOrders(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := classic.Config{LockPath: "/orders-locks"} // the nodes of DistributedQueue
	q, err := classic.NewCurator(client, "/orders", cfg)
	if err != nil {
		return err
	}
	if err := q.Put(ctx, []byte("order 42")); err != nil {
		return err
	}
	item, err := q.Take(ctx) // or q.Consume, which calls a function for each
	if err != nil {
		return err
	}
	if err := work(item.Context()); err != nil {
		return err
	}
	return item.Done(ctx) // or Requeue, Release
}

func curatorMeet(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	d, err := barrier.NewDouble(client, "/app/start", 1, barrier.Config{}) // Curator's and kazoo's nodes
	if err != nil {
		return err
	}
	m, err := d.Enter(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(m.Context()), m.Leave(ctx)) // the others wait for it, also if the work has failed
}

func curatorCount(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	visits, err := counter.New(client, "/visits", counter.Config{Layout: counter.Long})
	if err != nil {
		return err
	}
	n, err := visits.Add(ctx, 1) // the value after it
	if err != nil {
		return err
	}
	log.Print("visit ", n)
	return nil
}

func curatorShared(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	level, err := counter.New(client, "/level", counter.Config{Layout: counter.Int})
	if err != nil {
		return err
	}
	now, err := level.Get(ctx)
	if err != nil {
		return err
	}
	set, err := level.CompareAndSet(ctx, now, now+1) // or level.Add, which never has to be repeated
	if err != nil {
		return err
	}
	log.Print("set: ", set)
	return nil
}

func curatorFollow(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	tree, err := cache.OpenTree(client, "/config", cache.Config{}) // a cache only reads: there is no layout
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := tree.WaitSynced(ctx); err != nil {
		return err
	}
	for entry := range tree.All() {
		log.Print(entry.Path, " = ", string(entry.Data))
	}
	return nil
}

func curatorChildren(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	apply := func(path string, data []byte) {
		log.Print(path, " = ", string(data))
		stop() // this program has enough of it
	}
	err := eachChange(ctx, client, apply)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func eachChange(ctx context.Context, client *zk.Client, apply func(path string, data []byte)) error {
	children, err := cache.OpenChildren(client, "/config", cache.Config{})
	if err != nil {
		return err
	}
	defer children.Close()
	for change, err := range children.Changes(ctx) { // first what there is, then every change, until ctx ends
		if err != nil {
			return err
		}
		apply(change.Path, change.After.Data)
	}
	return nil
}

func curatorJoin(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	g, err := member.NewGroup(client, "/workers", member.GroupConfig{Layout: member.GroupMember})
	if err != nil {
		return err
	}
	m, err := g.Join(ctx, "host-1", []byte("10.0.0.1:8080"))
	if err != nil {
		return err
	}
	defer m.Leave()
	members, err := g.Members(ctx)
	log.Print(len(members), " members")
	return err
}

func curatorServices(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	r, err := discovery.NewRegistry(client, "/services", discovery.Config{}) // the nodes of curator-x-discovery
	if err != nil {
		return err
	}
	reg, err := r.Register(ctx, discovery.Instance{Service: "users", Address: "10.0.0.1", Port: 8080})
	if err != nil {
		return err
	}
	defer reg.Unregister()
	users, err := r.OpenProvider("users", discovery.ProviderConfig{})
	if err != nil {
		return err
	}
	defer users.Close()
	use, err := users.Pick(ctx)
	if err != nil {
		return err
	}
	log.Print("calls ", use.Instance.URL())
	use.Done(nil)
	return nil
}
