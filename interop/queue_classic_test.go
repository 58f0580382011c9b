package interop_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
	"github.com/seed-a3166700/turnstile/queue/classic"
	"github.com/seed-a3166700/turnstile/zk"
)

// A classicQueue is one of ours.
type classicQueue struct {
	put  func(ctx context.Context, arg, body string) error
	take func(ctx context.Context) (body string, done func(context.Context) error, err error)
}

// A classicKind is a kind of queue of another project, and ours for the same nodes.
type classicKind struct {
	name string // as peers are told
	java bool   // or kazoo
	lock bool
	asks bool               // the peer can take one item and say that there is none
	arg  func(i int) string // the argument of item i
	open func(client *zk.Client, path, locks string) (classicQueue, error)
}

func (k classicKind) String() string {
	if k.lock && k.java {
		return k.name + " with locks"
	}
	return k.name
}

// path returns where the queue of a test lies. Peers call it by its last part.
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

func (k classicKind) tell(p *queuePeer, test, suffix string) string {
	p.t.Helper()
	name, locks := k.label(test)+suffix, k.locks(test)
	if locks == "" {
		locks = "-"
	}
	p.order("open %s %s %s %s", name, k.name, k.path(test), locks)
	return name
}

func none(int) string { return "-" }

// spread is an argument by which the order of the items is not that of putting them.
func spread(i int) int { return i * 7 % 5 }

func takeItems(take func(context.Context) (*classic.Item, error)) func(context.Context) (string, func(context.Context) error, error) {
	return func(ctx context.Context) (string, func(context.Context) error, error) {
		item, err := take(ctx)
		if err != nil {
			return "", nil, err
		}
		return string(item.Body()), item.Done, nil
	}
}

func openSimple(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewSimple(client, path, classic.Config{})
	return classicQueue{
		put: func(ctx context.Context, _, body string) error { return q.Offer(ctx, []byte(body)) },
		take: func(ctx context.Context) (string, func(context.Context) error, error) {
			body, err := q.Take(ctx)
			return string(body), func(context.Context) error { return nil }, err
		},
	}, err
}

func openCurator(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCurator(client, path, classic.Config{LockPath: locks})
	return classicQueue{
		put:  func(ctx context.Context, _, body string) error { return q.Put(ctx, []byte(body)) },
		take: takeItems(q.Take),
	}, err
}

func openPriority(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorPriority(client, path, classic.Config{LockPath: locks})
	return classicQueue{
		put: func(ctx context.Context, arg, body string) error {
			priority, err := strconv.ParseInt(arg, 10, 32)
			if err != nil {
				return err
			}
			return q.Put(ctx, int32(priority), []byte(body))
		},
		take: takeItems(q.Take),
	}, err
}

func openDelay(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorDelay(client, path, classic.Config{LockPath: locks})
	return classicQueue{
		put: func(ctx context.Context, arg, body string) error {
			due, err := strconv.ParseInt(arg, 10, 64)
			if err != nil {
				return err
			}
			return q.Put(ctx, time.UnixMilli(due), []byte(body))
		},
		take: takeItems(q.Take),
	}, err
}

func openID(client *zk.Client, path, locks string) (classicQueue, error) {
	q, err := classic.NewCuratorID(client, path, classic.Config{LockPath: locks})
	return classicQueue{
		put:  func(ctx context.Context, arg, body string) error { return q.Put(ctx, arg, []byte(body)) },
		take: takeItems(q.Take),
	}, err
}

func openKazoo(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewKazoo(client, path, classic.Config{})
	return kazooQueue(q.Put, q.Take), err
}

func openKazooLocking(client *zk.Client, path, _ string) (classicQueue, error) {
	q, err := classic.NewKazooLocking(client, path, classic.Config{})
	return kazooQueue(q.Put, q.Take), err
}

func kazooQueue(put func(context.Context, []byte, int) error, take func(context.Context) (*classic.Item, error)) classicQueue {
	return classicQueue{
		put: func(ctx context.Context, arg, body string) error {
			priority, err := strconv.Atoi(arg)
			if err != nil {
				return err
			}
			return put(ctx, []byte(body), priority)
		},
		take: takeItems(take),
	}
}

