package attempt_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// inEmptyWorld is inWorld without a pool of receipts.
func inEmptyWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, zk.Persistent, test)
}

func TestFenceNeedsNoRight(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		_, err := w.session().SetACL(t.Context(), "/", zk.ReadOnlyACL(), -1)
		must(t, err)
		b := w.session().Batch()
		passed := attempt.Fence(b)
		b.Send()
		must(t, passed(t.Context()))
	})
}

// A server that refuses by itself has not waited for the requests ahead of the fence.
func TestFenceTakesNoOtherAnswer(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		for _, code := range []zk.Code{zk.NoAuth, zk.ThrottledOp} {
			w.Control(func(r zktest.Request) zktest.Fault {
				if r.Op == zktest.OpDelete {
					return zktest.Answer(code)
				}
				return zktest.Pass
			})
			b := w.session().Batch()
			passed := attempt.Fence(b)
			b.Send()
			if err := passed(t.Context()); !errors.Is(err, code) {
				t.Errorf("got %v, want %v", err, code)
			}
		}
	})
}

func TestMarkedNamesAreRefusedAsPaths(t *testing.T) {
	t.Parallel()
	for path, refused := range map[string]bool{
		"/a/" + attempt.Mark("receipts"):        true,
		"/a/" + attempt.Mark("receipts") + "/b": true,
		attempt.Beside("/a/b", "delay"):         true,
		attempt.Beside("/a/b", "delay") + "/c":  true,
		"/a/__init":                             false,
		"/a/b__":                                false,
		"/a/a__b__":                             false,
		"/a-b":                                  false,
	} {
		if err := attempt.PathArgs("x", path, nil); (err != nil) != refused {
			t.Errorf("%s: got %v, want it refused: %v", path, err, refused)
		}
	}
}

func TestParentsThatLastArePersistentAndOthersContainers(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		const container = 19
		for _, x := range []struct {
			path string
			dirs attempt.Dirs
			want bool
		}{
			{"/a/b", attempt.Dirs{}, true},
			{"/c/d", attempt.Dirs{Keep: attempt.Forever}, false},
			{"/e/f", attempt.Dirs{ACL: zk.OpenACL()}, false},
		} {
			got := false
			w.Control(func(r zktest.Request) zktest.Fault {
				got = got || r.Code == container
				return zktest.Pass
			})
			must(t, x.dirs.Make(t.Context(), w.session(), x.path))
			if got != x.want {
				t.Errorf("%s: got containers %v, want %v", x.path, got, x.want)
			}
		}
	})
}

func TestWiderListOnTheWayIsRefusedAndNamed(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		cfg := w.Config(timeout)
		cfg.Auth = []zk.Auth{zk.Digest("me", "secret")}
		client, err := zk.Open(t.Context(), cfg)
		must(t, err)
		defer func() { must(t, client.Close()) }()
		sess, err := client.Session(t.Context())
		must(t, err)
		mine := zk.CreatorACL()
		create := func(path string, acl []zk.ACL) {
			_, err := sess.CreateNode(t.Context(), zk.Node{Path: path, ACL: acl})
			must(t, err)
		}
		create("/open", nil)
		create("/open/mine", mine)
		create("/mine", mine)
		create("/mine/readable", append(zk.ReadOnlyACL(), mine...))
		create("/shared", []zk.ACL{mine[0], {Perms: zk.PermAll, ID: zk.DigestID("other", "x")}})
		for path, wide := range map[string]string{
			"/open":                "/open",
			"/open/mine/new":       "/open",
			"/mine/new":            "",
			"/mine/readable":       "/mine/readable",
			"/mine/readable/below": "",
			"/shared/new":          "/shared",
			"/new":                 "",
		} {
			err := attempt.Dirs{ACL: mine}.Make(t.Context(), sess, path)
			if wide == "" {
				err = errors.Join(err, attempt.Dirs{ACL: mine}.Check(t.Context(), sess, path))
			}
			switch {
			case wide == "" && err != nil:
				t.Errorf("%s: got %v, want success", path, err)
			case wide != "" && (!errors.Is(err, attempt.ErrWider) || !strings.Contains(err.Error(), wide+" ")):
				t.Errorf("%s: got %v, want ErrWider that names %s", path, err, wide)
			}
			must(t, attempt.Dirs{ACL: mine, AnyACL: true}.Make(t.Context(), sess, path))
		}
	})
}

