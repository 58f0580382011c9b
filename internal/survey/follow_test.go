package survey_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

func follow(t *testing.T, client *zk.Client, cfg survey.FollowConfig) *survey.Survey {
	t.Helper()
	s, err := survey.Follow(t.Context(), client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func next(t *testing.T, s *survey.Survey, last *survey.Snapshot, shown ...string) *survey.Snapshot {
	t.Helper()
	got, err := s.Next(t.Context(), last, shown)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// latest returns what the survey has when nothing happens any more.
func latest(t *testing.T, s *survey.Survey) *survey.Snapshot {
	t.Helper()
	time.Sleep(12345 * time.Millisecond) // in a bubble: queues are read after 10 s; when no timer of the server ends
	return next(t, s, nil)
}

// disturb makes and removes nodes of every kind at random.
func disturb(t *testing.T, sess *zk.Session, random *rand.Rand, steps int) {
	t.Helper()
	dirs := []string{"/a", "/a/b", "/c", "/c/d/e", "/sem", "/pool", "/a/sem"}
	names := []string{
		guid + "-lock-", "0f8fad5bd9cb469fa16570867728950e__lock__", guid + "-latch-", "n_", "x", "queue-",
		"6f9619ff8b86d011b42d00c04fc964ff", "leases/" + guid + "-lease-", "locks/" + guid + "-lock-",
	}
	var made []string
	for range steps {
		dir := dirs[random.IntN(len(dirs))]
		var err error
		switch name := names[random.IntN(len(names))]; random.IntN(8) {
		case 0, 1, 2:
			mode := []zk.Mode{zk.EphemeralSequential, zk.PersistentSequential, zk.Ephemeral}[random.IntN(3)]
			path := dir + "/" + name
			if random.IntN(5) == 0 {
				path = dir + "-__lock__/0f8fad5bd9cb469fa16570867728950e__lock__"
			}
			node := zk.Node{Path: path, Data: []byte("data"), Mode: mode}
			parents := zk.Parents{Mode: []zk.Mode{zk.Persistent, zk.Container}[random.IntN(2)]}
			var created zk.Created
			created, err = sess.CreateAll(t.Context(), node, parents)
			made = append(made, created.Path)
		case 3:
			_, err = sess.CreateAll(t.Context(), zk.Node{Path: dir + "-__revoked__"}, zk.Parents{})
		case 4, 5, 6:
			if len(made) > 0 {
				i := random.IntN(len(made))
				err = sess.Delete(t.Context(), made[i], -1)
				made = append(made[:i], made[i+1:]...)
			}
		case 7:
			_, err = sess.DeleteAll(t.Context(), dir)
		}
		if sess.Err() != nil {
			t.Fatal(err)
		}
		if random.IntN(10) == 0 {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		}
	}
}

// Whatever happens, the survey shows in the end what a reading shows.
func TestFollowingShowsWhatAReadingShows(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Pick(40, 1500)) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
				client, sess := srv.Client(t, 20*time.Second), srv.Session(t, 20*time.Second)
				s := follow(t, client, survey.FollowConfig{Config: survey.Config{Root: []string{"/", "/a"}[seed%2]}})
				random := rand.New(rand.NewPCG(seed, 1))
				for range 5 {
					disturb(t, sess, random, 60)
					got := latest(t, s)
					want, err := survey.Read(t.Context(), client, survey.Config{Root: []string{"/", "/a"}[seed%2]})
					if err != nil {
						t.Fatal(err)
					}
					same := got.Listed == want.Listed && reflect.DeepEqual(got.Entries, want.Entries)
					if got.Mode != survey.Live || !same {
						t.Fatalf("%s, %d listed, want %d; got\n%+v\nwant\n%+v",
							got.Mode, got.Listed, want.Listed, got.Entries, want.Entries)
					}
				}
			})
		})
	}
}