func classicKinds() []classicKind {
	began := time.Now()
	priority := func(i int) string { return strconv.Itoa(spread(i) - 2) }
	due := func(i int) string { return strconv.FormatInt(began.UnixMilli()-10+int64(spread(i)), 10) }
	id := func(i int) string { return "id" + strconv.Itoa(i%3) }
	kinds := []classicKind{
		{name: "simple", java: true, asks: true, arg: none, open: openSimple},
		{name: "zookeeper", java: true, asks: true, arg: none, open: openSimple},
		{name: "queue", asks: true, arg: func(i int) string { return strconv.Itoa(100 + spread(i)) }, open: openKazoo},
		{name: "locking", lock: true, asks: true, arg: func(i int) string { return strconv.Itoa(100 + spread(i)) }, open: openKazooLocking},
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

// ordered returns n bodies in the order in which the queue must give them.
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

// bench is where a kind is tested.
type bench struct {
	*testing.T
	kind   classicKind
	client *zk.Client
	peer   *queuePeer
}

func (b *bench) ours(test string) classicQueue {
	b.Helper()
	q, err := b.kind.open(b.client, b.kind.path(test), b.kind.locks(test))
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// TestClassicQueuesBesideTheirOriginals puts and takes the items of one queue with ours and with the original.
func TestClassicQueuesBesideTheirOriginals(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client := classicClient(t, h)
		java, kazoo := javaQueues(t, h), kazooQueues(t, h)
		for _, k := range classicKinds() {
			t.Run(k.String(), func(t *testing.T) {
				b := &bench{T: t, kind: k, client: client, peer: java}
				if !k.java {
					b.peer = kazoo
				}
				b.theyPutAndWeTake()
				b.wePutAndTheyTake()
				b.allTakeEachOnce()
			})
		}
	})
}

func classicClient(t *testing.T, h *host) *zk.Client {
	t.Helper()
	client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr, Timeout: queueSession})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // its server may be gone
	return client
}

