// Command migrating does with Turnstile what docs/migrating.md shows for other projects, once each.
package main

// One function for each recipe of the page.

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := all(ctx, "127.0.0.1:2181", func(context.Context) error { return nil })
	if err != nil && !errors.Is(err, context.Cause(ctx)) { // to be stopped is no failure
		log.Fatal(err)
	}
	stop()
}

// all runs every function, most of them with work to do.
func all(ctx context.Context, servers string, work func(context.Context) error) error {
	client, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer client.Close()
	for name, f := range map[string]func() error{
		"exclusive": func() error { return exclusive(ctx, client, work) },
		"tryLock":   func() error { return tryLock(ctx, client, work) },
		"readWrite": func() error { return readWrite(ctx, client, work) },
		"permits":   func() error { return permits(ctx, client, work) },
		"lead":      func() error { return lead(ctx, client, work) },
		"queues":    func() error { return queues(ctx, client) },
		"meet":      func() error { return meet(ctx, client, work) },
		"count":     func() error { return count(ctx, client) },
		"follow":    func() error { return follow(ctx, client) },
		"join":      func() error { return join(ctx, client) },
		"share":     func() error { return share(ctx, client, work) },
		"lease":     func() error { return lease(ctx, client, work) },
		"services":  func() error { return services(ctx, client) },
	} {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func connect(ctx context.Context, servers string) (*zk.Client, error) {
	return zk.Open(ctx, zk.Config{Servers: servers, Timeout: 10 * time.Second})
}

func exclusive(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := lock.Config{Layout: lock.Both} // Curator and Kazoo; go-zookeeper's layout is Curator's, the default
	m, err := lock.NewMutex(client, "/locks/report", cfg)
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, hold *lock.Hold) error {
		return work(ctx) // ctx ends before another client can have the lock
	})
}

func tryLock(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	m, err := lock.NewMutex(client, "/locks/report", lock.Config{Layout: lock.Both})
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second) // or m.TryLock, which does not wait
	defer cancel()
	hold, err := m.Lock(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // not acquired
	}
	if err != nil {
		return err
	}
	defer hold.Unlock()
	return work(hold.Context())
}

func readWrite(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := lock.RWConfig{Layout: lock.Both} // or Curator, the default, or Kazoo: as the others at this path
	m, err := lock.NewRWMutex(client, "/locks/data", cfg)
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

func permits(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := lock.SemaphoreConfig{Layout: lock.Curator} // or Kazoo; the two count apart, so give each a path
	s, err := lock.NewSemaphore(client, "/pools/gpu", lock.StoredLimit(8), cfg)
	if err != nil {
		return err
	}
	return s.Do(ctx, 1, func(ctx context.Context, hold *lock.Hold) error { return work(ctx) })
}

func lead(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	cfg := elect.Config{Layout: elect.LeaderLatch} // or LeaderSelector, or KazooElection, or Both for these two
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

func queues(ctx context.Context, client *zk.Client) error {
	q, err := queue.New(client, "/mail", queue.Config{})
	if err != nil {
		return err
	}
	defer q.Close(ctx)
	if _, err := q.Put(ctx, queue.Message{Body: []byte("to: ann")}); err != nil {
		return err
	}
	item, err := q.Take(ctx)
	if err != nil {
		return err
	}
	return item.Done(ctx) // or Fail, Return, Reject
}

func meet(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	d, err := barrier.NewDouble(client, "/app/start", 1, barrier.Config{}) // of one party; usually more
	if err != nil {
		return err
	}
	m, err := d.Enter(ctx)
	if err != nil {
		return err
	}
	return errors.Join(work(m.Context()), m.Leave(ctx)) // the others wait for it, also if the work has failed
}

func count(ctx context.Context, client *zk.Client) error {
	cfg := counter.Config{Layout: counter.Long} // DistributedAtomicLong; kazoo's Counter: Text; SharedCount: Int
	visits, err := counter.New(client, "/visits", cfg)
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

func follow(ctx context.Context, client *zk.Client) error {
	tree, err := cache.NewTree(client, "/config", cache.Config{})
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

func join(ctx context.Context, client *zk.Client) error {
	cfg := member.GroupConfig{Layout: member.GroupMember} // kazoo: Party or ShallowParty, whose members have no data
	g, err := member.NewGroup(client, "/workers", cfg)
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

func share(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cfg := member.PartitionerConfig{Split: member.SetPartitioner} // kazoo's; the default moves fewer items
	p, err := member.NewPartitioner(client, "/app/shards", "host-1", []string{"users"}, cfg)
	if err != nil {
		return err
	}
	return p.Run(ctx, func(ctx context.Context, s *member.Share) error { // until ctx ends; then it returns nil
		defer stop() // this program has enough of it; others serve until ctx ends
		return work(ctx)
	})
}

func lease(ctx context.Context, client *zk.Client, work func(context.Context) error) error {
	l, err := member.NewLease(client, "/app/nightly", "host-1", time.Hour, member.LeaseConfig{})
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

func services(ctx context.Context, client *zk.Client) error {
	r, err := discovery.NewRegistry(client, "/services", discovery.Config{})
	if err != nil {
		return err
	}
	reg, err := r.Register(ctx, discovery.Instance{Service: "users", Address: "10.0.0.1", Port: 8080})
	if err != nil {
		return err
	}
	defer reg.Close()
	p, err := r.Provider("users", discovery.ProviderConfig{})
	if err != nil {
		return err
	}
	defer p.Close()
	use, err := p.Pick(ctx)
	if err != nil {
		return err
	}
	log.Print("calls ", use.Instance.URL())
	use.Done(nil)
	return nil
}
