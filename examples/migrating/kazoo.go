package main

// What docs/migrating-kazoo.md shows.

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// kazoo has the functions of the page by their names.
var kazoo = map[string]function{
	"exclusive": kazooExclusive,
	"readWrite": kazooReadWrite,
	"permits":   kazooPermits,
	"lead":      kazooLead,
	"queues":    kazooQueues,
	"meet":      kazooMeet,
	"count":     kazooCount,
	"follow":    kazooFollow,
	"join":      kazooJoin,
	"share":     kazooShare,
	"lease":     kazooLease,
}

func kazooExclusive(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewMutex(client, "/locks/report", lock.Config{Layout: lock.Kazoo})
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
		return work(ctx) // ctx ends before another client can have the lock
	})
}

func kazooReadWrite(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewRWMutex(client, "/locks/data", lock.RWConfig{Layout: lock.Kazoo})
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

func kazooPermits(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := lock.SemaphoreConfig{Layout: lock.Kazoo}
	s, err := lock.NewSemaphore(client, "/pools/gpu", lock.StoredLimit(8), cfg)
	if err != nil {
		return err
	}
	return s.Do(ctx, 1, func(ctx context.Context, hold *lock.Hold) error { return work(ctx) })
}

func kazooLead(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := elect.Config{Layout: elect.KazooElection}
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

func kazooQueues(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	q, err := classic.NewKazooLocking(client, "/mail", classic.Config{}) // the nodes of LockingQueue
	if err != nil {
		return err
	}
	if err := q.Put(ctx, []byte("to: ann"), classic.DefaultPriority); err != nil {
		return err
	}
	item, err := q.Take(ctx)
	if err != nil {
		return err
	}
	return item.Done(ctx) // or Requeue, Release
}

func kazooMeet(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
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

func kazooCount(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	visits, err := counter.New(client, "/visits", counter.Config{Layout: counter.Text})
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

func kazooFollow(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
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

func kazooJoin(ctx context.Context, client *zk.Client, _ func(context.Context) error) error {
	g, err := member.NewGroup(client, "/workers", member.GroupConfig{Layout: member.Party})
	if err != nil {
		return err
	}
	m, err := g.Join(ctx, "host-1", nil) // kazoo's members have no data
	if err != nil {
		return err
	}
	defer m.Leave()
	members, err := g.Members(ctx)
	log.Print(len(members), " members")
	return err
}

func kazooShare(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg := member.PartitionerConfig{Split: member.SetPartitioner} // kazoo's; the default moves fewer items
	parts, err := member.NewPartitioner(client, "/app/shards", "host-1", []string{"users"}, cfg)
	if err != nil {
		return err
	}
	return parts.Run(ctx, func(ctx context.Context, s *member.Share) error { // until ctx ends; then it returns nil
		defer stop() // this program has enough of it; others serve until ctx ends
		return work(ctx)
	})
}

func kazooLease(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	l, err := member.NewLease(client, "/app/nightly", "host-1", time.Hour, member.LeaseConfig{}) // kazoo's nodes
	if err != nil {
		return err
	}
	leased, err := l.Take(ctx)
	if errors.Is(err, member.ErrLeased) {
		return nil // another host has it
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, leased.Until)
	defer cancel()
	return work(ctx)
}
