package interop_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

const cachedRoot = "/cached"

// TestCachesShowWhatThoseOfThePeersShow has a cache of each project follow one tree, while each of them changes it, is
// killed or loses its session.
//
// Promise: 15
func TestCachesShowWhatThoseOfThePeersShow(t *testing.T) {
	t.Parallel()
	needJava(t)
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		c := cached{t: t, host: h, link: zktest.Proxy(t, h.addr)}
		c.client = c.link.Client(t, groupSession)
		c.set(cachedRoot, "r")
		c.start("Curator")
		c.start("kazoo")
		var err error
		if c.tree, err = cache.OpenTree(c.client, cachedRoot, cache.Config{}); err != nil {
			t.Fatal(err)
		}
		defer c.tree.Close()
		c.await("/cached=r")

		c.set("/cached/ours", "1")
		c.await("/cached=r", "/cached/ours=1")
		c.order("Curator", "set /cached/theirs 2")
		c.order("kazoo", "set /cached/theirs/below 3")
		c.order("Curator", "set /cached/ours 4")
		c.order("kazoo", "set /cached s")
		c.await("/cached=s", "/cached/ours=4", "/cached/theirs=2", "/cached/theirs/below=3")
		c.order("Curator", "delete /cached/ours")
		c.order("kazoo", "delete /cached/theirs")
		c.set("/cached/ours", "5")
		c.await("/cached=s", "/cached/ours=5")

		for _, name := range []string{"Curator", "kazoo"} {
			c.order(name, "mark /cached/alive "+name)
			c.await("/cached=s", "/cached/alive="+name, "/cached/ours=5")
			c.peer(name).kill()
			*c.slot(name) = nil
			c.await("/cached=s", "/cached/ours=5") // when its session has ended
			c.start(name)
			c.await("/cached=s", "/cached/ours=5")
		}

		sess, err := c.client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sess.Create(t.Context(), "/cached/alive", []byte("ours"), zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		c.await("/cached=s", "/cached/alive=ours", "/cached/ours=5")
		c.link.Cut()
		c.order("kazoo", "delete /cached/ours") // and created again, while ours does not see it
		c.order("Curator", "set /cached/ours 6")
		c.link.ExpireSession(sess.ID())
		c.link.Heal()
		c.await("/cached=s", "/cached/ours=6")
	})
}

// cached is a tree and those who follow it.
type cached struct {
	t      *testing.T
	host   *host
	link   *zktest.Link
	client *zk.Client
	tree   *cache.Tree

	curators, kazoos *queuePeer
}

func (c *cached) slot(name string) **queuePeer {
	if name == "Curator" {
		return &c.curators
	}
	return &c.kazoos
}

func (c *cached) peer(name string) *queuePeer { return *c.slot(name) }

func (c *cached) order(name, order string) {
	c.t.Helper()
	c.peer(name).order(c.t, "%s", order)
}

// start starts a peer's process.
func (c *cached) start(name string) {
	c.t.Helper()
	args := []string{c.host.addr, millis(groupSession), cachedRoot}
	if name == "Curator" {
		c.curators = startQueuePeer(c.t, "java", ownArgs(c.t, "CachePeer", args...)...)
	} else {
		c.kazoos = startQueuePeer(c.t, python, append([]string{"testdata/cache_peer.py"}, args...)...)
	}
}

// set creates a node, or sets it.
func (c *cached) set(path, data string) {
	c.t.Helper()
	_, err := c.client.Create(c.t.Context(), path, []byte(data), zk.Persistent)
	if errors.Is(err, zk.NodeExists) {
		_, err = c.client.Set(c.t.Context(), path, []byte(data), -1)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// await waits until all caches have these nodes, and no others.
func (c *cached) await(nodes ...string) {
	c.t.Helper()
	want := strings.Join(nodes, ",")
	ctx, cancel := context.WithTimeout(c.t.Context(), queuePatience)
	defer cancel()
	got := ""
	for view, err := range c.tree.Views(ctx) {
		if err != nil {
			c.t.Fatalf("got %s, want %s: %v", got, want, err)
		}
		var all []string
		for e := range view.All() {
			all = append(all, e.Path+"="+string(e.Data))
		}
		if got = strings.Join(all, ","); got == want {
			break
		}
	}
	for _, p := range []*queuePeer{c.curators, c.kazoos} {
		if p != nil {
			p.order(c.t, "await %s", want)
		}
	}
}
