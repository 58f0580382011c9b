package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// shared are the items that members of both sides share.
var shared = strings.Split("a,b,c,d,e,f,g,h,i,j", ",")

// witness is the parent of a node for each item, which its owner creates and deletes: a second owner at the same time
// finds it there.
const witness = "/witness"

// TestPartitionsAreSharedWithKazoo has a process of each side share items, and lets each come, leave and be killed.
//
// Promise: 20
func TestPartitionsAreSharedWithKazoo(t *testing.T) {
	t.Parallel()
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path = "/partition"
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), witness, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		join := func(ours bool, name string) *queuePeer {
			var p *queuePeer
			if ours {
				p = startQueuePeer(t, "env", workerEnv+"=1", os.Args[0], shareWorker, h.addr, millis(groupSession),
					path)
			} else {
				p = startQueuePeer(t, python, "testdata/share_peer.py", h.addr, millis(groupSession), path)
			}
			p.order(t, "join %s %s", name, strings.Join(shared, ","))
			return p
		}
		owns := func(p *queuePeer, name string, n int) []string {
			return strings.Split(p.order(t, "await %s %d", name, n), ",")
		}
		// A member whose session ended on a busy machine has 5 items for a moment while it gets them back, so it may
		// need more than one look. That no item has two owners at a time the witnesses show.
		both := func(p *queuePeer, a string, q *queuePeer, b string) {
			t.Helper()
			for limit := time.After(barrierPatience); ; {
				all := append(owns(p, a, 5), owns(q, b, 5)...)
				slices.Sort(all)
				if slices.Equal(all, shared) {
					return
				}
				select {
				case <-limit:
					t.Fatalf("together they own %v", all)
				default:
				}
			}
		}
		a := join(true, "a")
		owns(a, "a", 10)
		b := join(false, "b")
		both(a, "a", b, "b")
		b.kill()
		owns(a, "a", 10)
		c := join(false, "c")
		both(a, "a", c, "c")
		a.kill()
		owns(c, "c", 10)
		d := join(true, "d")
		both(c, "c", d, "d")
		d.order(t, "leave d")
		owns(c, "c", 10)
		d.order(t, "join e %s", strings.Join(shared, ","))
		both(c, "c", d, "e")
		c.order(t, "leave c")
		owns(d, "e", 10)
	})
}

// shareWorker is the first argument of our process that shares items.
const shareWorker = "share"

// workShares executes the commands of TestPartitionsAreSharedWithKazoo: see testdata/share_peer.py.
func workShares(args []string) error {
	if len(args) != 3 {
		return errors.New("want SERVERS SESSION_MS PATH")
	}
	ms, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, path := context.Background(), args[2]
	client, err := zk.Open(ctx, zk.Config{Servers: args[0], Timeout: time.Duration(ms) * time.Millisecond})
	if err != nil {
		return err
	}
	defer client.Close()
	members := make(map[string]*sharer)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer := "ok"
		order := strings.Fields(lines.Text())
		switch order[0] {
		case "join":
			members[order[1]], err = joinShares(ctx, client, path, order[1], strings.Split(order[2], ","))
		case "leave":
			err = members[order[1]].leave()
		case "await":
			n, _ := strconv.Atoi(order[2])
			answer = strings.Join(members[order[1]].await(n), ",")
		}
		if err != nil {
			answer = "failed: " + err.Error()
		}
		for _, m := range members {
			if fault := m.fault(); fault != nil {
				answer = "failed: " + fault.Error()
			}
		}
		fmt.Println(answer)
	}
	return nil
}

// sharer is a member of ours.
type sharer struct {
	stop  context.CancelFunc
	ended chan error

	mu      sync.Mutex // guards what follows
	owned   []string
	failed  error
	changed chan struct{}
}

func joinShares(ctx context.Context, client *zk.Client, path, name string, items []string) (*sharer, error) {
	p, err := member.NewPartitioner(client, path, name, items, member.PartitionerConfig{Split: member.SetPartitioner})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &sharer{stop: stop, ended: make(chan error, 1), changed: make(chan struct{})}
	go func() { s.ended <- p.Run(ctx, s.own) }()
	return s, nil
}

