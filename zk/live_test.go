package zk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	zookeeper "github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// onBoth runs a test against the embedded server and, where it is installed, Apache ZooKeeper.
func onBoth(t *testing.T, test func(t *testing.T, link *zktest.Link)) {
	t.Helper()
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, zktest.Run(t).Link)
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		test(t, zktest.Proxy(t, zookeeper.ZooKeeper(t, zookeeper.Options{}).ConnectString()))
	})
}

// sure repeats a call until its outcome is known.
func sure(t *testing.T, call func() error) {
	t.Helper()
	for {
		err := call()
		if err == nil || errors.Is(err, zk.NodeExists) {
			return
		}
		if zk.OutcomeOf(err) != zk.Unknown || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// Promise: 8
func TestNoEventOf500WatchesIsLostWhileTheConnectionIsCut(t *testing.T) {
	const watches, rounds = 500, 4
	onBoth(t, func(t *testing.T, link *zktest.Link) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		writer, reader := link.Session(t, time.Minute), link.Session(t, time.Minute)
		path := func(i int) string { return fmt.Sprintf("/n%d", i) }
		final := strconv.Itoa(rounds)
		for i := range watches {
			sure(t, func() error { _, err := writer.Create(ctx, path(i), nil, zk.Persistent); return err })
		}
		var wg sync.WaitGroup
		for i := range watches {
			wg.Go(func() { // a goroutine that misses an event waits until ctx ends
				for {
					data, _, w, err := reader.GetW(ctx, path(i))
					if errors.Is(err, zk.ErrConnectionLost) {
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", path(i), err)
						return
					}
					if string(data) == final {
						w.Close()
						return
					}
					if _, err := w.Next(ctx); err != nil {
						t.Errorf("%s: no event after %q: %v", path(i), data, err)
						return
					}
				}
			})
		}
		for round := range rounds {
			value := []byte(strconv.Itoa(round + 1))
			for i := range watches {
				switch i {
				case 50, 200, 300:
					link.Drop(reader.ID())
				case 100:
					link.Cut(reader.ID())
				case 150:
					link.Heal(reader.ID())
				}
				sure(t, func() error { _, err := writer.Set(ctx, path(i), value, -1); return err })
			}
		}
		wg.Wait()
		link.NoWatches(t)
	})
}

// Promise: 4
func TestCancelledCallsLeaveNoWatchOnTheServer(t *testing.T) {
	onBoth(t, func(t *testing.T, link *zktest.Link) {
		t.Helper()
		s := link.Session(t, 20*time.Second)
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
				defer cancel()
				_, _, w, err := s.ExistsW(ctx, fmt.Sprintf("/%d", i%20))
				if err == nil {
					w.Close()
				}
			})
		}
		wg.Wait()
		link.NoWatches(t)
	})
}