// Faults of the connection make it read again.
func TestFollowingSurvivesFaults(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client, sess := srv.Client(t, 20*time.Second), srv.Session(t, 20*time.Second)
		s := follow(t, client, survey.FollowConfig{})
		random, chance := rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
		faults := []zktest.Fault{zktest.Refuse, zktest.DropReply, zktest.CutBefore, zktest.CutAfter}
		for range 10 {
			own, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			srv.Control(func(r zktest.Request) zktest.Fault {
				if n := chance.IntN(40); r.Session == own.ID() && n < len(faults) {
					return faults[n]
				}
				return zktest.Pass
			})
			disturb(t, sess, random, 60)
			time.Sleep(time.Second)
			srv.Control(nil)
			got := latest(t, s)
			want, err := survey.Read(t.Context(), client, survey.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Entries, want.Entries) {
				t.Fatalf("got %s\n%+v\nwant\n%+v", got.Mode, got.Entries, want.Entries)
			}
		}
	})
}

// Too many events end the watch for a minute. What a viewer shows is read each second.
func TestFollowingSamplesWhileThereAreTooManyEvents(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client, sess := srv.Client(t, 20*time.Second), srv.Session(t, 20*time.Second)
		s := follow(t, client, survey.FollowConfig{Events: 10})
		last := next(t, s, nil)
		if last.Mode != survey.Live {
			t.Fatal(last.Mode)
		}
		node := zk.Node{Path: "/busy/" + guid + "-lock-", Mode: zk.EphemeralSequential}
		for range 60 {
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		for last.Mode == survey.Live {
			last = next(t, s, last)
		}
		if last.Mode != survey.Sampled || last.Entries[0].Waiting != 59 {
			t.Fatal(last.Mode, shown(last))
		}
		last = next(t, s, last, "/busy")
		if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for last.Entries[0].Waiting != 60 {
			last = next(t, s, last, "/busy")
		}
		if took := time.Since(began); took > 2*time.Second { // in a bubble
			t.Error("a path that is shown was read after", took)
		}
		for last.Mode == survey.Sampled {
			last = next(t, s, last)
		}
		if last.Mode != survey.Live {
			t.Fatal(last.Mode)
		}
	})
}

// refuseWatches makes the server one before 3.6, which has no recursive watches.
func refuseWatches(srv *zktest.Server) {
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Op == zktest.OpAddWatch {
			return zktest.Answer(zk.Unimplemented)
		}
		return zktest.Pass
	})
}

func TestFollowingSamplesWhereWatchesAreUnknown(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		refuseWatches(srv)
		s := follow(t, srv.Client(t, 20*time.Second), survey.FollowConfig{})
		got := next(t, s, nil)
		if got.Mode != survey.Sampled {
			t.Error(got.Mode)
		}
		wantShown(t, got, want)
	})
}

// Under the next session it tells again whether a server is connected.
func TestFollowingSamplesUnderTheNextSession(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		refuseWatches(srv)
		s := follow(t, srv.Client(t, 20*time.Second), survey.FollowConfig{})
		got := next(t, s, nil)
		began := time.Now()
		for _, id := range srv.Sessions() {
			srv.ExpireSession(id)
		}
		for got.Mode != survey.Cut {
			got = next(t, s, got)
		}
		for got.Mode != survey.Sampled {
			got = next(t, s, got)
		}
		if d := time.Since(began); d > 10*time.Second { // in a bubble
			t.Errorf("it was not connected for %v", d)
		}
	})
}

