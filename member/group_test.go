package member_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zktest"
)

var layouts = []member.GroupLayout{member.GroupMember, member.Party, member.ShallowParty}

func group(t *testing.T, client *zk.Client, l member.GroupLayout) *member.Group {
	t.Helper()
	g, err := member.NewGroup(client, "/app/group", member.GroupConfig{Layout: l})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func join(t *testing.T, g *member.Group, id string, data []byte) *member.Membership {
	t.Helper()
	m, err := g.Join(within(t), id, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

// ids returns the sorted ids of members.
func ids(all []member.Member) []string {
	var list []string
	for _, m := range all {
		list = append(list, m.ID)
	}
	slices.Sort(list)
	return list
}

// awaitMembers waits until the group has exactly these members.
func awaitMembers(t *testing.T, g *member.Group, want ...string) []member.Member {
	t.Helper()
	var last []string
	for all, err := range g.Watch(within(t)) {
		if err != nil {
			t.Fatalf("waiting for %v, got %v: %v", want, last, err)
		}
		if last = ids(all); slices.Equal(last, want) {
			return all
		}
	}
	return nil
}

// Promise: 16
func TestMembersSeeEachOther(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			one, two := group(t, srv.Client(t, time.Minute), layout), group(t, srv.Client(t, time.Minute), layout)
			if all, err := one.Members(within(t)); err != nil || len(all) > 0 {
				t.Fatalf("%v, %v before the first one joins", all, err)
			}
			a := join(t, one, "a", nil)
			b := join(t, two, "b", nil)
			for _, g := range []*member.Group{one, two} {
				all, err := g.Members(within(t))
				if err != nil || !slices.Equal(ids(all), []string{"a", "b"}) {
					t.Fatalf("%v, %v", all, err)
				}
			}
			if err := a.LeaveWait(within(t)); err != nil {
				t.Fatal(err)
			}
			if all, err := two.Members(within(t)); err != nil || !slices.Equal(ids(all), []string{"b"}) {
				t.Errorf("%v, %v after a has left", all, err)
			}
			b.Leave()
			awaitMembers(t, one)
		})
	}
}

// holdSync holds a session's syncs, and tells when the first one is there.
func holdSync(t *testing.T, srv *zktest.Server, id int64) (arrived <-chan struct{}, release func()) {
	t.Helper()
	reached := make(chan struct{})
	held, release := context.WithCancel(t.Context())
	var once sync.Once
	srv.Control(func(r zktest.Request) zktest.Fault {
		if r.Session != id || r.Op != zktest.OpSync {
			return zktest.Pass
		}
		once.Do(func() { close(reached) })
		return zktest.Until(held)
	})
	return reached, release
}

// A server may lag behind the one at which another program has joined. So the list is what there is behind a sync.
func TestMembersAreThoseBehindASync(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client := srv.Client(t, time.Minute)
	arrived, release := holdSync(t, srv, sessionOf(t, client).ID())
	listed := make(chan []member.Member, 1)
	go func() {
		all, err := group(t, client, member.Party).Members(within(t))
		if err != nil {
			t.Error(err)
		}
		listed <- all
	}()
	select {
	case <-arrived:
	case all := <-listed:
		t.Fatalf("%v without a sync", all)
	}
	join(t, group(t, srv.Client(t, time.Minute), member.Party), "a", nil)
	release()
	if all := <-listed; !slices.Equal(ids(all), []string{"a"}) {
		t.Errorf("%v", all)
	}
}

// kazoo's Party forgets its member when the session expires.
//
// Promise: 16
func TestMemberJoinsAgainUnderItsNextSession(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		srv := server(t)
		g := group(t, srv.Client(t, time.Minute), layout)
		join(t, g, "a", nil)
		before := awaitMembers(t, g, "a")
		srv.ExpireSession(before[0].Session)
		for all, err := range g.Watch(within(t)) {
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 1 && all[0].ID == "a" && all[0].Session != before[0].Session {
				if all[0].Node != before[0].Node {
					t.Errorf("%v: at %s instead of %s", layout, all[0].Node, before[0].Node)
				}
				break
			}
		}
	}
}

