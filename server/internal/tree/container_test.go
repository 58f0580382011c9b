package tree_test

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

func (c *client) mkContainer(path string) {
	c.s.t.Helper()
	c.s.wantOK(c.write(wire.OpCreateContainer, createRequest(path, "", 4)), "createContainer "+path)
}

func (c *client) mkTTL(path string, life int64) {
	c.s.t.Helper()
	c.s.wantOK(c.write(wire.OpCreateTTL, ttlRequest(path, 5, life)), "createTTL "+path)
}

func (s *server) wantContainers(now int64, want ...string) {
	s.t.Helper()
	if got := s.tree.AllContainers(now); !slices.Equal(got, want) {
		s.t.Errorf("collectable: got %v, want %v", got, want)
	}
}

func TestContainerIsCollectableAfterItsLastChild(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mkContainer("/box")
	c.mk("/flagged", 4) // a persistent node: only createContainer makes a container
	c.mk("/flagged/x", 0)
	s.wantOK(c.remove("/flagged/x", -1), "delete")
	s.wantContainers(math.MaxInt64)
	c.mk("/box/x", 1)
	s.wantContainers(math.MaxInt64)
	s.want(s.collect("/box").Code, wire.NotEmpty, "collection of a full container")
	s.close(1)
	s.wantContainers(0, "/box")
	w := s.connect(2)
	w.exists("/box", true)
	w.children("/", true)
	r := s.collect("/box")
	s.wantOK(r, "collection")
	s.wantEvents(r.Events, "2 Deleted /box", "2 ChildrenChanged /")
	s.want(s.collect("/box").Code, wire.NoNode, "second collection")
	s.wantSound()
}

func TestUnusedContainerIsCollectableOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	for _, after := range []int64{0, 100} {
		s := newServer(t, tree.Config{NeverUsedAfter: after})
		c := s.connect(1)
		c.mkContainer("/box")
		s.wantContainers(s.now + 100)
		if after == 0 {
			s.wantContainers(math.MaxInt64)
		} else {
			s.wantContainers(s.now+101, "/box")
		}
	}
}

func TestTTLNodeIsCollectableWhenUnchangedForItsTTL(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{ExtendedTypes: true})
	c := s.connect(1)
	c.mkTTL("/t", 100)
	born := s.now
	s.wantContainers(born + 100)
	s.wantContainers(born+101, "/t")
	s.want(s.collect("/t").Code, wire.BadVersion, "collection before its time")
	s.wantOK(c.set("/t", "", -1), "setData")
	s.wantContainers(s.now + 100)
	changed := s.now
	c.mk("/t/x", 0)
	s.now += 1000
	s.wantContainers(s.now)
	s.want(s.collect("/t").Code, wire.NotEmpty, "collection with a child")
	s.wantOK(c.remove("/t/x", -1), "delete")
	if s.stat("/t").Mtime != changed {
		t.Error("got another mtime after a child was created, want the same")
	}
	s.wantContainers(s.now, "/t")
	s.wantSound()
	s.wantOK(s.collect("/t"), "collection")
	s.wantContainers(math.MaxInt64)
	s.wantSound()
}

func TestCollectorDeletesNothingElse(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/e", 1)
	c.mk("/p", 0)
	for _, path := range []string{"/e", "/p", "/zookeeper/quota", "/zookeeper/config"} {
		s.want(s.collect(path).Code, wire.BadVersion, "collection of "+path)
	}
	s.want(s.collect("/").Code, wire.NotEmpty, "collection of the root")
	s.want(s.collect("nonsense").Code, wire.NoNode, "collection of nothing")
	s.want(c.write(wire.OpDeleteContainer, &wire.PathRequest{Path: "/p"}).Code, wire.Unimplemented,
		"deleteContainer by a client")
	s.wantSound()
}

func TestCollectorNeedsNoPermission(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mkContainer("/box")
	c.mk("/box/x", 0)
	s.wantOK(c.remove("/box/x", -1), "delete")
	s.wantOK(c.setACL("/", readOnlyACL, -1), "setACL")
	s.wantOK(s.collect("/box"), "collection")
	s.wantSound()
}
