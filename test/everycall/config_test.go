package everycall_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/counter"
	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/fence"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// second drops what a constructor returns besides its error.
func second[T any](_ T, err error) error { return err }

// badConfigs are what constructors refuse: each field of a configuration with what it cannot be, and arguments besides.
func badConfigs(client *zk.Client) map[string]error {
	mutex := func(cfg lock.Config) error { return second(lock.NewMutex(client, path, cfg)) }
	candidate := func(cfg elect.Config) error { return second(elect.NewCandidate(client, path, "id", cfg)) }
	ofQueue := func(cfg queue.Config) error { return second(queue.New(client, path, cfg)) }
	semaphore := func(limit lock.Limit, cfg lock.SemaphoreConfig) error {
		return second(lock.NewSemaphore(client, path, limit, cfg))
	}
	provider := func(cfg discovery.ProviderConfig) error {
		r, err := discovery.NewRegistry(client, path, discovery.Config{})
		if err != nil {
			return nil //nolint:nilerr // it is not the error that is wanted
		}
		return second(r.OpenProvider("web", cfg))
	}
	revoke := func(o lock.RevokeOptions) error { return second(lock.Revoke(context.Background(), client, path, o)) }
	long := strings.Repeat("x", 1<<20)
	return map[string]error{
		"Mutex Retain":             mutex(lock.Config{Retain: -1}),
		"Mutex Retain, StrictFIFO": mutex(lock.Config{Retain: 1, Handoff: lock.StrictFIFO}),
		"Mutex Delay":              mutex(lock.Config{Delay: -1}),
		"Mutex Delay, Retain":      mutex(lock.Config{Delay: 1, Retain: 1}),
		"Mutex Label":              mutex(lock.Config{Label: long}),
		"Mutex Layout":             mutex(lock.Config{Layout: 7}),
		"Mutex Handoff":            mutex(lock.Config{Handoff: lock.Handoff{Count: -1, Time: -1}}),
		"Mutex OnSuspend":          mutex(lock.Config{OnSuspend: 7}),
		"Mutex OnDeadlock":         mutex(lock.Config{OnDeadlock: 7}),
		"Mutex WaitsPath":          mutex(lock.Config{WaitsPath: "waits"}),
		"Mutex Retry, times":       mutex(lock.Config{Retry: lock.Forever(time.Second).Times(-1)}),
		"Mutex Retry, within":      mutex(lock.Config{Retry: lock.Forever(time.Second).Within(-1)}),
		"Mutex Retry, pause":       mutex(lock.Config{Retry: lock.Forever(-1)}),
		"Mutex Retry, backoff":     mutex(lock.Config{Retry: lock.Exponential(time.Second, 1)}),
		"RWMutex Label":            second(lock.NewRWMutex(client, path, lock.RWConfig{Label: "\xff"})),
		"Set without paths":        second(lock.NewSet(client, nil, lock.SetConfig{})),
		"Set OnDeadlock":           second(lock.NewSet(client, []string{path}, lock.SetConfig{OnDeadlock: -1})),
		"Simple Label":             second(lock.NewSimple(client, path, lock.SimpleConfig{Label: long})),
		"Semaphore limit":          semaphore(lock.AgreedLimit(0), lock.SemaphoreConfig{}),
		"Semaphore Layout":         semaphore(lock.AgreedLimit(1), lock.SemaphoreConfig{Layout: lock.Both}),
		"Semaphore Kazoo":          semaphore(lock.AgreedLimit(1), lock.SemaphoreConfig{Layout: lock.Kazoo}),
		"Semaphore own path":       semaphore(lock.WatchedLimit(path), lock.SemaphoreConfig{}),
		"Revoke Grace":             revoke(lock.RevokeOptions{Grace: -1}),
		"Revoke Reason":            revoke(lock.RevokeOptions{Reason: long}),

		"Candidate id":         second(elect.NewCandidate(client, path, "a\nb", elect.Config{})),
		"Candidate Layout":     candidate(elect.Config{Layout: 7}),
		"Candidate Delay":      candidate(elect.Config{Delay: -1}),
		"Candidate Delay, LES": candidate(elect.Config{Delay: 1, Layout: elect.LeaderElectionSupport}),
		"Candidate OnDeadlock": candidate(elect.Config{OnDeadlock: 7}),
		"Candidate WaitsPath":  candidate(elect.Config{WaitsPath: "/a/"}),
		"Candidate Retry":      candidate(elect.Config{Retry: lock.Forever(-1)}),
		"Candidate OnRevoke, LES": candidate(elect.Config{
			Layout:   elect.LeaderElectionSupport,
			OnRevoke: func(context.Context, elect.Revocation) bool { return true },
		}),

		"Lease holder": second(member.NewLease(client, path, long, time.Second, member.LeaseConfig{})),
		"Lease time":   second(member.NewLease(client, path, "a", time.Millisecond, member.LeaseConfig{})),
		"Lease Count":  second(member.NewLease(client, path, "a", time.Second, member.LeaseConfig{Count: -1})),
		"Group Layout": second(member.NewGroup(client, path, member.GroupConfig{Layout: 7})),
		"Node Mode":    second(member.OpenNode(client, path, nil, member.NodeConfig{Mode: 77})),
		"Node TTL":     second(member.OpenNode(client, path, nil, member.NodeConfig{TTL: time.Hour})),

		"Barrier Label": second(barrier.NewBarrier(client, path, barrier.Config{Label: long})),
		"Double":        second(barrier.NewDouble(client, path, 0, barrier.Config{})),
		"Rounds OnLoss": second(barrier.NewRounds(client, path, barrier.RoundsConfig{OnLoss: 7})),

		"Queue MaxItems":     ofQueue(queue.Config{MaxItems: -1}),
		"Queue WaitWhenFull": ofQueue(queue.Config{WaitWhenFull: true}),
		"Queue MaxPacket":    ofQueue(queue.Config{MaxPacket: 1}),
		"Queue Linger":       ofQueue(queue.Config{Linger: -1}),
		"Queue MaxDead":      ofQueue(queue.Config{MaxDead: -1}),
		"Queue Timeout":      ofQueue(queue.Config{Timeout: -1}),
		"Queue Prefetch":     ofQueue(queue.Config{Prefetch: 1 << 30}),
		"classic MaxPacket":  second(classic.NewSimple(client, path, classic.Config{MaxPacket: 1})),

		"Counter Layout":      second(counter.New(client, path, counter.Config{Layout: 7})),
		"Sequence":            second(counter.NewSequence(client, path, counter.SequenceConfig{Block: -1})),
		"Tree MaxDepth":       second(cache.OpenTree(client, path, cache.Config{MaxDepth: -1})),
		"Provider Strategy":   provider(discovery.ProviderConfig{Strategy: 77}),
		"Provider Ejection":   provider(discovery.ProviderConfig{Ejection: discovery.Ejection{For: -1}}),
		"Table dialect":       second(fence.NewTable(77, "t")),
		"Table name":          second(fence.NewTable(fence.SQLite, "t;")),
		"fence.Node's path":   second(fence.NewNode("a", nil)),
		"fence.Node's rights": second(fence.NewNode("/a", make([]zk.ACL, 1<<16))),
	}
}