// The creation is on its way when its reply is lost, and is done later than the client looks.
func TestCreationIsFoundBehindAFence(t *testing.T) { //nolint:tparallel // inEmptyWorld calls t.Parallel
	t.Parallel()
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inEmptyWorld(t, func(t *testing.T, w *world) {
				sess := w.session()
				w.Control(func(r zktest.Request) zktest.Fault {
					switch {
					case r.Op == zktest.OpCreate && r.Nth == 1:
						return fault
					case r.Seq > 1 && r.Seq < 4:
						return zktest.Answer(zk.ThrottledOp)
					}
					return zktest.Pass
				})
				b := sess.Batch()
				names := []attempt.Name{{Dir: "/", Prefix: "x-" + attempt.NewGUID() + "-"}}
				node := zk.Node{Path: names[0].Path(), Mode: zk.EphemeralSequential}
				c, _ := attempt.NewCreation(b, sess, names, nil, []zk.Node{node})
				b.Send()
				made, err := c.Resolve(t.Context())
				switch {
				case name == "reply lost" && (err != nil || len(made) != 1):
					t.Errorf("got %v, %v, want the node", made, err)
				case name == "cut before" && !errors.Is(err, attempt.ErrLost):
					t.Errorf("got %v, want ErrLost", err)
				}
				c.Cancel()
				w.Control(nil)
				w.NoNodes(t, "/")
			})
		})
	}
}

func TestFollowYieldsTheLastStateUnderEachSession(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		look := func(sess *zk.Session) (string, *zk.Watch, error) {
			data, _, watch, err := sess.GetW(ctx, "/x")
			return string(data), watch, err
		}
		write := w.Session(t, time.Minute)
		_, err := write.Create(t.Context(), "/x", []byte("0"), zk.Persistent)
		must(t, err)
		var got []string
		var last error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for now, err := range attempt.Follow(ctx, w.client, "/x", look) {
				if err != nil {
					got, last = append(got, "refused"), err
					continue
				}
				got = append(got, now)
			}
		}()
		set := func(data string) {
			synctest.Wait()
			_, err := write.Set(t.Context(), "/x", []byte(data), -1)
			must(t, err)
			synctest.Wait()
		}
		set("1")
		w.ExpireSession(w.session().ID())
		set("2")
		time.Sleep(time.Minute)                      // until there is another session
		must(t, write.Delete(t.Context(), "/x", -1)) // look returns NoNode: a refusal that does not pass
		time.Sleep(time.Second)
		_, err = write.Create(t.Context(), "/x", []byte("3"), zk.Persistent)
		must(t, err)
		time.Sleep(time.Minute)
		cancel()
		<-done
		got = slices.Compact(got)
		if want := []string{"0", "1", "2", "refused", "3", "refused"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("got %v at the end, want the context's cause", last)
		}
	})
}

func TestEachBoundsTheBytesOnTheirWay(t *testing.T) {
	inEmptyWorld(t, func(t *testing.T, w *world) {
		paths := make([]string, 300)
		for i := range paths {
			paths[i] = "/" + strings.Repeat("x", 7<<10)
		}
		sent, most := 0, 0
		for _, reply := range attempt.Each(w.session(), paths, func(b *zk.Batch, path string) *zk.Future[zk.Existence] {
			sent += len(path)
			most = max(most, sent)
			return b.Exists(path)
		}) {
			_, err := reply.Get(t.Context())
			must(t, err)
			sent -= 7 << 10
		}
		if most > 300<<10 {
			t.Errorf("got %d bytes on their way at once, want at most 256 KiB and a path", most)
		}
	})
}
