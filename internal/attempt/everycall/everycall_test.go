package everycall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const (
	path    = "/app/thing"
	timeout = 20 * time.Second
	// maxRequests bounds how many requests of a call are hit, one at a time.
	maxRequests = 60
)

// A call is one public method of a recipe, on a path that nothing has used before.
type call struct {
	name          string // package.Type.Method, and after a space which way of it
	do            func(ctx context.Context, a args) error
	takesData     bool                 // a.data comes from the caller
	done          func(w *world) error // checks that it was done, once; nil if there is nothing to see
	leavesNothing bool                 // no node below the path when it has returned
	allows        []string             // of the arguments that others refuse
}

// world is a server, and time, that belong to one test.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var net zktest.Net
		test(t, &world{zktest.Run(t, zktest.On(&net), zktest.SessionTimeouts(time.Second, time.Minute)), t})
	})
}

// wantData returns an error unless the node at path holds data.
func (w *world) wantData(want string) error {
	got, _, err := w.Session(w.t, timeout).Get(w.t.Context(), path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

// run calls c, and checks that it succeeds and was done.
func (w *world) run(c call) {
	w.t.Helper()
	client := w.Client(w.t, timeout)
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
	defer cancel()
	err := c.do(ctx, args{client: client, path: path, data: []byte("data")})
	w.Control(nil)
	if err == nil && c.done != nil {
		err = c.done(w)
	}
	if err != nil {
		w.t.Errorf("got %v, want success", err)
	}
	if c.leavesNothing {
		w.NoNodes(w.t, path)
	}
	if err := client.Close(); err != nil {
		w.t.Error(err)
	}
}

func allCalls() []call {
	return slices.Concat(calls, barrierCalls, memberCalls, queueCalls, classicCalls(), cacheCalls(), discoveryCalls)
}

// each runs test for every call.
func each(t *testing.T, test func(t *testing.T, c call)) {
	t.Helper()
	t.Parallel()
	for _, c := range allCalls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

var passing = map[string]zk.Code{
	"ThrottledOp": zk.ThrottledOp, "OperationTimeout": zk.OperationTimeout, "SessionMoved": zk.SessionMoved,
	"NotReadOnly": zk.NotReadOnly,
}

// Each request in turn is refused, three times in a row.
func TestRefusalThatPassesIsAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		for name, code := range passing {
			for step := 1; step < maxRequests; step++ {
				reached := false
				inWorld(t, func(t *testing.T, w *world) {
					w.t.Log(name, "from request", step)
					w.Control(func(r zktest.Request) zktest.Fault {
						if r.Seq < step || r.Seq >= step+3 {
							return zktest.Pass
						}
						reached = true
						return zktest.Answer(code)
					})
					w.run(c)
				})
				if !reached || t.Failed() {
					break
				}
			}
		}
	})
}

func TestEveryCallEndsWhileAFifthOfTheRequestsIsRefused(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		for seed := range uint64(3) {
			inWorld(t, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(seed, 1))
				w.Control(func(r zktest.Request) zktest.Fault {
					if r.Seq > 0 && random.IntN(5) == 0 {
						return zktest.Answer(zk.ThrottledOp)
					}
					return zktest.Pass
				})
				w.run(c)
			})
		}
	})
}

// The reply to each request in turn is lost, and then a request is refused: most likely one that is to find out what
// became of it.
func TestLostReplyIsResolvedAlthoughTheServerRefusesForNow(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		codes := slices.Sorted(maps.Values(passing))
		for name, fault := range map[string]zktest.Fault{"lost": zktest.DropReply, "cut": zktest.CutBefore} {
			for step := 1; step < maxRequests; step++ {
				reached := false
				code := codes[step%len(codes)] // of a call's kinds of requests each meets each
				inWorld(t, func(t *testing.T, w *world) {
					w.t.Log("reply", name, "of request", step, "then", code)
					w.Control(func(r zktest.Request) zktest.Fault {
						switch {
						case r.Seq == step:
							reached = true
							return fault
						case r.Seq > step && r.Seq <= step+2:
							return zktest.Answer(code)
						}
						return zktest.Pass
					})
					w.run(c)
				})
				if !reached || t.Failed() {
					break
				}
			}
		}
	})
}

