package line_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/elect"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// firstRefused is the smallest number with which no contender stays: 2^20 before the last.
const firstRefused = math.MaxInt32 - 1<<20

// room is what the holders of a path share: a writer takes all of it.
const room = 2

// held is a hold of any kind.
type held struct {
	size    int // of what the holders share
	of      interface{ Context() context.Context }
	release func(context.Context) error
}

// take is one contender's acquisition.
type take func(context.Context) (held, error)

// kind is a kind of contender.
type kind struct {
	name string
	dir  string // of the line, below the path
	take func(client *zk.Client, path string) (take, error)
}

func hold(size int) func(*lock.Hold, error) (held, error) {
	return func(h *lock.Hold, err error) (held, error) {
		if err != nil {
			return held{}, err
		}
		return held{size, h, h.UnlockWait}, nil
	}
}

// kinds are all that take a number to have their turn.
func kinds() []kind {
	var all []kind
	add := func(name, dir string, f func(client *zk.Client, path string) (take, error)) {
		all = append(all, kind{name, dir, f})
	}
	for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
		cfg, rw := lock.Config{Layout: layout}, lock.RWConfig{Layout: layout}
		add("Mutex"+layout.String(), "", func(client *zk.Client, path string) (take, error) {
			m, err := lock.NewMutex(client, path, cfg)
			return func(ctx context.Context) (held, error) { return hold(room)(m.Lock(ctx)) }, err
		})
		add("Writer"+layout.String(), "", func(client *zk.Client, path string) (take, error) {
			m, err := lock.NewRWMutex(client, path, rw)
			return func(ctx context.Context) (held, error) { return hold(room)(m.Lock(ctx)) }, err
		})
		add("Either"+layout.String(), "", func(client *zk.Client, path string) (take, error) {
			m, err := lock.NewRWMutex(client, path, rw)
			var n int
			return func(ctx context.Context) (held, error) {
				if n++; n%3 == 0 {
					return hold(room)(m.Lock(ctx))
				}
				return hold(0)(m.RLock(ctx))
			}, err
		})
		add("Set"+layout.String(), "", func(client *zk.Client, path string) (take, error) {
			paths := []string{path + "-free", path}
			if layout == lock.Both { // the first refused, with nodes behind it
				slices.Reverse(paths)
			}
			s, err := lock.NewSet(client, paths, lock.SetConfig{Layout: layout})
			return func(ctx context.Context) (held, error) { return hold(room)(s.Lock(ctx)) }, err
		})
	}
	add("Try", "", func(client *zk.Client, path string) (take, error) {
		m, err := lock.NewMutex(client, path, lock.Config{})
		return func(ctx context.Context) (held, error) { return hold(room)(m.TryLock(ctx)) }, err
	})
	add("Strict", "", func(client *zk.Client, path string) (take, error) {
		m, err := lock.NewMutex(client, path, lock.Config{Handoff: lock.StrictFIFO})
		return func(ctx context.Context) (held, error) { return hold(room)(m.Lock(ctx)) }, err
	})
	add("Delay", "", func(client *zk.Client, path string) (take, error) {
		m, err := lock.NewMutex(client, path, lock.Config{Delay: time.Millisecond})
		return func(ctx context.Context) (held, error) { return hold(room)(m.Lock(ctx)) }, err
	})
	add("Semaphore", "/locks", func(client *zk.Client, path string) (take, error) {
		s, err := lock.NewSemaphore(client, path, lock.AgreedLimit(room), lock.SemaphoreConfig{})
		return func(ctx context.Context) (held, error) { return hold(1)(s.Acquire(ctx, 1)) }, err
	})
	for _, layout := range []elect.Layout{elect.LeaderLatch, elect.LeaderSelector, elect.KazooElection} {
		add(layout.String(), "", func(client *zk.Client, path string) (take, error) {
			c, err := elect.NewCandidate(client, path, "a", elect.Config{Layout: layout})
			return func(ctx context.Context) (held, error) {
				l, err := c.Campaign(ctx)
				if err != nil {
					return held{}, err
				}
				return held{room, l, l.ResignWait}, nil
			}, err
		})
	}
	return all
}

// counters are where the numbers of a path begin: where some are left, where ZooKeeper's stay, and where our server
// counts on.
var counters = []int32{firstRefused - 6, math.MaxInt32 - 2, math.MinInt32, -100}

// at is the path of a kind's contenders whose counter began there.
func (k kind) at(counter int32) string { return fmt.Sprintf("/locks/%s%d", k.name, counter) }

// Promise: 1
func TestNobodyHoldsBehindTheEndOfTheNumbersOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	sess := srv.Session(t, time.Minute)
	create := func(path string) {
		if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	create("/locks")
	for _, k := range kinds() {
		for _, n := range counters {
			create(k.at(n))
			if k.dir != "" {
				create(k.at(n) + k.dir)
			}
			srv.PresetSequence(k.at(n)+k.dir, n)
		}
	}
	create(queuePath)
	create(queuePath + "/waiters")
	srv.PresetSequence(queuePath+"/waiters", math.MaxInt32-2)
	behindTheEnd(t, srv.Addr())
}