func TestEveryOperationWorksBelowAChroot(t *testing.T) {
	onBoth(t, func(t *testing.T, link *zktest.Link) {
		t.Helper()
		ctx := t.Context()
		outside := link.Session(t, 20*time.Second)
		if _, err := outside.Create(ctx, "/app", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		cfg := link.Config(20 * time.Second)
		cfg.Servers += "/app"
		c, err := zk.Open(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := c.Session(ctx)
		if err != nil {
			t.Fatal(err)
		}
		recursive, err := s.WatchRecursive(ctx, "/")
		if err != nil {
			t.Fatal(err)
		}
		_, _, child, err := s.ChildrenW(ctx, "/")
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Create(ctx, "/a-", []byte("1"), zk.EphemeralSequential)
		if err != nil || a.Path != "/a-0000000000" || a.Stat.EphemeralOwner != s.ID() {
			t.Fatalf("create: %+v, %v", a, err)
		}
		wantEvent(t, recursive, zk.EventCreated, a.Path)
		wantEvent(t, child, zk.EventChildrenChanged, "/")
		if _, ok, err := outside.Exists(ctx, "/app"+a.Path); err != nil || !ok {
			t.Errorf("seen from outside: %t, %v", ok, err)
		}
		if names, err := s.Ephemerals(ctx, "/a"); err != nil || !slices.Equal(names, []string{a.Path}) {
			t.Errorf("ephemerals %v, %v", names, err)
		}
		if n, err := s.DescendantCount(ctx, "/"); err != nil || n != 1 {
			t.Errorf("descendants %d, %v", n, err)
		}
		results, err := s.Multi(ctx,
			zk.CheckOp("/", -1), zk.CreateOp("/m", nil, zk.Persistent), zk.SetOp("/m", []byte("2"), 0))
		if err != nil || len(results) != 3 || results[1].Path != "/m" || results[2].Stat.Version != 1 {
			t.Errorf("multi: %+v, %v", results, err)
		}
		_, err = s.Multi(ctx, zk.DeleteOp("/m", -1), zk.CreateOp(a.Path, nil, zk.Persistent))
		wantFailure(t, err, zk.NodeExists, zk.Refused)
		reads, err := s.MultiRead(ctx, zk.GetOp("/m"), zk.ChildrenOp("/"), zk.GetOp("/none"))
		if err != nil || string(reads[0].Data) != "2" || len(reads[1].Children) != 2 ||
			!errors.Is(reads[2].Err, zk.NoNode) {
			t.Errorf("multiRead: %+v, %v", reads, err)
		}
		if _, err := s.CreateNode(ctx, zk.Node{Path: "/c", Mode: zk.Container, ACL: zk.ReadOnlyACL()}); err != nil {
			t.Errorf("container: %v", err)
		}
		if acl, _, err := s.GetACL(ctx, "/c"); err != nil || !slices.Equal(acl, zk.ReadOnlyACL()) {
			t.Errorf("ACL %v, %v", acl, err)
		}
		if err := s.AddAuth(ctx, zk.Digest("u", "p")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetACL(ctx, "/m", zk.CreatorACL(), -1); err != nil {
			t.Errorf("SetACL: %v", err)
		}
		want := []zk.ACL{{Perms: zk.PermAll, ID: zk.DigestID("u", "p")}}
		if acl, _, err := s.GetACL(ctx, "/m"); err != nil || !slices.Equal(acl, want) {
			t.Errorf("ACL %v, %v; want %v", acl, err, want)
		}
		_, _, err = outside.Get(ctx, "/app/m")
		wantFailure(t, err, zk.NoAuth, zk.Refused)
		if ids, err := s.WhoAmI(ctx); err != nil || !slices.Contains(ids, zk.ID{Scheme: "digest", ID: "u"}) {
			t.Errorf("who am I: %v, %v", ids, err)
		}
		if err := s.Sync(ctx, "/"); err != nil {
			t.Errorf("sync: %v", err)
		}
		if _, _, err := s.Config(ctx); err != nil {
			t.Errorf("config: %v", err)
		}
		if err := s.Delete(ctx, a.Path, 0); err != nil {
			t.Errorf("delete: %v", err)
		}
		recursive.Close()
		link.NoWatches(t)
	})
}

func TestConcurrentRequestsGetTheirOwnAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, link *zktest.Link) {
		t.Helper()
		s := link.Session(t, 20*time.Second)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				ctx, path := t.Context(), fmt.Sprintf("/n%d", i)
				for round := range 20 {
					if _, err := s.Create(ctx, path, []byte(path), zk.Ephemeral); err != nil {
						t.Errorf("create %s in round %d: %v", path, round, err)
						return
					}
					if data, _, err := s.Get(ctx, path); err != nil || string(data) != path {
						t.Errorf("get %s: %q, %v", path, data, err)
					}
					if err := s.Delete(ctx, path, 0); err != nil {
						t.Errorf("delete %s: %v", path, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// Promise: 8
func TestExpiredSessionIsFollowedByANewOne(t *testing.T) {
	onBoth(t, func(t *testing.T, link *zktest.Link) {
		t.Helper()
		c := link.Client(t, 20*time.Second)
		first, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := first.Create(t.Context(), "/mine", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		link.Cut(first.ID()) // or the client takes the session back before it can be closed
		if !link.ExpireSession(first.ID()) {
			t.Fatal("no such session")
		}
		link.Heal()
		wantCause(t, first, zk.ErrExpired)
		second, err := c.Session(t.Context())
		if err != nil || second.ID() == first.ID() {
			t.Fatalf("next session: %v, %v", second, err)
		}
		if _, ok, err := second.Exists(t.Context(), "/mine"); err != nil || ok {
			t.Errorf("ephemeral of the expired session: there %t, %v", ok, err)
		}
	})
}

// Promise: 2
func TestHolderIsToldBeforeTheServerLetsGo(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		watcher := srv.Session(t, time.Minute)
		holder := srv.Session(t, 10*time.Second)
		if _, err := holder.Create(t.Context(), "/held", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := watcher.GetW(t.Context(), "/held")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		srv.HalfOpen(holder.ID())
		wantCause(t, holder, zk.ErrLost)
		told := time.Now()
		wantEvent(t, gone, zk.EventDeleted, "/held")
		if early := time.Since(told); early < time.Second {
			t.Errorf("told only %v before the node went", early)
		}
		srv.Heal()
	}, zktest.Tick(time.Second))
}

// Promise: 2
func TestLostSessionIsClosedNoSoonerThanItsMarginIsOver(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		s := srv.Session(t, 10*time.Second)
		other := srv.Session(t, time.Minute)
		if _, err := s.Create(t.Context(), "/held", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := other.GetW(t.Context(), "/held")
		if err != nil {
			t.Fatal(err)
		}
		srv.Cut(s.ID())
		wantCause(t, s, zk.ErrLost)
		srv.Heal()
		told := time.Now()
		wantEvent(t, gone, zk.EventDeleted, "/held")
		if took := time.Since(told); took < 2500*time.Millisecond || took > 3*time.Second {
			t.Errorf("the ephemeral went %v after its holder was told, want soon after the margin of 2.5s", took)
		}
	})
}

func TestSASLWorksWithServersAsTheyAre(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, cfg zk.Config) {
		t.Helper()
		cfg.SASL = zk.DigestMD5{User: "bob", Password: `se"cr\et`}
		c, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := s.WhoAmI(t.Context()); err != nil || !slices.Contains(ids, zk.ID{Scheme: "sasl", ID: "bob"}) {
			t.Errorf("who am I: %v, %v; want sasl bob", ids, err)
		}
		cfg.SASL = zk.DigestMD5{User: "bob", Password: "guess"}
		guess, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer guess.Close()
		if _, err := guess.Session(t.Context()); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("with a wrong password: %v, want ErrAuthFailed", err)
		}
	}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		users := map[string]string{"bob": `se"cr\et`}
		try(t, zktest.Run(t, zktest.With(func(c *server.Config) { c.SASLUsers = users })).Config(20*time.Second))
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		jaas := filepath.Join(t.TempDir(), "jaas.conf")
		text := `Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="se\"cr\\et"; };`
		if err := os.WriteFile(jaas, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		apache := zookeeper.ZooKeeper(t, zookeeper.Options{
			Keys: map[string]string{
				"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
			},
			Properties: map[string]string{"java.security.auth.login.config": jaas},
		})
		try(t, zk.Config{Servers: apache.ConnectString(), Timeout: 20 * time.Second})
	})
}

// Promise: 8
func TestCloseReturnsNilOnlyIfTheServerHasSaidThatTheSessionIsClosed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fault zktest.Fault
		sure  bool // that the session is closed, and that Close says so
		kept  bool // by the server
	}{
		"nothing happens":           {zktest.Pass, true, false},
		"the request is lost":       {zktest.Refuse, false, true},
		"the answer is lost":        {zktest.DropReply, false, false},
		"the server has no quorum":  {zktest.Answer(zk.NotReadOnly), false, true},
		"the session is gone":       {zktest.Answer(zk.SessionExpired), true, true}, // as far as it can be told
		"the answer comes late":     {zktest.DelayReply(time.Second), true, false},
		"the answer comes too late": {zktest.DelayReply(time.Minute), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				client, err := zk.Open(t.Context(), srv.Config(10*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := client.Session(t.Context()); err != nil {
					t.Fatal(err)
				}
				srv.Control(func(r zktest.Request) zktest.Fault {
					if r.Op == zktest.OpCloseSession {
						return row.fault
					}
					return zktest.Pass
				})
				if err := client.Close(); (err == nil) != row.sure {
					t.Errorf("Close: %v; want nil: %v", err, row.sure)
				}
				if kept := len(srv.Sessions()) > 0; kept != row.kept {
					t.Errorf("the server has the session still: %v, want %v", kept, row.kept)
				}
			})
		})
	}
}
