package lock_test

// Deadlocks.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/waiter"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// A nestable takes one kind of hold at a path.
type nestable struct {
	name string
	take func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error)
}

func nestables() []nestable {
	return []nestable{
		{"mutex", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			m, err := lock.NewMutex(c, path, cfg)
			if err != nil {
				return nil, err
			}
			return m.Lock(ctx)
		}},
		{"strict", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			cfg.Handoff = lock.StrictFIFO
			m, err := lock.NewMutex(c, path, cfg)
			if err != nil {
				return nil, err
			}
			return m.Lock(ctx)
		}},
		{"writer", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			m, err := lock.NewRWMutex(c, path, lock.RWConfig{OnDeadlock: cfg.OnDeadlock, Hooks: cfg.Hooks})
			if err != nil {
				return nil, err
			}
			return m.Lock(ctx)
		}},
		{"set", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			s, err := lock.NewSet(c, []string{"/free" + path, path},
				lock.SetConfig{OnDeadlock: cfg.OnDeadlock, Hooks: cfg.Hooks})
			if err != nil {
				return nil, err
			}
			return s.Lock(ctx)
		}},
		{"semaphore", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			s, err := lock.NewSemaphore(c, path, lock.AgreedLimit(3),
				lock.SemaphoreConfig{OnDeadlock: cfg.OnDeadlock, Hooks: cfg.Hooks})
			if err != nil {
				return nil, err
			}
			return s.Acquire(ctx, 2)
		}},
		{"simple", func(ctx context.Context, c *zk.Client, path string, cfg lock.Config) (*lock.Hold, error) {
			s, err := lock.NewSimple(c, path, lock.SimpleConfig{OnDeadlock: cfg.OnDeadlock, Hooks: cfg.Hooks})
			if err != nil {
				return nil, err
			}
			return s.Lock(ctx)
		}},
	}
}