// Promise: 1
func TestNobodyHoldsBehindTheEndOfTheNumbersOnZooKeeper(t *testing.T) {
	t.Parallel()
	nodes := []counted{{queuePath, 1}, {queuePath + "/waiters", math.MaxInt32 - 2}}
	for _, k := range kinds() {
		for _, n := range counters {
			nodes = append(nodes, counted{k.at(n), n})
			if k.dir != "" {
				nodes = append(nodes, counted{k.at(n) + k.dir, n})
			}
		}
	}
	behindTheEnd(t, peer.ZooKeeper(t, peer.Options{Data: snapshot(t, nodes)}).ConnectString())
}

// counted is a node and the number of its next sequential child.
type counted struct {
	path    string
	counter int32
}

// snapshot returns a data directory of ZooKeeper 3.8.0 with nodes below /locks. It is made of one with a node /locks/m
// that has counted to 2147483645.
func snapshot(t *testing.T, nodes []counted) string {
	t.Helper()
	const name = "version-2/snapshot.3"
	data, err := os.ReadFile(filepath.Join("testdata/wrap", name))
	if err != nil {
		t.Fatal(err)
	}
	const template = "/locks/m"
	const (
		rest     = 4 + 8 + 60      // no data, the ACL, the Stat
		cversion = 4 + 8 + 4*8 + 4 // in the rest
		end      = 4 + 1           // the path that ends the list of nodes
		seal     = 8 + 4 + 1       // a checksum of all that is ahead of it, and a path
		digest   = 8 + 4 + 8
	)
	at := strings.Index(string(data), template) + len(template)
	record := data[at : at+rest]
	if got := int32(binary.BigEndian.Uint32(record[cversion:])); got != 2147483645 {
		t.Fatalf("%s is at %d, want 2147483645", template, got)
	}
	list, tail := data[:len(data)-end-seal-digest-seal], data[len(data)-end-seal-digest-seal:]
	made := append([]byte(nil), list...)
	for _, n := range nodes {
		made = binary.BigEndian.AppendUint32(made, uint32(len(n.path)))
		made = append(made, n.path...)
		made = append(made, record...)
		binary.BigEndian.PutUint32(made[len(made)-rest+cversion:], uint32(n.counter))
	}
	sealed := func(more, path []byte) {
		made = append(made, more...)
		made = binary.BigEndian.AppendUint64(made, uint64(adler32.Checksum(made)))
		made = append(made, path...)
	}
	sealed(tail[:end], tail[end+8:end+seal])
	sealed(tail[end+seal:end+seal+digest], tail[len(tail)-seal+8:])
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "version-2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), made, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func client(t *testing.T, servers string) *zk.Client {
	t.Helper()
	c, err := zk.Open(t.Context(), zk.Config{Servers: servers, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // nothing of it is left to be lost
	return c
}

// behindTheEnd has contenders of every kind come to paths where numbers end.
func behindTheEnd(t *testing.T, servers string) {
	t.Helper()
	clients := []*zk.Client{client(t, servers), client(t, servers), client(t, servers)}
	t.Run("Queue", func(t *testing.T) {
		t.Parallel()
		consume(t, clients)
	})
	for _, k := range kinds() {
		for _, n := range counters {
			t.Run(fmt.Sprintf("%s/%d", k.name, n), func(t *testing.T) {
				t.Parallel()
				holds := compete(t, clients, k, k.at(n))
				if some := holds > 0; some != (n == counters[0]) {
					t.Errorf("%d holds", holds)
				}
				beginAgain(t, clients[0], k, k.at(n))
			})
		}
	}
}

// queuePath is that of a queue whose line of waiting consumers has come to the end of its numbers.
const queuePath = "/locks/queue"

// consume has consumers wait in a line that goes on behind the end, because it does no harm that two are first there.
func consume(t *testing.T, clients []*zk.Client) {
	t.Helper()
	sess, err := clients[0].Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sess.Set(t.Context(), queuePath, []byte(`{"recipe":"turnstile queue","layout":1}`), -1); err != nil {
		t.Fatal(err)
	}
	const items = 30
	taken := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var consumers sync.WaitGroup
	defer consumers.Wait()
	defer cancel()
	var producer *queue.Queue
	for _, c := range clients {
		q, err := queue.New(c, queuePath, queue.Config{Prefetch: 1})
		if err != nil {
			t.Fatal(err)
		}
		producer = q
		consumers.Go(func() {
			for {
				item, err := q.Take(ctx)
				if err == nil {
					err = item.Done(ctx)
				}
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				taken <- struct{}{}
			}
		})
	}
	for i := range items {
		if _, err := producer.Put(ctx, queue.Message{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-taken:
		case <-ctx.Done():
			t.Fatalf("item %d is not taken", i)
		}
	}
}

// compete has a contender of each client acquire again and again until it is refused, and returns how many holds there
// were.
func compete(t *testing.T, clients []*zk.Client, k kind, path string) int32 {
	t.Helper()
	var inside, holds atomic.Int32
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			take, err := k.take(c, path)
			if err != nil {
				t.Error(err)
				return
			}
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				h, err := take(ctx)
				cancel()
				switch {
				case errors.Is(err, line.ErrWrap):
					want := "delete " + path + k.dir + " once it has no children"
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %q, want it to say %q", err, want)
					}
					return
				case errors.Is(err, lock.ErrHeld):
					<-time.After(5 * time.Millisecond)
					continue
				case errors.Is(err, context.DeadlineExceeded):
					continue
				case err != nil:
					t.Error(err)
					return
				}
				holds.Add(1)
				if n := inside.Add(int32(h.size)); n > room {
					t.Errorf("two holds at a time: %d of %d are taken", n, room)
				}
				select {
				case <-h.of.Context().Done():
					t.Errorf("a hold was lost: %v", context.Cause(h.of.Context()))
				case <-time.After(5 * time.Millisecond):
				}
				inside.Add(-int32(h.size))
				if err := h.release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			t.Error("50 rounds, and not refused")
		})
	}
	all.Wait()
	return holds.Load()
}