// own has the witness of an item for as long as it owns the item.
func (s *sharer) own(ctx context.Context, share *member.Share) error {
	path, sess := witness+"/"+share.Item(), share.Session()
	if err := attempt.Do(ctx, sess, func() error {
		_, err := sess.Create(ctx, path, nil, zk.Ephemeral)
		if errors.Is(err, zk.NodeExists) { // is it ours, of a creation whose reply was lost?
			stat, exists, seen := sess.Exists(ctx, path)
			if seen != nil || exists && stat.EphemeralOwner == sess.ID() {
				return seen
			}
		}
		return err
	}); err != nil {
		if errors.Is(err, zk.NodeExists) {
			s.note(func() { s.failed = fmt.Errorf("%s has another owner", share.Item()) })
		}
		return nil // it has lost the item already
	}
	s.note(func() { s.owned = append(s.owned, share.Item()) })
	<-ctx.Done()
	s.note(func() { s.owned = slices.DeleteFunc(s.owned, func(x string) bool { return x == share.Item() }) })
	ctx = context.WithoutCancel(ctx)
	err := attempt.Do(ctx, sess, func() error { return sess.Delete(ctx, path, -1) })
	if err != nil && !errors.Is(err, zk.NoNode) { // which is how a deletion without a reply looks the next time
		s.note(func() { s.failed = err })
	}
	return nil
}

// note changes what is known of the member, and tells those who wait.
func (s *sharer) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *sharer) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// await returns what the member owns, once that are so many.
func (s *sharer) await(n int) []string {
	for {
		s.mu.Lock()
		owned, failed, changed := slices.Clone(s.owned), s.failed, s.changed
		s.mu.Unlock()
		if len(owned) == n || failed != nil {
			return owned
		}
		<-changed
	}
}

func (s *sharer) leave() error {
	s.stop()
	if err := <-s.ended; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// TestLeasesExcludeThoseOfKazoo has holders of both sides take the same leases.
//
// Promise: 20
func TestLeasesExcludeThoseOfKazoo(t *testing.T) {
	t.Parallel()
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		start := func() *queuePeer {
			return startQueuePeer(t, python, "testdata/share_peer.py", h.addr, millis(groupSession), "/unused")
		}
		for _, count := range []int{0, 2} {
			t.Run(fmt.Sprint(count, " leases"), func(t *testing.T) {
				t.Parallel()
				shareLeases(t, client, start, count)
			})
		}
	})
}

func shareLeases(t *testing.T, client *zk.Client, start func() *queuePeer, count int) {
	t.Helper()
	path := fmt.Sprintf("/leases/of%d", count)
	lease := func(holder string, lasts time.Duration) *member.Lease {
		l, err := member.NewLease(client, path, holder, lasts, member.LeaseConfig{Count: count})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	take := func(l *member.Lease, want error) member.Leased {
		t.Helper()
		got, err := l.Take(t.Context())
		if !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
		return got
	}
	p := start()
	theirs := func(holder string, seconds int, want string) {
		t.Helper()
		if got := p.order(t, "lease %s %s %d %d", path, holder, seconds, count); got != want {
			t.Fatalf("%s: got %s, want %s", holder, got, want)
		}
	}
	const hour = 3600
	for i := 1; i < count; i++ { // others have all leases but one
		take(lease(fmt.Sprint("other", i), time.Hour), nil)
	}
	ours := lease("ours", time.Hour)
	take(ours, nil)
	theirs("theirs", hour, "refused")
	take(ours, nil) // it has it already
	theirs("ours", hour, "leased")
	if err := ours.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	theirs("theirs", hour, "leased")
	take(ours, member.ErrLeased)
	theirs("theirs", 15, "leased") // for a shorter time
	p.kill()
	take(ours, member.ErrLeased) // a killed holder keeps its lease
	p = start()
	for {
		_, err := ours.Take(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, member.ErrLeased) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // a lease ends by the clock, and no event tells
	}
	theirs("theirs", hour, "refused")
	short := lease("ours", time.Second)
	until := take(short, nil).Until
	for {
		got := p.order(t, "lease %s theirs %d %d", path, hour, count)
		if now := time.Now(); got == "leased" && now.Before(until) {
			t.Fatalf("theirs was leased before the end of ours, %v too early", until.Sub(now))
		}
		if got == "leased" {
			break
		}
		time.Sleep(100 * time.Millisecond) // a lease ends by the clock, and no event tells
	}
	take(ours, member.ErrLeased)
}
