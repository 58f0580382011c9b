package interop_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

// groupSession is the timeout of peers' sessions, and how long a killed member stays in the group.
const groupSession = 12 * time.Second

// TestGroupsAreSharedWithThePeers has members of both sides in one group. Each side sees the other's come, leave and
// die.
func TestGroupsAreSharedWithThePeers(t *testing.T) {
	t.Parallel()
	needJava(t)
	peer.Need(t, python, kazooDir)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for _, layout := range []member.GroupLayout{member.GroupMember, member.Party, member.ShallowParty} {
			t.Run(layout.String(), func(t *testing.T) {
				t.Parallel()
				path := "/groups/" + layout.String()
				g, err := member.NewGroup(client, path, member.GroupConfig{Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				var p *queuePeer
				if layout == member.GroupMember {
					p = startQueuePeer(t, "java", ownArgs(t, "GroupPeer", h.addr, millis(groupSession), path)...)
				} else {
					p = startQueuePeer(t, python, "testdata/party_peer.py", h.addr, millis(groupSession), path,
						layout.String())
				}
				link := zktest.Proxy(t, h.addr)
				other, err := member.NewGroup(link.Client(t, groupSession), path, member.GroupConfig{Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				shareGroup(t, g, p, layout == member.GroupMember)
				cutOff(t, g, other, link, p)
				p.kill()
				awaitGroup(t, g)
			})
		}
	})
}

// shareGroup has members of ours and of the peer's join and leave.
func shareGroup(t *testing.T, g *member.Group, p *queuePeer, data bool) {
	t.Helper()
	with := func(id, data string) string {
		if g.Path() == "/groups/GroupMember" {
			return id + "=" + data
		}
		return id
	}
	p.order(t, "join theirs one")
	awaitGroup(t, g, with("theirs", "one"))
	var mine []byte
	if data {
		mine = []byte("two")
	}
	ours, err := g.Join(t.Context(), "ours", mine)
	if err != nil {
		t.Fatal(err)
	}
	p.order(t, "await theirs %s,%s", with("ours", "two"), with("theirs", "one"))
	if data {
		if err := ours.Set(t.Context(), []byte("three")); err != nil {
			t.Fatal(err)
		}
		p.order(t, "await theirs ours=three,theirs=one")
		p.order(t, "set theirs four")
		awaitGroup(t, g, "ours=three", "theirs=four")
	}
	if err := ours.LeaveWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.order(t, "await theirs %s", with("theirs", "four"))
	p.order(t, "join other x")
	awaitGroup(t, g, with("other", "x"), with("theirs", "four"))
	p.order(t, "leave theirs")
	awaitGroup(t, g, with("other", "x"))
}

// cutOff has a member of ours that says no more, as if its process were killed. Other is g, for a client on the link.
func cutOff(t *testing.T, g, other *member.Group, link *zktest.Link, p *queuePeer) {
	t.Helper()
	theirs, ours := "other", "killed"
	var data []byte
	if g.Path() == "/groups/GroupMember" {
		theirs, ours, data = "other=x", "killed=y", []byte("y")
	}
	if _, err := other.Join(t.Context(), "killed", data); err != nil {
		t.Fatal(err)
	}
	p.order(t, "await other %s,%s", ours, theirs)
	link.Cut()
	p.order(t, "await other %s", theirs)
	awaitGroup(t, g, theirs)
}

// awaitGroup waits until these are the members, with their data if they have any of their own.
func awaitGroup(t *testing.T, g *member.Group, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), queuePatience)
	defer cancel()
	var got []string
	for all, err := range g.Watch(ctx) {
		if err != nil {
			t.Fatalf("waiting for %v, got %v: %v", want, got, err)
		}
		got = nil
		for _, m := range all {
			if id := m.ID; string(m.Data) == id {
				got = append(got, id)
			} else {
				got = append(got, id+"="+string(m.Data))
			}
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
	}
}

// TestTTLNodesAreThoseOfCurator keeps the same node with both sides, one after the other.
func TestTTLNodesAreThoseOfCurator(t *testing.T) {
	t.Parallel()
	needJava(t)
	onEach(t, options{}, func(t *testing.T, h *host) {
		t.Helper()
		const path = "/ttl-beside-curator/node"
		p := startQueuePeer(t, "java", ownArgs(t, "GroupPeer", h.addr, millis(groupSession), "/unused")...)
		p.order(t, "ttl %s 60000 theirs", path)
		client, err := zk.Open(t.Context(), zk.Config{Servers: h.addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		n, err := member.OpenNode(client, path, []byte("ours"), member.NodeConfig{
			Mode: member.Persistent, TTL: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		if err := n.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		sess, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		children, _, err := sess.Children(t.Context(), path)
		if err != nil || !slices.Equal(children, []string{"touch"}) {
			t.Errorf("children %v, %v", children, err)
		}
	})
}