// beginAgain does what the error says.
func beginAgain(t *testing.T, c *zk.Client, k kind, path string) {
	t.Helper()
	sess, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{path + "-free", path + k.dir} {
		wantEmpty(t, sess, dir)
	}
	if err := sess.Delete(t.Context(), path+k.dir, -1); err != nil {
		t.Fatal(err)
	}
	take, err := k.take(c, path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := take(t.Context())
	if err != nil {
		t.Fatalf("after the deletion: %v", err)
	}
	if err := h.release(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantEmpty waits until nothing is left at path: removals may go on for a moment.
func wantEmpty(t *testing.T, sess *zk.Session, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		names, _, err := sess.Children(t.Context(), path)
		if len(names) == 0 && (err == nil || errors.Is(err, zk.NoNode)) {
			return
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("left behind at %s: %v, %v", path, names, err)
		}
	}
}

// Who came before the end has a number that says when, whatever comes behind.
//
// Promise: 1, 5
func TestContendersFromBeforeTheEndKeepTheirOrder(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	sess := srv.Session(t, time.Minute)
	clients := []*zk.Client{client(t, srv.Addr()), client(t, srv.Addr()), client(t, srv.Addr())}
	for _, k := range kinds() {
		if k.name == "Try" {
			continue // does not wait
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			path := "/before/" + k.name
			takes := make([]take, len(clients))
			for i, c := range clients {
				var err error
				if takes[i], err = k.take(c, path); err != nil {
					t.Fatal(err)
				}
			}
			holder, err := takes[0](t.Context())
			if err != nil {
				t.Fatal(err)
			}
			nodes := func() []string {
				names, _, err := sess.Children(t.Context(), path+k.dir)
				if err != nil && !errors.Is(err, zk.NoNode) {
					t.Fatal(err)
				}
				return names
			}
			before := len(nodes())
			type result struct {
				held
				err error
			}
			waiter := make(chan result, 1)
			go func() {
				h, err := takes[1](t.Context())
				waiter <- result{h, err}
			}()
			for len(nodes()) == before && len(waiter) == 0 {
				continue
			}
			srv.PresetSequence(path+k.dir, math.MaxInt32-1)
			for range 5 { // some at the end, some behind it
				if _, err := takes[2](t.Context()); !errors.Is(err, line.ErrWrap) {
					t.Errorf("got %v, want ErrWrap", err)
				}
			}
			if err := holder.of.Context().Err(); err != nil {
				t.Errorf("the hold has ended: %v", err)
			}
			if holder.size == room && len(waiter) > 0 {
				t.Error("the waiter is in before the holder is out")
			}
			if err := holder.release(t.Context()); err != nil {
				t.Error(err)
			}
			r := <-waiter
			if r.err != nil {
				t.Fatal(r.err)
			}
			if err := r.release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := takes[2](t.Context()); !errors.Is(err, line.ErrWrap) {
				t.Errorf("got %v, want ErrWrap", err)
			}
			wantEmpty(t, sess, path+k.dir)
		})
	}
}

// A hold that changes its kind keeps its number.
//
// Promise: 1
func TestHoldFromBeforeTheEndChangesItsKind(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	for _, layout := range []lock.Layout{lock.Curator, lock.Kazoo, lock.Both} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			path := "/change/" + layout.String()
			m, err := lock.NewRWMutex(client(t, srv.Addr()), path, lock.RWConfig{Layout: layout})
			if err != nil {
				t.Fatal(err)
			}
			h, err := m.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			srv.PresetSequence(path, math.MaxInt32-1)
			err = errors.Join(m.Downgrade(t.Context(), h), m.Upgrade(t.Context(), h), h.Context().Err(),
				h.UnlockWait(t.Context()))
			if err != nil {
				t.Error(err)
			}
		})
	}
}