// A refusal may pass. Until then the survey shows what was; the first reading fails with it.
func TestFollowingContinuesAfterARefusal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		const addWatch = 106
		refuse := func(r zktest.Request) zktest.Fault {
			if r.Code == addWatch {
				return zktest.Answer(zk.NoAuth)
			}
			return zktest.Pass
		}
		client := srv.Client(t, 20*time.Second)
		s := follow(t, client, survey.FollowConfig{})
		next(t, s, nil)
		srv.Control(refuse)
		for _, id := range srv.Sessions() {
			srv.ExpireSession(id)
		}
		time.Sleep(time.Minute)
		if got := next(t, s, nil); got.Mode != survey.Cut {
			t.Errorf("got %s while the servers refuse, want cut", got.Mode)
		}
		if _, err := follow(t, client, survey.FollowConfig{}).Next(t.Context(), nil, nil); !errors.Is(err, zk.NoAuth) {
			t.Errorf("got %v of a new survey, want NoAuth", err)
		}
		srv.Control(nil)
		want := tree(t, srv)
		time.Sleep(time.Minute)
		got := next(t, s, nil)
		if got.Mode != survey.Live {
			t.Errorf("got %s, want live", got.Mode)
		}
		wantShown(t, got, want)
	})
}

// A list that is too large breaks the connection, after which everything is read again.
func TestDirectoryThatIsTooLargeIsListedOnce(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		sess := srv.Session(t, 20*time.Second)
		for i := range 1000 {
			node := zk.Node{Path: fmt.Sprintf("/big/%0100d", i)}
			if _, err := sess.CreateAll(t.Context(), node, zk.Parents{}); err != nil {
				t.Fatal(err)
			}
		}
		cfg := srv.Config(20 * time.Second)
		cfg.MaxFrame = 64 << 10
		client, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		s := follow(t, client, survey.FollowConfig{})
		latest(t, s)
		before := srv.Traffic().Connections
		for range 20 {
			if _, err := sess.Create(t.Context(), "/big/x", nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // in a bubble
			if err := sess.Delete(t.Context(), "/big/x", -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // in a bubble
		}
		got := latest(t, s)
		wantShown(t, got, want)
		if n := srv.Traffic().Connections - before; n != 0 || got.TooLarge.Count != 1 {
			t.Errorf("it has connected %d times; too large: %+v", n, got.TooLarge)
		}
		s.Close()
	})
}

// Viewers cost the servers nothing.
func TestManyViewersCostAsMuchAsOne(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		tree(t, srv)
		client := srv.Client(t, 20*time.Second)
		s := follow(t, client, survey.FollowConfig{})
		latest(t, s)
		requests := 0
		srv.Control(func(r zktest.Request) zktest.Fault {
			if r.Op != zktest.OpPing {
				requests++
			}
			return zktest.Pass
		})
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var last *survey.Snapshot
				var err error
				for err == nil {
					last, err = s.Next(ctx, last, []string{"/leader"})
				}
			})
		}
		group.Wait()
		srv.Control(nil)
		if requests != 0 {
			t.Errorf("%d requests while nothing happened", requests)
		}
	})
}

func TestViewersAreToldThatNoServerIsConnected(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		want := tree(t, srv)
		s := follow(t, srv.Client(t, 20*time.Second), survey.FollowConfig{})
		last := next(t, s, nil)
		srv.Cut()
		if last = next(t, s, last); last.Mode != survey.Cut {
			t.Error(last.Mode)
		}
		wantShown(t, last, want)
		srv.Heal()
		for last.Mode != survey.Live {
			last = next(t, s, last)
		}
		wantShown(t, last, want)
	})
}

func TestClosedSurveyEndsItsViewers(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, 20*time.Second)
		s, err := survey.Follow(t.Context(), client, survey.FollowConfig{})
		if err != nil {
			t.Fatal(err)
		}
		last := next(t, s, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := s.Next(t.Context(), last, nil)
			ended <- err
		}()
		synctest.Wait()
		s.Close()
		s.Close()
		if err := <-ended; !errors.Is(err, survey.ErrClosed) {
			t.Error(err)
		}
		s = follow(t, client, survey.FollowConfig{})
		last = next(t, s, nil)
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			last, err = s.Next(t.Context(), last, nil)
		}
		if !errors.Is(err, zk.ErrClosed) {
			t.Error(err)
		}
	})
}
