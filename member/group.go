package member

// Groups of processes that see each other.

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// GroupLayout says which other programs' groups a Group is one with.
type GroupLayout int

// The layouts.
const (
	GroupMember  GroupLayout = iota // Curator's GroupMember: members are named by their ids, and have data
	Party                           // kazoo's Party: the node's data is the id
	ShallowParty                    // kazoo's ShallowParty: the id is in the node's name, so a list shows it
)

// String returns the layout's name.
func (l GroupLayout) String() string {
	switch l {
	case GroupMember:
		return "GroupMember"
	case Party:
		return "Party"
	case ShallowParty:
		return "ShallowParty"
	}
	return fmt.Sprintf("GroupLayout(%d)", int(l))
}

// partyMark is in the names of a Party's nodes.
const partyMark = "__party__"

// GroupConfig says how a Group behaves. The zero GroupConfig is ready to use.
type GroupConfig struct {
	Layout GroupLayout
	ACL    []zk.ACL // of members' nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	_      struct{}
}

// Group is the programs that have joined at a path. It may be used by any number of goroutines.
type Group struct {
	client *zk.Client
	path   string
	cfg    GroupConfig
}

// Member is a program that has joined a group.
type Member struct {
	ID      string
	Data    []byte // with GroupMember, what it has joined with; otherwise the node's data, which holds the id
	Node    string // the path of its node
	Session int64  // that it belongs to
}

// NewGroup returns the group at path, which no other recipe may use. It does not contact the server. It returns an
// error if the path or the configuration is invalid.
func NewGroup(client *zk.Client, path string, cfg GroupConfig) (*Group, error) {
	if err := attempt.Args("member", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	if cfg.Layout < GroupMember || cfg.Layout > ShallowParty {
		return nil, attempt.Bad("member: unknown layout %v; use GroupMember, Party or ShallowParty", cfg.Layout)
	}
	return &Group{client: client, path: path, cfg: cfg}, nil
}

// Path returns the group's path.
func (g *Group) Path() string { return g.path }

// Membership is this program's place in a group, until Leave. It may be used by any number of goroutines.
type Membership struct {
	id   string
	node *Node
}

// Join makes this program a member, and waits until the others can see it. It stays one until Leave: after the end of
// its session it joins again under the next one, which kazoo's Party does not do. With GroupMember, ids must differ: if
// another session has the id, Join waits until that is gone; memberships of one session with one id share a node, with
// the data of the last, until each has left. Party and ShallowParty have no data, and may have members with the same
// id.
//
// If Join fails, nothing is left behind, or its removal goes on in the background. It returns ctx's cause if ctx ends
// first, the client's error if the client was closed, the server's refusal, or an error if the id or the data is
// invalid.
func (g *Group) Join(ctx context.Context, id string, data []byte) (*Membership, error) {
	name, data, err := g.name(id, data)
	if err != nil {
		return nil, err
	}
	node, err := OpenNode(g.client, g.path+"/"+name, data, NodeConfig{ACL: g.cfg.ACL, AnyACL: g.cfg.AnyACL})
	if err != nil {
		return nil, err
	}
	if err := node.Await(ctx); err != nil {
		node.Close()
		return nil, err
	}
	return &Membership{id: id, node: node}, nil
}

// name returns the name and the data of a member's node.
func (g *Group) name(id string, data []byte) (string, []byte, error) {
	if id == "" || !utf8.ValidString(id) {
		return "", nil, attempt.Bad("member: invalid id %.40q; use some letters or digits", id)
	}
	var unique [16]byte
	_, _ = rand.Read(unique[:]) // never fails
	var name string
	switch g.cfg.Layout {
	case GroupMember:
		name = id
	case Party:
		name = hex.EncodeToString(unique[:]) + partyMark
	case ShallowParty:
		name = hex.EncodeToString(unique[:]) + "-" + id
	}
	if strings.Contains(name, "/") || zk.ValidatePath(g.path+"/"+name) != nil {
		const use = "use letters, digits, dots and dashes"
		return "", nil, attempt.Bad("member: id %.40q cannot be in the name of a node; %s", id, use)
	}
	if g.cfg.Layout == GroupMember {
		return name, data, nil
	}
	if data != nil {
		return "", nil, fmt.Errorf("member: members of a %v have no data; pass nil", g.cfg.Layout)
	}
	return name, []byte(id), nil
}

// ID returns the id that the program has joined with.
func (m *Membership) ID() string { return m.id }

// Node returns the path of the membership's node.
func (m *Membership) Node() string { return m.node.Path() }

// Await waits until the others can see this member: it is out for a while after the end of a session. Its errors are
// those of Node.Await.
func (m *Membership) Await(ctx context.Context) error { return m.node.Await(ctx) }

// Set changes the member's data, as Node.Set does. Only members of a GroupMember have data.
func (m *Membership) Set(ctx context.Context, data []byte) error {
	if !strings.HasSuffix(m.node.Path(), "/"+m.id) {
		return errors.New("member: members of a Party or a ShallowParty have no data")
	}
	return m.node.Set(ctx, data)
}

// Leave ends the membership. The node is removed in the background, until it is gone or the session has ended. A second
// Leave does nothing.
func (m *Membership) Leave() { m.node.Close() }

// LeaveWait leaves, and waits until the node is gone. Its errors are those of Node.CloseWait.
func (m *Membership) LeaveWait(ctx context.Context) error { return m.node.CloseWait(ctx) }

// Members returns the members, ordered by the names of their nodes. It sees all that have joined before the call,
// unless the server that it asks has been cut off from the others without noticing. Nodes of others are left out: those
// that are not ephemeral, and those without the layout's name.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	nodes, err := g.open()
	if err != nil {
		return nil, fmt.Errorf("member: %w", err)
	}
	defer nodes.Close()
	if err := nodes.WaitSynced(ctx); err != nil {
		return nil, fmt.Errorf("member: members of %s: %w", g.path, err)
	}
	if err := nodes.Sync(ctx); err != nil {
		return nil, fmt.Errorf("member: members of %s: %w", g.path, err)
	}
	return g.members(nodes.View()), nil
}