func TestTooMuchDataIsRefusedBeforeItIsSent(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		if !c.takesData {
			return
		}
		inWorld(t, func(t *testing.T, w *world) {
			client := w.Client(t, timeout)
			err := c.do(t.Context(), args{client: client, path: path, data: bytes.Repeat([]byte("x"), 2<<20)})
			if err == nil || errors.Is(err, zk.ErrConnectionLost) {
				t.Errorf("got %v, want that the data is too large", err)
			}
			if got := w.Traffic().Connections; got > 1 {
				t.Errorf("got %d connections, want one: it must not be cut", got)
			}
		})
	})
}

func TestBadArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		inWorld(t, func(t *testing.T, w *world) {
			client := w.Client(t, timeout)
			many := make([]zk.ACL, 1<<16)
			for i := range many {
				many[i] = zk.ACL{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: fmt.Sprintf("user%d:hash", i)}}
			}
			for name, a := range map[string]args{
				"no client":        {path: path},
				"no path":          {client: client},
				"relative":         {client: client, path: "app"},
				"root":             {client: client, path: "/"},
				"the server's":     {client: client, path: "/zookeeper/x"},
				"slash at the end": {client: client, path: path + "/"},
				"dots":             {client: client, path: "/app/../x"},
				"helper below":     {client: client, path: path + "/__receipts__"},
				"below a helper":   {client: client, path: path + "/__receipts__/x"},
				"helper beside":    {client: client, path: path + "-__delay__"},
				"below one beside": {client: client, path: path + "-__delay__/x"},
				"no UTF-8":         {client: client, path: "/app/\xff"},
				"path of 2 MB":     {client: client, path: "/" + strings.Repeat("x", 2<<20)},
				"rights of 2 MB":   {client: client, path: path, acl: many},
			} {
				if slices.Contains(c.allows, name) {
					continue
				}
				if err := c.do(t.Context(), a); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
			sess, err := client.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if names, _, err := sess.Children(t.Context(), "/"); err != nil || len(names) > 1 {
				t.Errorf("got nodes %q, %v, want none but the server's", names, err)
			}
		})
	})
}

func TestCallWithAContextThatHasEndedReturnsItsCauseAndDoesNothing(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		inWorld(t, func(t *testing.T, w *world) {
			client := w.Client(t, timeout)
			if _, err := client.Session(t.Context()); err != nil {
				t.Fatal(err)
			}
			why := errors.New("no more")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			err := c.do(ctx, args{client: client, path: path, data: []byte("data")})
			if err != nil && !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
			synctest.Wait()
			w.NoNodes(t, path)
		})
	})
}

func TestChrootThatIsMissingTwoLevelsDeepIsMade(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		inWorld(t, func(t *testing.T, w *world) {
			cfg := w.Config(timeout)
			cfg.Servers += "/missing/below"
			client, err := zk.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.do(t.Context(), args{client: client, path: path, data: []byte("data")}); err != nil {
				t.Errorf("got %v, want success", err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// Methods that take no context return what is known, or only send.
func TestEveryMethodHasARow(t *testing.T) {
	t.Parallel()
	have := map[string]bool{}
	for _, c := range allCalls() {
		name, _, _ := strings.Cut(c.name, " ")
		have[name] = true
	}
	for _, typ := range slices.Concat(
		recipes, barrierTypes, memberTypes, queueTypes, classicTypes, cacheTypes, discoveryTypes,
	) {
		for m := range typ.Methods() {
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
				continue
			}
			if name := typ.Elem().String() + "." + m.Name; !have[name] {
				t.Errorf("%s has no row in calls", name)
			}
		}
	}
}
