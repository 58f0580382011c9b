package discovery_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const base = "/services"

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func server(t *testing.T) *zktest.Server {
	t.Helper()
	return zktest.Run(t, zktest.SessionTimeouts(100*time.Millisecond, time.Minute))
}

func registry(t *testing.T, client *zk.Client, cfg discovery.Config) *discovery.Registry {
	t.Helper()
	r, err := discovery.NewRegistry(client, base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func register(t *testing.T, r *discovery.Registry, i discovery.Instance) *discovery.Registration {
	t.Helper()
	if i.Service == "" {
		i.Service = "web"
	}
	if i.Address == "" {
		i.Address = "10.0.0.1"
	}
	reg, err := r.Register(within(t), i)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// await waits until f is true of the service's instances.
func await(t *testing.T, r *discovery.Registry, f func([]discovery.Instance) bool) {
	t.Helper()
	var last []discovery.Instance
	for all, err := range r.Watch(within(t), "web") {
		if err != nil {
			t.Fatalf("%v; last: %+v", err, last)
		}
		if last = all; f(all) {
			return
		}
	}
}

func have(ids ...string) func([]discovery.Instance) bool {
	return func(all []discovery.Instance) bool {
		var got []string
		for _, i := range all {
			got = append(got, i.ID)
		}
		slices.Sort(got)
		return slices.Equal(got, ids)
	}
}

// Promise: 17
func TestRegisteredInstanceIsFound(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	reg := register(t, r, discovery.Instance{ID: "a", Port: 80, Payload: []byte(`{"x":1}`)})
	other := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	i, ok, err := other.Instance(within(t), "web", "a")
	right := ok && i.URL() == "http://10.0.0.1:80" && string(i.Payload) == `{"x":1}` && i.Type == discovery.Dynamic
	if err != nil || !right {
		t.Fatalf("%+v, %v, %v", i, ok, err)
	}
	if _, ok, err := other.Instance(within(t), "web", "b"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if names, err := other.Services(within(t)); err != nil || !slices.Equal(names, []string{"web"}) {
		t.Errorf("%v, %v", names, err)
	}
	if err := reg.UnregisterWait(within(t)); err != nil {
		t.Fatal(err)
	}
	if all, err := other.Instances(within(t), "web"); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if err := reg.UnregisterWait(within(t)); err != nil {
		t.Errorf("again: %v", err)
	}
	if all, err := other.Instances(within(t), "none"); err != nil || len(all) > 0 {
		t.Errorf("of a service that is not there: %v, %v", all, err)
	}
}

func TestManyInstancesAreListed(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	sess := srv.Session(t, time.Minute)
	template, err := discovery.Instance{Service: "web", ID: "ID"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, discovery.Instance{ID: "first"})
	var ops []zk.Op
	for n := range 600 {
		id := "i" + string(rune('a'+n/100)) + string(rune('a'+n/10%10)) + string(rune('a'+n%10))
		data := bytes.Replace(template, []byte(`"id":"ID"`), []byte(`"id":"`+id+`"`), 1)
		ops = append(ops, zk.CreateOp(base+"/web/"+id, data, zk.Ephemeral))
	}
	if _, err := sess.Multi(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
	all, err := r.Instances(within(t), "web")
	if err != nil || len(all) != 601 {
		t.Errorf("%d instances, %v", len(all), err)
	}
	if !slices.IsSortedFunc(all, func(a, b discovery.Instance) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the instances are not ordered by the names of their nodes")
	}
}

// Data that was set before the end of a session is not what is registered again (CURATOR-146).
//
// Promise: 17
func TestInstanceIsRegisteredAgainAsItWasLastSet(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	reg := register(t, r, discovery.Instance{ID: "a", Port: 80})
	next := reg.Instance()
	next.Port = 81
	if err := reg.Update(within(t), next); err != nil {
		t.Fatal(err)
	}
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(sess.ID())
	observer := srv.Session(t, time.Minute)
	for {
		_, stat, err := observer.Get(within(t), base+"/web/a")
		if err == nil && stat.EphemeralOwner != sess.ID() {
			break
		}
	}
	if i, ok, err := r.Instance(within(t), "web", "a"); err != nil || !ok || i.Port != 81 {
		t.Errorf("%+v, %v, %v", i, ok, err)
	}
	if err := reg.Await(within(t)); err != nil {
		t.Error(err)
	}
}

// An instance is gone for good, though its registration is repeated at the same time (CURATOR-164).
//
// Promise: 17
func TestUnregisteredInstanceDoesNotComeBack(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	observer := srv.Session(t, time.Minute)
	for range 20 {
		reg := register(t, r, discovery.Instance{ID: "a"})
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { srv.ExpireSession(sess.ID()) })
		wg.Go(func() {
			if err := reg.UnregisterWait(within(t)); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, there, err := observer.Exists(t.Context(), base+"/web/a"); there || err != nil {
			t.Fatalf("there: %v, %v", there, err)
		}
	}
}

// Promise: 17
func TestInstanceOfAnotherProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv := server(t)
	one := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	two := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	first := register(t, one, discovery.Instance{ID: "a", Port: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := two.Register(ctx, discovery.Instance{Service: "web", ID: "a", Address: "b", Port: 2})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	if i, _, _ := two.Instance(within(t), "web", "a"); i.Port != 1 {
		t.Errorf("port %d", i.Port)
	}
	if err := first.UnregisterWait(within(t)); err != nil {
		t.Fatal(err)
	}
	second := register(t, two, discovery.Instance{ID: "a", Port: 2})
	if err := first.UnregisterWait(within(t)); err != nil { // not the second's
		t.Fatal(err)
	}
	if i, ok, _ := one.Instance(within(t), "web", "a"); !ok || i.Port != 2 {
		t.Errorf("%+v, %v", i, ok)
	}
	second.Unregister()
}

// Promise: 17
func TestCloseLeavesPermanentInstances(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	for _, kind := range []discovery.Type{
		discovery.Dynamic, discovery.DynamicSequential, discovery.Static, discovery.Permanent,
	} {
		register(t, r, discovery.Instance{ID: string(kind), Type: kind})
	}
	other := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	await(t, other, have("DYNAMIC", "DYNAMIC_SEQUENTIAL", "PERMANENT", "STATIC"))
	r.Close()
	await(t, other, have("PERMANENT"))
	_, err := r.Register(within(t), discovery.Instance{Service: "web", ID: "late", Address: "a"})
	if !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("%v after Close", err)
	}
}

// Promise: 17
func TestUpdateIsInPlace(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	reg := register(t, r, discovery.Instance{ID: "a", Port: 80})
	sess := srv.Session(t, time.Minute)
	_, before, err := sess.Get(t.Context(), base+"/web/a")
	if err != nil {
		t.Fatal(err)
	}
	next := reg.Instance()
	next.Disabled = true
	if err := reg.Update(within(t), next); err != nil {
		t.Fatal(err)
	}
	_, after, err := sess.Get(t.Context(), base+"/web/a")
	if err != nil || after.Czxid != before.Czxid || after.Version != before.Version+1 {
		t.Errorf("%+v, %v", after, err)
	}
	for _, change := range []func(*discovery.Instance){
		func(i *discovery.Instance) { i.Service = "other" },
		func(i *discovery.Instance) { i.ID = "b" },
		func(i *discovery.Instance) { i.Type = discovery.Static },
		func(i *discovery.Instance) { i.Payload = []byte("{") },
	} {
		wrong := reg.Instance()
		change(&wrong)
		if err := reg.Update(within(t), wrong); err == nil {
			t.Errorf("accepted: %+v", wrong)
		}
	}
	anew := discovery.Instance{Service: "web", Port: 81} // without the id that Register may have made up
	err = reg.Update(within(t), anew)
	if err == nil || !strings.Contains(err.Error(), `id "", type DYNAMIC; start from`) {
		t.Errorf("the error does not say what was given, or how to do it: %v", err)
	}
	reg.Unregister()
	if err := reg.Update(within(t), next); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("%v after Close", err)
	}
}

// A node without data made Curator's readers fail (CURATOR-574).
//
// Promise: 17
func TestNodesThatAreNotInstancesAreLeftOutAndLogged(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var log bytes.Buffer
	var mu sync.Mutex
	logger := slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(b)
	}), nil))
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{Logger: logger})
	register(t, r, discovery.Instance{ID: "a"})
	sess := srv.Session(t, time.Minute)
	for name, data := range map[string]string{"empty": "", "text": "hello", "nameless": `{"id":"x"}`} {
		if _, err := sess.Create(t.Context(), base+"/web/"+name, []byte(data), zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	register(t, r, discovery.Instance{ID: "secret"})
	closed := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
	if _, err := sess.SetACL(t.Context(), base+"/web/secret", closed, -1); err != nil {
		t.Fatal(err)
	}
	all, err := r.Instances(within(t), "web")
	if err != nil || !have("a")(all) {
		t.Errorf("%+v, %v", all, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"empty", "text", "nameless", "secret"} {
		if !strings.Contains(log.String(), base+"/web/"+name) {
			t.Errorf("the log does not name %s: %s", name, log.String())
		}
	}
}

type writer func([]byte) (int, error)

func (f writer) Write(b []byte) (int, error) { return f(b) }

// Promise: 17
func TestProviderFollowsTheService(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	p, err := r.OpenProvider("web", discovery.ProviderConfig{
		Filter: func(i discovery.Instance) bool { return i.Port != 99 },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Pick(within(t)); !errors.Is(err, discovery.ErrNoInstance) {
		t.Fatalf("%v before there is one", err)
	}
	a := register(t, r, discovery.Instance{ID: "a"})
	register(t, r, discovery.Instance{ID: "b", Port: 99})
	register(t, r, discovery.Instance{ID: "c", Disabled: true})
	pick := func(id string) {
		t.Helper()
		for ctx := within(t); ; {
			use, err := p.Pick(ctx)
			switch {
			case errors.Is(err, discovery.ErrNoInstance) && ctx.Err() == nil:
				continue
			case err != nil:
				t.Fatal(err)
			}
			use.Done(nil)
			if use.Instance.ID == id {
				return
			}
		}
	}
	pick("a")
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(sess.ID()) // of the provider, too
	pick("a")
	register(t, r, discovery.Instance{ID: "d"})
	pick("d")
	if err := a.UnregisterWait(within(t)); err != nil {
		t.Fatal(err)
	}
	for ctx := within(t); ; {
		all, err := p.Instances(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if have("d")(all) {
			break
		}
	}
	p.Close()
	if _, err := p.Pick(within(t)); !errors.Is(err, discovery.ErrClosed) {
		t.Errorf("%v after Close", err)
	}
}

// A server that is away when the provider starts is waited for (CURATOR-175).
//
// Promise: 17
func TestProviderGoesOnWithoutAConnection(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	register(t, r, discovery.Instance{ID: "a"})
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.Cut(sess.ID())
	away := registry(t, client, discovery.Config{})
	p, err := away.OpenProvider("web", discovery.ProviderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := p.Pick(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v", err)
	}
	srv.Heal()
	if _, err := p.Pick(within(t)); err != nil {
		t.Fatal(err)
	}
	srv.Cut()
	if use, err := p.Pick(within(t)); err != nil || use.Instance.ID != "a" {
		t.Errorf("%v without a connection", err)
	}
	srv.Heal()
}

// A right that is missing at one moment ends neither a provider nor a watch.
//
// Promise: 17
func TestProviderOutlivesARefusal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
		register(t, r, discovery.Instance{ID: "a"})
		other := srv.Session(t, time.Minute)
		setACL := func(acl []zk.ACL) {
			t.Helper()
			if _, err := other.SetACL(t.Context(), r.Path("web"), acl, -1); err != nil {
				t.Fatal(err)
			}
		}
		closed := []zk.ACL{{Perms: zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		setACL(closed)
		follower := registry(t, srv.Client(t, time.Minute), discovery.Config{})
		p, err := follower.OpenProvider("web", discovery.ProviderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.Pick(t.Context()); !errors.Is(err, zk.NoAuth) {
			t.Errorf("got %v while refused, want NoAuth", err)
		}
		setACL(zk.OpenACL())
		time.Sleep(time.Minute)
		if use, err := p.Pick(t.Context()); err != nil || use.Behind != 0 {
			t.Fatalf("got %+v, %v when the right is back, want a current instance", use, err)
		}
		setACL(closed)
		srv.Drop()
		time.Sleep(time.Minute)
		if use, err := p.Pick(t.Context()); err != nil || use.Behind < 50*time.Second {
			t.Errorf("got %+v, %v while refused, want what was known, a minute old", use, err)
		}
		setACL(zk.OpenACL())
		time.Sleep(time.Minute)
		if use, err := p.Pick(t.Context()); err != nil || use.Behind != 0 {
			t.Errorf("got %+v, %v when the right is back again, want a current instance", use, err)
		}
	})
}

// Promise: 17
func TestOneClientRegistersAnIDOnce(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, time.Minute)
		r, again := registry(t, client, discovery.Config{}), registry(t, client, discovery.Config{})
		first := register(t, r, discovery.Instance{ID: "a"})
		for _, r := range []*discovery.Registry{r, again} {
			i := discovery.Instance{Service: "web", ID: "a", Address: "10.0.0.2"}
			if _, err := r.Register(t.Context(), i); !errors.Is(err, discovery.ErrRegistered) {
				t.Errorf("got %v, want ErrRegistered", err)
			}
		}
		if i, ok, err := r.Instance(t.Context(), "web", "a"); err != nil || !ok || i.Address != "10.0.0.1" {
			t.Errorf("got %+v, %t, %v, want the first", i, ok, err)
		}
		if err := first.UnregisterWait(t.Context()); err != nil {
			t.Fatal(err)
		}
		register(t, again, discovery.Instance{ID: "a"})
	})
}

// Promise: 17
func TestNothingIsLeftAfterClose(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	for range 3 {
		p, err := r.OpenProvider("web", discovery.ProviderConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Instances(within(t)); err != nil {
			t.Fatal(err)
		}
		await(t, r, have())
		p.Close()
	}
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sess.Sync(t.Context(), "/"); err != nil { // behind the removals of the watches
		t.Fatal(err)
	}
	srv.NoWatches(t)
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	for _, path := range []string{"", "x", "/x/"} {
		if _, err := discovery.NewRegistry(client, path, discovery.Config{}); err == nil {
			t.Errorf("path %q is accepted", path)
		}
	}
	if _, err := discovery.NewRegistry(nil, base, discovery.Config{}); err == nil {
		t.Error("no client is accepted")
	}
	r := registry(t, client, discovery.Config{})
	for _, i := range []discovery.Instance{
		{},
		{Service: "a/b"},
		{Service: "."},
		{Service: "a", ID: "b/c"},
		{Service: "a", Port: -1},

		{Service: "a", TLSPort: 70000},
		{Service: "a", Type: "FAST"},
		{Service: "a", Payload: []byte("{")},
		{Service: "a", Payload: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)},
		{Service: "a", URI: "{"},
		{Service: "a", URI: "}"},
	} {
		if _, err := r.Register(t.Context(), i); !errors.Is(err, zk.BadArguments) {
			t.Errorf("got %v, want zk.BadArguments: %+v", err, i)
		}
	}
	for _, cfg := range []discovery.ProviderConfig{
		{Strategy: 9},
		{Ejection: discovery.Ejection{AtMost: 101}},
		{Ejection: discovery.Ejection{For: time.Hour, Max: time.Minute}},
	} {
		if _, err := r.OpenProvider("a", cfg); !errors.Is(err, zk.BadArguments) {
			t.Errorf("got %v, want zk.BadArguments: %+v", err, cfg)
		}
	}
	if _, err := r.OpenProvider("a/b", discovery.ProviderConfig{}); !errors.Is(err, zk.BadArguments) {
		t.Errorf("a/b: got %v, want zk.BadArguments", err)
	}
	for _, err := range r.Watch(t.Context(), "") {
		if !errors.Is(err, zk.BadArguments) {
			t.Errorf("no name: got %v, want zk.BadArguments", err)
		}
	}
}

func TestIDAndAddressAreMadeUp(t *testing.T) {
	t.Parallel()
	r := registry(t, server(t).Client(t, time.Minute), discovery.Config{})
	reg, err := r.Register(within(t), discovery.Instance{Service: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if i := reg.Instance(); len(i.ID) != 36 || i.Address == "" || i.Registered.IsZero() {
		t.Errorf("%+v", i)
	}
}

// Instances are not registered anew after each reconnect (CURATOR-320).
//
// Promise: 17
func TestReconnectWritesNothing(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	reg := register(t, r, discovery.Instance{ID: "a"})
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	observer := srv.Session(t, time.Minute)
	_, before, err := observer.Get(t.Context(), base+"/web/a")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		srv.Cut(sess.ID())
		for state := range sess.States(t.Context()) {
			if state == zk.Suspended {
				break
			}
		}
		srv.Heal()
		next := reg.Instance()
		if err := reg.Update(within(t), next); err != nil { // of the same data: when it returns, the node was looked at
			t.Fatal(err)
		}
	}
	_, after, err := observer.Get(t.Context(), base+"/web/a")
	if err != nil || after != before {
		t.Errorf("got %+v, %v; want %+v", after, err, before)
	}
}

// A removal that takes long goes on by itself, and may be waited for again (CURATOR-617).
//
// Promise: 17
func TestUnregisterGoesOnAfterItsContext(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	first, second := register(t, r, discovery.Instance{ID: "a"}), register(t, r, discovery.Instance{ID: "b"})
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.Cut(sess.ID())
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	for _, reg := range []*discovery.Registration{first, second} {
		if err := reg.UnregisterWait(ctx); !errors.Is(err, mine) {
			t.Errorf("got %v, want the cause", err)
		}
	}
	srv.Heal()
	if err := first.UnregisterWait(within(t)); err != nil {
		t.Error(err)
	}
	await(t, registry(t, srv.Client(t, time.Minute), discovery.Config{}), have())
}

func TestWatchYieldsUpdates(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	at := time.UnixMilli(1700000000123)
	reg := register(t, r, discovery.Instance{ID: "a", Port: 80, Registered: at.Add(time.Microsecond)})
	told := 0
	for all, err := range r.Watch(within(t), "web") {
		if err != nil {
			t.Fatal(err)
		}
		if told++; told == 1 {
			next := discovery.Instance{Service: "web", ID: "a", Address: "10.0.0.2", Port: 81}
			if err := reg.Update(within(t), next); err != nil {
				t.Fatal(err)
			}
		}
		if len(all) == 1 && all[0].Port == 81 {
			if got := reg.Instance(); !all[0].Registered.Equal(at) || !got.Registered.Equal(at) || got.Port != 81 {
				t.Errorf("got %+v and %+v, want the time %v", all[0], got, at)
			}
			break
		}
	}
}

func TestRegistryAtTheRoot(t *testing.T) {
	t.Parallel()
	srv := server(t)
	r, err := discovery.NewRegistry(srv.Client(t, time.Minute), "/", discovery.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	register(t, r, discovery.Instance{ID: "a"})
	if _, ok, err := r.Instance(within(t), "web", "a"); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
	if names, err := r.Services(within(t)); err != nil || !slices.Contains(names, "web") {
		t.Errorf("%v, %v", names, err)
	}
}

func TestInstanceThatGoesWhileTheServiceIsReadIsLeftOut(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	other := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	register(t, other, discovery.Instance{ID: "a"})
	gone := register(t, other, discovery.Instance{ID: "b"})
	sess, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, release := context.WithCancel(t.Context())
	defer release()
	reads := make(chan struct{})
	var once sync.Once
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != sess.ID() || r.Code != 4 { // getData
			return zktest.Pass
		}
		once.Do(func() { close(reads) })
		return zktest.Until(ctx)
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-reads
		if err := gone.UnregisterWait(within(t)); err != nil {
			t.Error(err)
		}
		release()
	})
	all, err := r.Instances(within(t), "web")
	wg.Wait()
	if err != nil || !have("a")(all) {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestRegisterThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	r := registry(t, client, discovery.Config{})
	holder := srv.Session(t, time.Minute)
	for _, path := range []string{base, base + "/web"} {
		if _, err := holder.Create(t.Context(), path, nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := holder.Create(t.Context(), base+"/web/a", nil, zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.Register(ctx, discovery.Instance{Service: "web", ID: "a", Address: "x"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	srv.NoWatches(t) // it does not wait for the node any more
	r.Close()
	_, err = r.Register(within(t), discovery.Instance{Service: "web", ID: "a", Address: "x"})
	if !errors.Is(err, discovery.ErrClosed) {
		t.Fatal(err)
	}
	srv.NoWatches(t)
}

// A program may start before the servers (CURATOR-175).
//
// Promise: 17
func TestRegisterWithoutAServerWaitsForOne(t *testing.T) {
	t.Parallel()
	srv := server(t)
	srv.Cut()
	r := registry(t, srv.Client(t, time.Minute), discovery.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.Register(ctx, discovery.Instance{Service: "web", ID: "early", Address: "a"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	registered := make(chan error, 1)
	go func() {
		_, err := r.Register(within(t), discovery.Instance{Service: "web", ID: "a", Address: "a"})
		registered <- err
	}()
	srv.Heal()
	if err := <-registered; err != nil {
		t.Fatal(err)
	}
	await(t, r, have("a"))
}

// A right that is missing when the next session begins comes back later.
//
// Promise: 17
func TestRegistrationOutlivesARefusal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		client := srv.Client(t, time.Minute)
		r := registry(t, client, discovery.Config{})
		sess := srv.Session(t, time.Hour)
		for _, path := range []string{base, r.Path("web")} {
			if _, err := sess.Create(t.Context(), path, nil, zk.Persistent); err != nil {
				t.Fatal(err)
			}
		}
		reg := register(t, r, discovery.Instance{ID: "a"})
		own, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		readOnly := []zk.ACL{{Perms: zk.PermRead | zk.PermAdmin, ID: zk.ID{Scheme: "world", ID: "anyone"}}}
		for _, acl := range [][]zk.ACL{readOnly, zk.OpenACL()} {
			if _, err := sess.SetACL(t.Context(), r.Path("web"), acl, -1); err != nil {
				t.Fatal(err)
			}
			srv.ExpireSession(own.ID())
			time.Sleep(time.Minute)
			err := reg.Await(t.Context())
			_, there, findErr := r.Instance(t.Context(), "web", "a")
			if refused := acl[0].Perms != zk.PermAll; errors.Is(err, zk.NoAuth) != refused || there == refused {
				t.Errorf("got it registered: %t, %v, %v, while refused: %t", there, err, findErr, refused)
			}
		}
	}, zktest.SessionTimeouts(time.Second, time.Hour))
}