// noFunctions are the calls that run a function, without one.
func noFunctions(t *testing.T, client *zk.Client) map[string]error {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	m, err := lock.NewMutex(client, path, lock.Config{})
	must(err)
	rw, err := lock.NewRWMutex(client, path, lock.RWConfig{})
	must(err)
	set, err := lock.NewSet(client, []string{path}, lock.SetConfig{})
	must(err)
	semaphore, err := lock.NewSemaphore(client, path+"s", lock.AgreedLimit(1), lock.SemaphoreConfig{})
	must(err)
	simple, err := lock.NewSimple(client, path, lock.SimpleConfig{})
	must(err)
	candidate, err := elect.NewCandidate(client, path, "", elect.Config{})
	must(err)
	q, err := queue.New(client, path, queue.Config{})
	must(err)
	old, err := classic.NewKazoo(client, path, classic.Config{})
	must(err)
	partitioner, err := member.NewPartitioner(client, path, "a", []string{"x"}, member.PartitionerConfig{})
	must(err)
	table, err := fence.NewTable(fence.SQLite, "t")
	must(err)
	return map[string]error{
		"Mutex.Do":        m.Do(ctx, nil),
		"RWMutex.Do":      rw.Do(ctx, nil),
		"RWMutex.RDo":     rw.RDo(ctx, nil),
		"Set.Do":          set.Do(ctx, nil),
		"Semaphore.Do":    semaphore.Do(ctx, 1, nil),
		"Simple.Do":       simple.Do(ctx, nil),
		"Candidate.Run":   candidate.Run(ctx, nil),
		"Queue.Consume":   q.Consume(ctx, 1, nil),
		"classic.Consume": old.Consume(ctx, nil),
		"Partitioner.Run": partitioner.Run(ctx, nil),
		"Gate.Do":         fence.NewGate(nil).Do(ctx, "r", 1, nil),
		"File.Do":         fence.NewFile(t.TempDir()+"/f").Do(ctx, 1, nil),
		"Table.Do":        table.Do(ctx, nil, "r", 1, nil),
	}
}

func TestFunctionsThatAreNilAreRefusedBeforeAnythingIsDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, err := range noFunctions(t, w.Client(t, timeout)) {
			if !errors.Is(err, zk.BadArguments) || !strings.Contains(err.Error(), "is nil") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if err := wantNone(w); err != nil {
			t.Error(err)
		}
	})
}

func TestBadConfigurationsWrapBadArguments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, err := range badConfigs(w.Client(t, timeout)) {
			if !errors.Is(err, zk.BadArguments) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
