package interop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// discoverySession is the timeout of Curator's sessions, and how long a killed service stays registered.
const discoverySession = 12 * time.Second

// TestServicesAreSharedWithCurator registers services on both sides. Each side finds the other's, follows how they
// come, change, go and die, and what ours writes is what Curator would have written.
//
// Promise: 17
func TestServicesAreSharedWithCurator(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const base = "/services"
		curators := startQueuePeer(t, "java", ownArgs(t, "DiscoveryPeer", h.addr, millis(discoverySession), base)...)
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		registry, err := discovery.NewRegistry(client, base, discovery.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := services{t: t, addr: h.addr, client: client, registry: registry, curators: curators}
		s.register()
		s.update()
		s.kill()
	})
}

type services struct {
	t        *testing.T
	addr     string
	client   *zk.Client
	registry *discovery.Registry
	curators *queuePeer
	ours     *discovery.Registration
}

func (s *services) answer(want, format string, args ...any) {
	s.t.Helper()
	if got := s.curators.order(s.t, format, args...); got != want {
		s.t.Fatalf("%s %v: %s\nwant %s", format, args, got, want)
	}
}

// register registers the same instance on both sides, but for its id.
func (s *services) register() {
	s.t.Helper()
	s.answer("ok", "follow web")
	s.answer("ok", "register web java 80 DYNAMIC hello")
	payload, err := discovery.Object(map[string]any{"text": "hello"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.ours, err = s.registry.Register(s.t.Context(), discovery.Instance{
		Service: "web", ID: "go", Address: "10.0.0.1", Port: 80, Payload: payload,
		Registered: time.UnixMilli(1700000000123), URI: "{scheme}://{address}:{port}/x",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	java, ours := s.data("web/java"), s.data("web/go")
	if got := strings.Replace(ours, `"id":"go"`, `"id":"java"`, 1); got != java {
		s.t.Errorf("the JSON differs\nours    %s\nCurator %s", ours, java)
	}
	s.answer("instances go,DYNAMIC,hello,http://10.0.0.1:80/x,true java,DYNAMIC,hello,http://10.0.0.1:80/x,true",
		"list web")
	s.answer("ok", "follow web go,java")
	s.answer("services web", "services")
	s.follow("go", "java")
	java1, ok, err := s.registry.Instance(s.t.Context(), "web", "java")
	if err != nil || !ok || java1.URL() != "http://10.0.0.1:80/x" || string(java1.Payload) != string(payload) {
		s.t.Errorf("Curator's instance is %+v, %v, %v", java1, ok, err)
	}
	for _, kind := range []discovery.Type{discovery.Static, discovery.Permanent} {
		name := strings.ToLower(string(kind))
		s.answer("ok", "register %s java 80 %s x", name, kind)
		reg, err := s.registry.Register(s.t.Context(), discovery.Instance{
			Service: name, ID: "go", Type: kind, Address: "b",
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.answer("instances go,"+string(kind)+",-,-,true java,"+string(kind)+",x,http://10.0.0.1:80/x,true",
			"list %s", name)
		if err := reg.UnregisterWait(s.t.Context()); err != nil {
			s.t.Error(err)
		}
		s.answer("instances java,"+string(kind)+",x,http://10.0.0.1:80/x,true", "list %s", name)
	}
}

func (s *services) update() {
	s.t.Helper()
	s.answer("ok", "update web java 81 DYNAMIC changed")
	ctx, cancel := context.WithTimeout(s.t.Context(), queuePatience)
	defer cancel()
	for all, err := range s.registry.Watch(ctx, "web") {
		if err != nil {
			s.t.Fatalf("Curator's update was not seen: %v", err)
		}
		if slices.ContainsFunc(all, func(i discovery.Instance) bool {
			return i.ID == "java" && i.Port == 81 && strings.Contains(string(i.Payload), "changed")
		}) {
			break
		}
	}
	next := s.ours.Instance()
	next.Port, next.Disabled = 82, true
	if err := s.ours.Update(s.t.Context(), next); err != nil {
		s.t.Fatal(err)
	}
	s.answer("instances go,DYNAMIC,hello,http://10.0.0.1:82/x,false java,DYNAMIC,changed,http://10.0.0.1:81/x,true",
		"list web")
}

// kill unregisters ours, and then kills each side: ours by cutting it off, so that it says no more than a process that
// was killed.
func (s *services) kill() {
	s.t.Helper()
	if err := s.ours.UnregisterWait(s.t.Context()); err != nil {
		s.t.Error(err)
	}
	s.answer("ok", "follow web java")
	link := zktest.Proxy(s.t, s.addr)
	registry, err := discovery.NewRegistry(link.Client(s.t, discoverySession), "/services", discovery.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	killed := discovery.Instance{Service: "web", ID: "killed", Address: "a"}
	if _, err := registry.Register(s.t.Context(), killed); err != nil {
		s.t.Fatal(err)
	}
	s.answer("ok", "follow web java,killed")
	link.Cut()
	s.answer("ok", "follow web java")
	s.answer("ok", "register web other 83 DYNAMIC x")
	s.follow("java", "other")
	s.answer("ok", "unregister java")
	s.follow("other")
	s.curators.kill()
	s.follow()
}

// follow waits until these instances of the service web are registered, and no others.
func (s *services) follow(ids ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), queuePatience)
	defer cancel()
	for all, err := range s.registry.Watch(ctx, "web") {
		if err != nil {
			s.t.Fatalf("waiting for %v: %v", ids, err)
		}
		var got []string
		for _, i := range all {
			got = append(got, i.ID)
		}
		if slices.Equal(got, ids) {
			return
		}
	}
}

func (s *services) data(name string) string {
	s.t.Helper()
	sess, err := s.client.Session(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	data, _, err := sess.Get(s.t.Context(), "/services/"+name)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}
