package everycall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	stdpath "path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/soak"
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
	runs          bool                 // until its context ends, and then returns nil
}

// world is a server, and time, that belong to one test.
type world struct {
	*zktest.Server
	t *testing.T
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		test(t, &world{srv, t})
	}, zktest.SessionTimeouts(time.Second, time.Minute))
}

// wantData returns an error unless the node at path holds data.
func (w *world) wantData(want string) error {
	got, _, err := w.Session(w.t, timeout).Get(w.t.Context(), path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

// wantNone returns an error if the node at path exists.
func wantNone(w *world) error {
	_, exists, err := w.Session(w.t, timeout).Exists(w.t.Context(), path)
	if err == nil && exists {
		err = errors.New("the node is still there")
	}
	return err
}

// wantNobody returns an error if there is an ephemeral node below the path's parent, also after a minute.
func wantNobody(w *world) error {
	time.Sleep(time.Minute)
	return wantNobodyBelow(w.t.Context(), w.Session(w.t, timeout), stdpath.Dir(path))
}

func wantNobodyBelow(ctx context.Context, sess *zk.Session, dir string) error {
	names, stat, err := sess.Children(ctx, dir)
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	if err == nil && stat.EphemeralOwner != 0 {
		err = fmt.Errorf("the node %s is still there", dir)
	}
	for _, name := range names {
		err = errors.Join(err, wantNobodyBelow(ctx, sess, dir+"/"+name))
	}
	return err
}

// wantWhatLasts returns a check that the state which a recipe of lasting has put is there.
func wantWhatLasts(recipe string) func(*world) error {
	return func(w *world) error { return lasting[recipe].kept(w.t.Context(), w.Client(w.t, timeout), path) }
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
	// A refusal of the last request may have cost the connection, and Close would not wait for another.
	if _, _, err := client.Exists(ctx, "/"); err != nil {
		w.t.Error(err)
	}
	if err := client.Close(); err != nil {
		w.t.Error(err)
	}
}

func allCalls() []call {
	return slices.Concat(
		calls, lockCalls(), barrierCalls, memberCalls, queueCalls, classicCalls(), cacheCalls(), discoveryCalls,
	)
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

// names reports whether an error begins with the name of the call's package, says that once, says what is wrong, and is
// no longer than a reader bears.
func (c call) names(err error, wrong string) bool {
	pkg, _, _ := strings.Cut(c.name, ".")
	text := fmt.Sprint(err)
	return strings.HasPrefix(text, pkg+": ") && strings.Count(text, pkg+": ") == 1 &&
		strings.Contains(text, wrong) && len(text) < 300
}

var passing = map[string]zk.Code{
	"ThrottledOp": zk.ThrottledOp, "OperationTimeout": zk.OperationTimeout, "SessionMoved": zk.SessionMoved,
	"NotReadOnly": zk.NotReadOnly,
}

// Each request in turn is refused, three times in a row.
func TestRefusalThatPassesIsAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		for name, code := range passing {
			for step := range soak.Steps(name, passing) {
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
				if !reached || step >= maxRequests || t.Failed() {
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

// The reply to each request in turn is lost, and the next eight requests are refused: most likely those that are to
// find out what became of it. Each of these, alone or one of two that leave together, gets all refusals that pass.
func TestLostReplyIsResolvedAlthoughTheServerRefusesForNow(t *testing.T) {
	codes := slices.Sorted(maps.Values(passing))
	each(t, func(t *testing.T, c call) {
		faults := map[string]zktest.Fault{"lost": zktest.DropReply, "cut": zktest.CutBefore}
		for name, fault := range faults {
			for step := range soak.Steps(name, faults) {
				reached := false
				inWorld(t, func(t *testing.T, w *world) {
					w.t.Log("reply", name, "of request", step)
					w.Control(func(r zktest.Request) zktest.Fault {
						switch later := r.Seq - step - 1; {
						case later == -1:
							reached = true
							return fault
						case later >= 0 && later < 2*len(codes):
							return zktest.Answer(codes[(step+later+later/len(codes))%len(codes)])
						}
						return zktest.Pass
					})
					w.run(c)
				})
				if !reached || step >= maxRequests || t.Failed() {
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
			if !c.names(err, " bytes") {
				t.Errorf("got %.300v, want how large the data is", err)
			}
			if got := w.Traffic().Connections; got > 1 {
				t.Errorf("got %d connections, want one: it must not be cut", got)
			}
		})
	})
}

// badArgs returns what no recipe accepts, and what its error says besides zk.BadArguments.
func badArgs(client *zk.Client) map[string]struct {
	args
	says string
} {
	many := make([]zk.ACL, 1<<16)
	for i := range many {
		many[i] = zk.ACL{Perms: zk.PermAll, ID: zk.ID{Scheme: "digest", ID: fmt.Sprintf("user%d:hash", i)}}
	}
	at := func(path string) args { return args{client: client, path: path} }
	return map[string]struct {
		args
		says string
	}{
		"no client":        {args{path: path}, "client is nil"},
		"no path":          {at(""), "must not be empty"},
		"relative":         {at("app"), `"app": must begin with a slash`},
		"root":             {at("/"), "/ belongs to the server"},
		"the server's":     {at("/zookeeper/x"), "/zookeeper/x belongs to the server"},
		"slash at the end": {at(path + "/"), "must not end with a slash"},
		"dots":             {at("/app/../x"), "must not have relative components"},
		"helper below":     {at(path + "/__receipts__"), "names such as __receipts__"},
		"below a helper":   {at(path + "/__receipts__/x"), "names such as __receipts__"},
		"helper beside":    {at(path + "-__delay__"), "names such as thing-__delay__"},
		"below one beside": {at(path + "-__delay__/x"), "names such as thing-__delay__"},
		"no UTF-8":         {at("/app/\xff"), "must be valid UTF-8"},
		"path of 2 MB":     {at("/" + strings.Repeat("x", 2<<20)), "path of 2097153 bytes"},
		"no rights":        {args{client: client, path: path, acl: []zk.ACL{}}, "the ACL is empty"},
		"rights for none":  {args{client: client, path: path, acl: make([]zk.ACL, 1)}, "has no scheme"},
		"rights of 2 MB":   {args{client: client, path: path, acl: many}, "use at most"},
	}
}

func TestBadArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		inWorld(t, func(t *testing.T, w *world) {
			client := w.Client(t, timeout)
			for name, bad := range badArgs(client) {
				if slices.Contains(c.allows, name) {
					continue
				}
				if err := c.do(t.Context(), bad.args); !errors.Is(err, zk.BadArguments) || !c.names(err, bad.says) {
					t.Errorf("%s: got %.300v, want that %s", name, err, bad.says)
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
			if c.runs {
				why = nil
			}
			if !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
			synctest.Wait()
			w.NoNodes(t, stdpath.Dir(path))
		})
	})
}

// The error reads well: it begins with a package, and says that once.
func TestCallOfAClosedClientSaysSo(t *testing.T) {
	each(t, func(t *testing.T, c call) {
		inWorld(t, func(t *testing.T, w *world) {
			client := w.Client(t, timeout)
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			err := c.do(t.Context(), args{client: client, path: path, data: []byte("data")})
			if !errors.Is(err, zk.ErrClosed) {
				t.Fatalf("got %v, want that the client is closed", err)
			}
			for line := range strings.Lines(err.Error()) { // of two calls, each has one
				pkg, _, named := strings.Cut(line, ": ") // a row may also call another package, before its own
				if !named || strings.Count(line, pkg+": ") != 1 || !regexp.MustCompile(`^[a-z]+$`).MatchString(pkg) {
					t.Errorf("got %s", line)
				}
			}
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
		recipes, lockTypes, barrierTypes, memberTypes, queueTypes, classicTypes, cacheTypes, discoveryTypes,
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