// Promise: 16
func TestDataOfMembersIsSeenAndFollowed(t *testing.T) {
	t.Parallel()
	srv := server(t)
	g := group(t, srv.Client(t, time.Minute), member.GroupMember)
	m := join(t, g, "a", []byte("one"))
	if all := awaitMembers(t, g, "a"); string(all[0].Data) != "one" || all[0].Node != m.Node() {
		t.Errorf("%+v", all[0])
	}
	if err := m.Set(within(t), []byte("two")); err != nil {
		t.Fatal(err)
	}
	for all, err := range g.Watch(within(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if string(all[0].Data) == "two" {
			break
		}
	}
	party := group(t, srv.Client(t, time.Minute), member.ShallowParty)
	if _, err := party.Join(within(t), "a", []byte("data")); err == nil {
		t.Error("a party's member has data")
	}
	if err := join(t, party, "b", nil).Set(within(t), []byte("x")); err == nil {
		t.Error("a party's member sets data")
	}
}

// Promise: 16
func TestNodesOfOthersAreNotMembers(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		srv := server(t)
		sess := srv.Session(t, time.Minute)
		g := group(t, srv.Client(t, time.Minute), layout)
		join(t, g, "a", nil)
		if _, err := sess.Create(t.Context(), g.Path()+"/config", nil, zk.Persistent); err != nil {
			t.Fatal(err)
		}
		if layout != member.GroupMember {
			if _, err := sess.Create(t.Context(), g.Path()+"/stranger", nil, zk.Ephemeral); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := g.Members(within(t)); err != nil || !slices.Equal(ids(all), []string{"a"}) {
			t.Errorf("%v: %v, %v", layout, ids(all), err)
		}
	}
}

// Promise: 16
func TestTwoMembersOfAPartyMayHaveOneID(t *testing.T) {
	t.Parallel()
	srv := server(t)
	g := group(t, srv.Client(t, time.Minute), member.Party)
	join(t, g, "a", nil)
	join(t, g, "a", nil)
	awaitMembers(t, g, "a", "a")
}

// Promise: 16
func TestIDThatAnotherMemberHasIsWaitedFor(t *testing.T) {
	t.Parallel()
	srv := server(t)
	one := group(t, srv.Client(t, time.Minute), member.GroupMember)
	two := group(t, srv.Client(t, time.Minute), member.GroupMember)
	first := join(t, one, "a", []byte("first"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := two.Join(ctx, "a", []byte("second")); err == nil {
		t.Fatal("two members have one id")
	}
	if all := awaitMembers(t, one, "a"); string(all[0].Data) != "first" {
		t.Errorf("data %q", all[0].Data)
	}
	first.Leave()
	join(t, two, "a", []byte("second"))
}

// Promise: 16
func TestJoinThatFailsLeavesNoMember(t *testing.T) {
	t.Parallel()
	srv := server(t)
	first := join(t, group(t, srv.Client(t, time.Minute), member.GroupMember), "a", nil)
	client := srv.Client(t, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := group(t, client, member.GroupMember).Join(ctx, "a", nil); err == nil {
		t.Fatal("two members have one id")
	}
	if err := first.LeaveWait(within(t)); err != nil {
		t.Fatal(err)
	}
	for range 20 { // a member that had been left behind would be created between these
		if _, there, err := client.Exists(t.Context(), first.Node()); there || err != nil {
			t.Fatalf("there after Join has failed: %v, %v", there, err)
		}
	}
}

func TestBadInputOfGroupsIsRefused(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t, time.Minute)
	for _, path := range []string{"", "x", "/", "/zookeeper/x"} {
		if _, err := member.NewGroup(client, path, member.GroupConfig{}); err == nil {
			t.Errorf("path %q is accepted", path)
		}
	}
	if _, err := member.NewGroup(client, "/x", member.GroupConfig{Layout: 9}); err == nil {
		t.Error("layout 9 is accepted")
	}
	for _, id := range []string{"", "a/b", "a\x00b", "\xff", ".", ".."} {
		if _, err := group(t, client, member.GroupMember).Join(t.Context(), id, nil); err == nil {
			t.Errorf("id %q is accepted", id)
		} else if !strings.HasPrefix(err.Error(), "member: ") {
			t.Error(err)
		}
	}
}

// A right that is missing at one moment does not end a watch.
//
// Promise: 16
func TestWatchOfAGroupOutlivesARefusal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T, srv *zktest.Server) {
		join(t, group(t, srv.Client(t, time.Minute), member.GroupMember), "a", nil)
		sess := srv.Session(t, time.Minute)
		setACL(t, sess, "/app/group", closed)
		refused := false
		for all, err := range group(t, srv.Client(t, time.Minute), member.GroupMember).Watch(within(t)) {
			if errors.Is(err, zk.NoAuth) {
				refused = true
				setACL(t, sess, "/app/group", zk.OpenACL())
				continue
			}
			if err != nil || !refused || !slices.Equal(ids(all), []string{"a"}) {
				t.Errorf("got %v, %v, after a refusal: %t, want the member after one", ids(all), err, refused)
			}
			return
		}
		t.Error("the watch ended with the refusal")
	})
}