// Watch yields the members: now, and after every change, of their data, too. A slow caller misses changes, but never
// the last one. Watch continues across reconnects and sessions; without a connection, or while the server refuses, what
// it yielded last may be outdated. After an outage it may yield a list without those, this program among them, who have
// not joined again yet.
//
// It yields a refusal only before anything else; a caller that continues its loop waits until the server relents. It
// ends with an error: ctx's cause, the client's error if the client is closed, or cache.ErrServer.
func (g *Group) Watch(ctx context.Context) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		nodes, err := g.open()
		if err != nil {
			yield(nil, fmt.Errorf("member: %w", err))
			return
		}
		defer nodes.Close()
		var last []Member
		told := false
		for view, err := range nodes.Views(ctx) {
			if err != nil {
				if !yield(nil, fmt.Errorf("member: members of %s: %w", g.path, err)) {
					return
				}
				continue
			}
			now := g.members(view)
			if told && same(last, now) {
				continue
			}
			last, told = now, true
			if !yield(now, nil) {
				return
			}
		}
	}
}

// open opens a cache of the nodes.
func (g *Group) open() (*cache.Children, error) {
	return cache.OpenChildren(g.client, g.path, cache.Config{ACL: g.cfg.ACL, AnyACL: g.cfg.AnyACL})
}

// members returns the members among the nodes.
func (g *Group) members(view *cache.View) []Member {
	var all []Member
	for e := range view.Children(g.path) {
		name := e.Path[len(g.path)+1:]
		id, ok := g.id(name, e.Data)
		if ok && e.EphemeralOwner != 0 {
			all = append(all, Member{ID: id, Data: e.Data, Node: e.Path, Session: e.EphemeralOwner})
		}
	}
	return all
}

// id returns the id of a member's node. It returns false for other nodes.
func (g *Group) id(name string, data []byte) (string, bool) {
	switch g.cfg.Layout {
	case GroupMember:
		return name, true
	case Party:
		return string(data), strings.Contains(name, partyMark)
	case ShallowParty:
		_, id, ok := strings.Cut(name, "-")
		return id, ok
	}
	return "", false
}

func same(a, b []Member) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		if x.ID != y.ID || x.Node != y.Node || x.Session != y.Session || !bytes.Equal(x.Data, y.Data) {
			return false
		}
	}
	return true
}