// Three processes, each of which waits for what the next one holds: one of them fails, the last that came, and the
// others go on.
func TestDeadlockOverThreeProcessesEnds(t *testing.T) {
	t.Parallel()
	for _, l := range nestables() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			srv := zktest.Run(t)
			told := make(chan lock.Event, 10)
			cfg := lock.Config{OnDeadlock: lock.FailWait, Hooks: lock.Hooks{Deadlock: func(e lock.Event) { told <- e }}}
			const n = 3
			results := make([]chan error, n)
			holds := make([]*lock.Hold, n)
			clients := make([]*zk.Client, n)
			failed := make(chan int, n)
			for i := range n {
				clients[i] = srv.Client(t, time.Minute)
				h, err := l.take(t.Context(), clients[i], fmt.Sprintf("/l%d", i), cfg)
				if err != nil {
					t.Fatal(err)
				}
				holds[i] = h
			}
			for i := range n {
				results[i] = make(chan error, 1)
				go func() {
					h, err := l.take(holds[i].Context(), clients[i], fmt.Sprintf("/l%d", (i+1)%n), cfg)
					if err == nil {
						err = h.Unlock()
					} else {
						failed <- i
					}
					results[i] <- err
				}()
				if l.name != "simple" { // it has no line, in which one would come last
					waiter.Await(t, clients[i], fmt.Sprintf("/l%d", (i+1)%n))
				}
			}
			victim := n - 1
			if l.name == "simple" {
				victim = <-failed
			}
			err := <-results[victim]
			var d *lock.DeadlockError
			if !errors.As(err, &d) || !errors.Is(err, lock.ErrDeadlock) {
				t.Fatalf("got %v", err)
			}
			for i, s := range d.Steps {
				waitsFor := (victim + 1 + i) % n
				if len(d.Steps) != n || !strings.HasSuffix(s.Path, fmt.Sprintf("/l%d", waitsFor)) ||
					s.Token != holds[waitsFor].Token() {
					t.Errorf("%+v", d.Steps)
				}
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("/l%d (token ", (victim+1)%n)) {
				t.Error(err)
			}
			for i := range n - 1 { // each that gives its hold up lets the one before go on
				at := (victim - i + n) % n
				if err := holds[at].Unlock(); err != nil {
					t.Error(err)
				}
				if err := <-results[(at-1+n)%n]; err != nil {
					t.Error(err)
				}
			}
			e := <-told
			if !errors.Is(e.Err, lock.ErrDeadlock) || !strings.HasPrefix(e.Path, "/") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A call inside of its own hold, without Reenter, can never end. It is found without the server.
func TestDeadlockOfOneProcessIsFoundWithoutTheServer(t *testing.T) {
	t.Parallel()
	link := zktest.Run(t)
	client := link.Client(t, 10*time.Second)
	m, err := lock.NewMutex(client, "/a", lock.Config{OnDeadlock: lock.FailWait})
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link.Control(func(r zktest.Request) zktest.Fault {
		if strings.HasPrefix(r.Path, lock.DefaultWaitsPath) {
			return zktest.Answer(zk.NoAuth)
		}
		return zktest.Pass
	})
	_, err = m.Lock(h.Context())
	var d *lock.DeadlockError
	if !errors.As(err, &d) || len(d.Steps) != 1 || d.Steps[0].Path != "/a" || d.Steps[0].Token != h.Token() {
		t.Fatalf("got %v", err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}

// Readers and writers: each reads what the other one wants to write.
func TestDeadlockOfReadersEnds(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	one, two := rwPair(t, srv.Client(t, time.Minute)), rwPair(t, srv.Client(t, time.Minute))
	h1, err := one[0].RLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h2, err := two[1].RLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 2)
	go func() {
		_, err := one[1].Lock(h1.Context())
		_ = h1.Unlock()
		results <- err
	}()
	go func() {
		_, err := two[0].Lock(h2.Context())
		_ = h2.Unlock()
		results <- err
	}()
	first, second := <-results, <-results
	if errors.Is(first, lock.ErrDeadlock) == errors.Is(second, lock.ErrDeadlock) || first == nil == (second == nil) {
		t.Errorf("got %v and %v, want one error", first, second)
	}
}

func rwPair(t *testing.T, client *zk.Client) (pair [2]*lock.RWMutex) {
	t.Helper()
	for i := range pair {
		m, err := lock.NewRWMutex(client, fmt.Sprint("/rw", i), lock.RWConfig{OnDeadlock: lock.FailWait})
		if err != nil {
			t.Fatal(err)
		}
		pair[i] = m
	}
	return pair
}

// With ReportDeadlock all members are told, and wait on until one of them gives up; Deadlocks shows it meanwhile.
// Nothing is left when the last wait has ended.
func TestReportedDeadlockIsShownWhileItLasts(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	var holds [2]*lock.Hold
	var locks [2][2]*lock.Mutex
	told := make(chan lock.Event, 10)
	for i := range holds {
		client := srv.Client(t, time.Minute)
		for j := range locks[i] {
			m, err := lock.NewMutex(client, fmt.Sprint("/l", j), lock.Config{Hooks: lock.Hooks{
				Deadlock: func(e lock.Event) { told <- e },
			}})
			if err != nil {
				t.Fatal(err)
			}
			locks[i][j] = m
		}
		h, err := locks[i][i].Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds[i] = h
	}
	results := make(chan error, 2)
	for i := range holds {
		go func() {
			h, err := locks[i][1-i].Lock(holds[i].Context())
			if err == nil {
				err = h.Unlock()
			}
			results <- err
		}()
	}
	paths := map[string]bool{}
	for range 2 {
		e := <-told
		var d *lock.DeadlockError
		if !errors.As(e.Err, &d) || len(d.Steps) != 2 || e.ID == 0 || e.Since.IsZero() || e.Kind != lock.Exclusive {
			t.Errorf("%+v", e)
		}
		paths[e.Path] = true
	}
	if !paths["/l0"] || !paths["/l1"] {
		t.Error(paths)
	}
	watcher := srv.Client(t, time.Minute)
	found, err := lock.Deadlocks(t.Context(), watcher, "")
	if err != nil || len(found) != 1 || !found[0].Confirmed || len(found[0].Steps) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	nested, err := lock.NestedWaits(t.Context(), watcher, "")
	if err != nil || len(nested) != 2 {
		t.Fatalf("%+v, %v", nested, err)
	}
	for _, w := range nested {
		i := slices.IndexFunc(holds[:], func(h *lock.Hold) bool { return h.Token() == w.Inside[0].Token })
		if i < 0 || w.Paths[0] != fmt.Sprintf("/l%d", 1-i) || w.Inside[0].Paths[0] != fmt.Sprintf("/l%d", i) ||
			w.Session != holds[i].Session().ID() {
			t.Errorf("%+v", w)
		}
		line, err := lock.Inspect(t.Context(), watcher, w.Paths[0])
		if err != nil || len(line) != 2 || line[1].Token != w.Token || w.Inside[0].Of(line[0]) {
			t.Errorf("%+v, %v", line, err)
		}
		line, err = lock.Inspect(t.Context(), watcher, w.Inside[0].Paths[0])
		if err != nil || !w.Inside[0].Of(line[0]) {
			t.Errorf("%+v, %v", line, err)
		}
	}
	if err := holds[0].Unlock(); err != nil { // ends the wait inside of it, and lets the other one go on
		t.Error(err)
	}
	for range 2 {
		if err := <-results; err != nil && !errors.Is(err, lock.ErrUnlocked) {
			t.Error(err)
		}
	}
	if err := holds[1].Unlock(); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("told again: %+v", <-told)
	}
	srv.NoNodes(t, lock.DefaultWaitsPath)
	srv.NoWatches(t)
}

// What costs nothing: a wait outside of holds, a short one inside of a hold, and a long one with IgnoreDeadlock.
func TestOrdinaryWaitsTellNobody(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		srv.Control(func(r zktest.Request) zktest.Fault {
			if strings.HasPrefix(r.Path, "/turnstile") {
				t.Errorf("request %+v", r)
			}
			return zktest.Pass
		})
		client, other := srv.Client(t, time.Minute), srv.Client(t, time.Minute)
		outside := mustMutex(t, other, "/b", lock.Config{})
		ignored := mustMutex(t, client, "/b", lock.Config{OnDeadlock: lock.IgnoreDeadlock})
		short := mustMutex(t, client, "/b", lock.Config{})
		h, err := mustMutex(t, client, "/a", lock.Config{}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		blocker, err := outside.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, wait := range []struct {
			in   func() context.Context
			m    *lock.Mutex
			time time.Duration
		}{
			{t.Context, outside, 300 * time.Millisecond},
			{h.Context, ignored, 300 * time.Millisecond},
			{h.Context, short, 20 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(wait.in(), wait.time)
			if _, err := wait.m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		if err := errors.Join(blocker.Unlock(), h.Unlock()); err != nil {
			t.Error(err)
		}
	})
}

func mustMutex(t *testing.T, client *zk.Client, path string, cfg lock.Config) *lock.Mutex {
	t.Helper()
	m, err := lock.NewMutex(client, path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Records that others have written, with rubbish, in another's name or far too long, do no harm, and count for nothing.
func TestForeignRecordsOfWaitsCountForNothing(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	client := srv.Client(t, time.Minute)
	told := make(chan lock.Event, 1)
	cfg := lock.Config{OnDeadlock: lock.FailWait, Hooks: lock.Hooks{Deadlock: func(e lock.Event) { told <- e }}}
	a, b := mustMutex(t, client, "/a", cfg), mustMutex(t, srv.Client(t, time.Minute), "/b", lock.Config{})
	h, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	blocker, err := b.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stranger := srv.Client(t, time.Minute)
	sess, err := stranger.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("__0x%x-__", uint64(sess.ID())) // the stranger's own, so that the name is right
	// It says that who has /b waits for /a.
	lie := fmt.Sprintf(`{"waits":[null,{"id":1,"paths":["/a"],"czxid":99,"kind":"exclusive","holds":[`+
		`{"paths":["/b"],"token":%d,"kind":"exclusive"}]}],"confirmed":["x"]}`, blocker.Token())
	for name, data := range map[string]string{
		"__0x1-__": lie, "__0xffffffffffffffff-__": lie, "rubbish": lie, "__0x2-00__": "{", "__0x3__": `{"waits":7}`,
		"__0x4-__": "", "__0x5-__": strings.Repeat("[", 100_000),
		own: `{"waits":[{"paths":[]},{"id":2,"paths":["a"]},{"id":3,"paths":["/a"],"holds":[{"paths":null}]}]}`,
	} {
		_, err := stranger.CreateAll(t.Context(), zk.Node{
			Path: lock.DefaultWaitsPath + "/" + name, Data: []byte(data), Mode: zk.Ephemeral,
		}, zk.Parents{})
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(h.Context(), time.Second)
	defer cancel()
	if _, err := mustMutex(t, client, "/b", cfg).Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if found, err := lock.Deadlocks(t.Context(), client, ""); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	list, err := lock.NestedWaits(t.Context(), client, "")
	ours, serr := client.Session(t.Context())
	if err := errors.Join(err, serr); err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		if w.Session != ours.ID() { // ours has ended, but its record goes in the background
			t.Errorf("%+v", w)
		}
	}
	if len(told) > 0 {
		t.Errorf("told: %+v", <-told)
	}
}

// A client that is cut off before it has confirmed keeps the deadlock from being certain, and one that comes back ends
// it.
func TestDeadlockIsNotCertainWhileAMemberIsCutOff(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	clients := [2]*zk.Client{srv.Client(t, 20*time.Second), srv.Client(t, 20*time.Second)}
	cfg := lock.Config{OnDeadlock: lock.FailWait}
	var holds [2]*lock.Hold
	for i, c := range clients {
		h, err := mustMutex(t, c, fmt.Sprint("/l", i), cfg).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holds[i] = h
	}
	second := holds[1].Session().ID()
	cut := make(chan struct{})
	var once sync.Once
	var tries atomic.Int32
	srv.Control(func(r zktest.Request) zktest.Fault { // its first record is all that others learn of it
		if r.Session == second && r.Op == zktest.OpSetData && strings.HasPrefix(r.Path, lock.DefaultWaitsPath+"/__0x") {
			if tries.Add(1) > 1 { // the first one finds no node to set, and makes it
				once.Do(func() { close(cut) })
				return zktest.Answer(zk.NoAuth)
			}
		}
		return zktest.Pass
	})
	results := make(chan error, 2)
	for i, c := range clients {
		go func() {
			_, err := mustMutex(t, c, fmt.Sprint("/l", 1-i), cfg).Lock(holds[i].Context())
			if err != nil {
				err = errors.Join(err, holds[i].Unlock())
			}
			results <- err
		}()
	}
	<-cut
	watcher := srv.Client(t, 20*time.Second)
	for range 20 {
		found, err := lock.Deadlocks(t.Context(), watcher, "")
		if err != nil || len(found) > 1 || len(found) == 1 && found[0].Confirmed {
			t.Fatalf("%+v, %v", found, err)
		}
		time.Sleep(20 * time.Millisecond) // real: a server is asked
	}
	srv.Control(nil)
	first, last := <-results, <-results
	if !errors.Is(errors.Join(first, last), lock.ErrDeadlock) || first != nil && last != nil {
		t.Errorf("got %v and %v, want one deadlock", first, last)
	}
}

// A client that may not tell others of its waits says so, and the log has each deadlock.
func TestLogHearsOfDeadlocksAndOfWaitsThatMayNotBeTold(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	said := make(chan string, 100)
	log := slog.New(sayer{slog.DiscardHandler, said})
	client, err := zk.Open(t.Context(), zk.Config{Servers: srv.Addr(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	a := mustMutex(t, client, "/a", lock.Config{})
	h, err := a.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.Control(func(r zktest.Request) zktest.Fault {
		if strings.HasPrefix(r.Path, lock.DefaultWaitsPath) {
			return zktest.Answer(zk.NoAuth)
		}
		return zktest.Pass
	})
	ctx, cancel := context.WithCancel(h.Context())
	waited := make(chan error, 1)
	go func() {
		_, err := a.Lock(ctx) // inside of its own hold: that is found without others
		waited <- err
	}()
	for _, want := range []string{"locks wait for each other", "deadlocks with other clients are not found"} {
		for text := ""; text != want; {
			select {
			case text = <-said:
			case <-time.After(30 * time.Second): // real: only a failure waits that long
				t.Fatalf("the log does not say: %s", want)
			}
		}
	}
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := h.Unlock(); err != nil {
		t.Error(err)
	}
}

// A sayer passes on what warnings say.
type sayer struct {
	slog.Handler
	said chan<- string
}

func (s sayer) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (s sayer) Handle(_ context.Context, r slog.Record) error {
	s.said <- r.Message
	return nil
}

// What looks for deadlocks may be waiting to tell others of a wait that is new when its client is closed.
func TestSearchForDeadlocksEndsWithItsClient(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		take := func(ctx context.Context, c *zk.Client, path string) (*lock.Hold, error) {
			m, err := lock.NewMutex(c, path, lock.Config{OnDeadlock: lock.FailWait})
			if err != nil {
				return nil, err
			}
			return m.Lock(ctx)
		}
		ours, err := zk.Open(t.Context(), srv.Config(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		hold, err := take(t.Context(), ours, "/held")
		if err != nil {
			t.Fatal(err)
		}
		others := srv.Client(t, time.Minute)
		var waiters sync.WaitGroup
		for _, path := range []string{"/a", "/b"} {
			if _, err := take(t.Context(), others, path); err != nil {
				t.Fatal(err)
			}
			waiters.Go(func() {
				if _, err := take(hold.Context(), ours, path); err == nil {
					t.Error("got a lock that another client holds")
				}
			})
			time.Sleep(10 * time.Millisecond) // in a bubble
		}
		time.Sleep(195 * time.Millisecond) // in a bubble: the first wait is told to others, the second is about to be
		_ = ours.Close()
		waiters.Wait()
	})
}

// The reply to the creation of a record is lost while the wait ends.
func TestRecordOfAWaitGoesAfterALostReply(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, sess := srv.Client(t, 20*time.Second), srv.Session(t, 20*time.Second)
		held, err := mustMutex(t, c, "/a", lock.Config{}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := mustMutex(t, srv.Client(t, 20*time.Second), "/b", lock.Config{}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(held.Context())
		lost := false
		srv.Control(func(r zktest.Request) zktest.Fault {
			if lost || r.Op != zktest.OpCreate || !strings.HasPrefix(r.Path, "/turnstile/waits/") {
				return zktest.Pass
			}
			lost = true
			cancel()
			return zktest.DropReply
		})
		if _, err := mustMutex(t, c, "/b", lock.Config{}).Lock(ctx); !errors.Is(err, context.Canceled) || !lost {
			t.Fatalf("got %v, and a reply was lost: %v", err, lost)
		}
		time.Sleep(time.Minute)
		names, _, err := sess.Children(t.Context(), "/turnstile/waits") // which go, too, when they are empty for long
		if err != nil && !errors.Is(err, zk.NoNode) || len(names) > 0 {
			t.Errorf("got %q, %v, and nobody waits", names, err)
		}
		if err := errors.Join(held.Unlock(), wanted.Unlock()); err != nil {
			t.Error(err)
		}
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}