func (b *bench) theyPutAndWeTake() {
	b.Helper()
	const n = 20
	name, ours := b.kind.tell(b.peer, "theirs", ""), b.ours("theirs")
	for i := range n {
		b.peer.order("put %s %s item%d", name, b.kind.arg(i), i)
	}
	var got []string
	for range n {
		body, done, err := ours.take(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := done(b.Context()); err != nil {
			b.Fatal(err)
		}
		got = append(got, body)
	}
	if want := b.kind.ordered(n); !slices.Equal(got, want) {
		b.Errorf("we took %q, want %q", got, want)
	}
	if b.kind.asks {
		if answer := b.peer.order("take %s", name); answer != "none" {
			b.Errorf("the peer finds %q, want nothing left", answer)
		}
	}
}

func (b *bench) wePutAndTheyTake() {
	b.Helper()
	const n = 20
	ours := b.ours("ours")
	for i := range n {
		if err := ours.put(b.Context(), b.kind.arg(i), fmt.Sprintf("item%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	name := b.kind.tell(b.peer, "ours", "")
	b.peer.order("consume %s", name)
	var got []string
	for range n {
		got = append(got, b.peer.next(b.T, name))
	}
	b.peer.order("stop %s", name)
	if want := b.kind.ordered(n); !slices.Equal(got, want) {
		b.Errorf("they took %q, want %q", got, want)
	}
}

// allTakeEachOnce has two consumers and a producer of either side on one queue.
func (b *bench) allTakeEachOnce() {
	b.Helper()
	const each = 60
	ours := b.ours("both")
	if err := ours.put(b.Context(), b.kind.arg(0), "first"); err != nil { // ZooKeeper's own queues race for the directory and fail
		b.Fatal(err)
	}
	names := []string{b.kind.tell(b.peer, "both", "-1"), b.kind.tell(b.peer, "both", "-2")}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	got := make(chan string, 4*each)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				body, done, err := ours.take(ctx)
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil {
					b.Error(err)
					return
				}
				if err := done(b.Context()); err != nil {
					b.Error(err)
				}
				got <- "we " + body
			}
		})
	}
	for _, name := range names {
		b.peer.order("consume %s", name)
		wg.Go(func() {
			for {
				select {
				case body := <-b.peer.items(name):
					got <- "they " + body
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Go(func() {
		for i := range each {
			if err := ours.put(b.Context(), b.kind.arg(i), fmt.Sprintf("ours%d", i)); err != nil {
				b.Error(err)
			}
		}
	})
	for i := range each {
		b.peer.order("put %s %s theirs%d", names[0], b.kind.arg(i), i)
	}
	seen, by := map[string]int{}, map[string]int{}
	for range 2*each + 1 {
		select {
		case line := <-got:
			who, body, _ := strings.Cut(line, " ")
			seen[body]++
			by[who]++
		case <-time.After(queuePatience):
			b.Fatalf("only %d of %d items were taken", len(seen), 2*each+1)
		}
	}
	for _, name := range names {
		b.peer.order("stop %s", name)
	}
	cancel()
	wg.Wait()
	close(got)
	for line := range got {
		_, body, _ := strings.Cut(line, " ")
		seen[body]++
	}
	for body, times := range seen {
		if times != 1 {
			b.Errorf("%s was taken %d times", body, times)
		}
	}
	b.Logf("taken by %v", by)
}

// TestElementsOfOneNodeAreReadByCuratorAndUs puts several bodies in one node.
func TestElementsOfOneNodeAreReadByCuratorAndUs(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		q, err := classic.NewCurator(classicClient(t, h), "/multi", classic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		java := javaQueues(t, h)
		java.order("open multi plain /multi -")
		java.order("put multi - one two three")
		item, err := q.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s", item.Elements); got != "[one two three]" {
			t.Errorf("we got %s", got)
		}
		if err := q.PutMulti(t.Context(), []byte("four"), []byte("five")); err != nil {
			t.Fatal(err)
		}
		java.order("consume multi")
		for _, want := range []string{"four", "five"} {
			if got := java.next(t, "multi"); got != want {
				t.Errorf("they got %q, want %q", got, want)
			}
		}
	})
}

// TestRemovalByIDCountsTheSameHereAndThere removes items of the other side by their id.
func TestRemovalByIDCountsTheSameHereAndThere(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		q, err := classic.NewCuratorID(classicClient(t, h), "/ids", classic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		java := javaQueues(t, h)
		java.order("open ids id /ids -")
		for i := range 6 {
			java.order("put ids a/%d body%d", i%2, i)
			if err := q.Put(t.Context(), fmt.Sprintf("b|%d", i%2), fmt.Appendf(nil, "body%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := q.Remove(t.Context(), "a/1"); n != 3 || err != nil {
			t.Errorf("we removed %d, %v, want 3", n, err)
		}
		if answer := java.order("remove ids b|0"); answer != "removed 3" {
			t.Errorf("they say %q, want 3 removed", answer)
		}
		if n, err := q.Len(t.Context()); n != 6 || err != nil {
			t.Errorf("got %d, %v left, want 6", n, err)
		}
	})
}

// holderEnv makes TestHolderOfClassicItems a process that holds items: the server's address.
const holderEnv = "TURNSTILE_CLASSIC_HOLDER"

// TestHolderOfClassicItems is the process that TestItemsOfAKilledConsumerAreDeliveredAgain kills.
func TestHolderOfClassicItems(t *testing.T) {
	t.Parallel()
	addr := os.Getenv(holderEnv)
	if addr == "" {
		t.Skip("it is a process of TestItemsOfAKilledConsumerAreDeliveredAgain")
	}
	client := classicClient(t, &host{addr: addr})
	for _, k := range classicKinds() {
		if !k.lock {
			continue
		}
		q, err := k.open(client, k.path("we-die"), k.locks("we-die"))
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := q.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("holding", body)
	}
	fmt.Println("holding all")
	<-t.Context().Done()
}

func startHolder(t *testing.T, h *host) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, "-test.run=^TestHolderOfClassicItems$")
	cmd.Env = append(os.Environ(), holderEnv+"="+h.addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it is gone
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "holding all" {
			return cmd
		}
	}
	t.Fatal("our own process does not get its items")
	return nil
}

// TestItemsOfAKilledConsumerAreDeliveredAgain kills consumers of either side that hold an item of a queue with locks.
func TestItemsOfAKilledConsumerAreDeliveredAgain(t *testing.T) {
	t.Parallel()
	peer.Need(t, "javac", python, kazooDir, zookeeperJar, curatorJar, lockJar, queueJar, electionJar)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client := classicClient(t, h)
		java, kazoo := javaQueues(t, h), kazooQueues(t, h)
		var kinds []classicKind
		queues := map[string]classicQueue{}
		for _, k := range classicKinds() {
			if !k.lock {
				continue
			}
			kinds = append(kinds, k)
			for _, test := range []string{"they-die", "we-die"} {
				q, err := k.open(client, k.path(test), k.locks(test))
				if err != nil {
					t.Fatal(err)
				}
				if err := q.put(t.Context(), k.arg(0), "precious"); err != nil {
					t.Fatal(err)
				}
				queues[k.label(test)] = q
			}
		}
		victims := map[bool]*queuePeer{true: javaQueues(t, h), false: kazooQueues(t, h)}
		for _, k := range kinds {
			name := k.tell(victims[k.java], "they-die", "")
			victims[k.java].order("hold %s", name)
			if got := victims[k.java].next(t, name); got != "precious" {
				t.Fatalf("%s: the peer got %q", k, got)
			}
		}
		holder := startHolder(t, h)
		for _, v := range victims {
			v.kill()
		}
		_ = holder.Process.Kill() // fails only if it is gone
		for _, k := range kinds {
			body, done, err := queues[k.label("they-die")].take(t.Context())
			if err != nil || body != "precious" {
				t.Fatalf("%s: we got %q, %v", k, body, err)
			}
			if err := done(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range kinds {
			survivor := kazoo
			if k.java {
				survivor = java
			}
			name := k.tell(survivor, "we-die", "")
			survivor.order("consume %s", name)
			if got := nextAgain(t, survivor, name, queues[name], k); got != "precious" {
				t.Errorf("%s: the peer got %q", k, got)
			}
		}
	})
}

// nextAgain puts another item now and then: Curator's consumers look for locks that are gone only when an item comes.
func nextAgain(t *testing.T, p *queuePeer, name string, q classicQueue, k classicKind) string {
	t.Helper()
	limit := time.After(queuePatience)
	for {
		select {
		case body := <-p.items(name):
			if body != "nudge" {
				return body
			}
		case <-time.After(time.Second):
			if err := q.put(t.Context(), k.arg(4), "nudge"); err != nil {
				t.Fatal(err)
			}
		case <-limit:
			t.Fatalf("%s: the item is not delivered again", k)
		}
	}
}
