package tree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

var (
	alice = wire.ID{Scheme: "digest", ID: "alice:hashA="}
	bob   = wire.ID{Scheme: "digest", ID: "bob:hashB="}
	world = wire.ID{Scheme: "world", ID: "anyone"}
)

func entry(perms wire.Perms, id wire.ID) wire.ACL { return wire.ACL{Perms: perms, ID: id} }

func (c *client) getACL(path string) ([]wire.ACL, wire.Code) {
	body, code, _ := c.read(wire.OpGetACL, &wire.PathRequest{Path: path})
	r, ok := body.(*wire.ACLResponse)
	if !ok {
		return nil, code
	}
	return r.ACL, code
}

func TestIdentitiesThatAccessListsMayName(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	sasl := newServer(t, tree.Config{Schemes: []string{"sasl", "x509"}})
	c, d := s.connect(1), sasl.connect(1)
	for _, row := range []struct {
		scheme, id string
		plain      bool
		more       bool // with sasl and x509
	}{
		{"world", "anyone", true, true},
		{"world", "", false, false},
		{"world", "Anyone", false, false},
		{"digest", "a:b", true, true},
		{"digest", ":x", true, true},
		{"digest", "a:b:", true, true},
		{"digest", "a:b::", true, true},
		{"digest", "a:", false, false},
		{"digest", "a", false, false},
		{"digest", ":", false, false},
		{"digest", "", false, false},
		{"digest", "a:b:c", false, false},
		{"digest", "a::b", false, false},
		{"ip", "10.0.0.1", true, true},
		{"ip", "10.0.0.0/8", true, true},
		{"ip", "10.0.0.0/0", true, true},
		{"ip", "10.0.0.0/32", true, true},
		{"ip", "10.0.0.0/33", false, false},
		{"ip", "10.0.0.0/-1", false, false},
		{"ip", "10.0.0.0/", false, false},
		{"ip", "10.0.0.0/x", false, false},
		{"ip", "10.0.0", false, false},
		{"ip", "256.0.0.1", false, false},
		{"ip", "localhost", false, false},
		{"ip", "", false, false},
		{"ip", "::1", true, true},
		{"ip", "fe80::/10", true, true},
		{"ip", "fe80::/128", true, true},
		{"ip", "fe80::/129", false, false},
		{"ip", "fe80::1%eth0", false, false},
		{"super", "", false, false},
		{"super", "admin", false, false},
		{"", "", false, false},
		{"nobody", "x", false, false},
		{"sasl", "alice", false, true},
		{"sasl", "alice/host@REALM", false, true},
		{"sasl", "a@b@c", false, false},
		{"sasl", "a/b/c@d", false, false},
		{"x509", "CN=alice", false, true},
	} {
		for at, want := range map[*client]bool{c: row.plain, d: row.more} {
			at.s.zxid++
			r := at.write(wire.OpCreate, &wire.CreateRequest{
				Path: fmt.Sprintf("/n%d", at.s.zxid),
				ACL:  []wire.ACL{entry(31, wire.ID{Scheme: row.scheme, ID: row.id})},
			})
			if got := r.Code == wire.OK; got != want || !got && r.Code != wire.InvalidACL {
				t.Errorf("%s:%s: got %v, want ok %t", row.scheme, row.id, r.Code, want)
			}
		}
	}
}

func TestListsAreNormalized(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{Schemes: []string{"sasl"}})
	c := s.connect(1, alice, bob, wire.ID{Scheme: "sasl", ID: "carol"})
	c.Super = true
	long := make([]wire.ACL, 0, 40)
	for i := range 20 {
		long = append(long, entry(wire.Perms(i), alice), entry(wire.Perms(i), alice))
	}
	short := make([]wire.ACL, 0, 20)
	for i := range 20 {
		short = append(short, entry(wire.Perms(i), alice))
	}
	for i, row := range []struct{ ask, want []wire.ACL }{
		{[]wire.ACL{entry(31, world), entry(31, world)}, openACL},
		{[]wire.ACL{entry(1, world), entry(31, world), entry(1, world)}, []wire.ACL{entry(1, world), entry(31, world)}},
		{[]wire.ACL{entry(0, world)}, []wire.ACL{entry(0, world)}},
		{[]wire.ACL{entry(-1, world)}, []wire.ACL{entry(-1, world)}},
		{creatorACL, []wire.ACL{entry(31, alice), entry(31, bob), entry(31, wire.ID{Scheme: "sasl", ID: "carol"})}},
		{
			[]wire.ACL{entry(1, world), entry(3, wire.ID{Scheme: "auth", ID: "ignored"})},
			[]wire.ACL{entry(1, world), entry(3, alice), entry(3, bob), entry(3, wire.ID{Scheme: "sasl", ID: "carol"})},
		},
		{long, short},
		{nil, nil},
		{[]wire.ACL{}, nil},
		{[]wire.ACL{entry(31, world), entry(31, wire.ID{Scheme: "nobody"})}, nil},
	} {
		path := fmt.Sprintf("/n%d", i)
		r := c.write(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: row.ask})
		if row.want == nil {
			s.want(r.Code, wire.InvalidACL, path)
			continue
		}
		s.wantOK(r, path)
		if got, _ := c.getACL(path); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", path, got, row.want)
		}
	}
	for id, nobody := range []*client{s.connect(2), s.connect(3, wire.ID{Scheme: "super"})} {
		r := nobody.write(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/x%d", id), ACL: creatorACL})
		s.want(r.Code, wire.InvalidACL, "auth without an identity but the address or the super user's")
	}
	s.wantSound()
}

func TestPermissionThatEachOperationNeeds(t *testing.T) {
	t.Parallel()
	const r, w, cr, del, adm = wire.PermRead, wire.PermWrite, wire.PermCreate, wire.PermDelete, wire.PermAdmin
	for _, row := range []struct {
		name string
		any  wire.Perms // any of these suffices; -1 if none is needed
		run  func(c *client) wire.Code
	}{
		{"create", cr, func(c *client) wire.Code { return c.create("/p/new", "", 0).Code }},
		{"createContainer", cr, func(c *client) wire.Code {
			return c.write(wire.OpCreateContainer, createRequest("/p/new", "", 4)).Code
		}},
		{"delete", del, func(c *client) wire.Code { return c.remove("/p/x", -1).Code }},
		{"getData", r, func(c *client) wire.Code { _, code := c.get("/p", false); return code }},
		{"exists", r, func(c *client) wire.Code { return c.exists("/p", false) }},
		{"getChildren", r, func(c *client) wire.Code { _, code := c.children("/p", false); return code }},
		{"getChildren2", r, func(c *client) wire.Code {
			_, code, _ := c.read(wire.OpGetChildren2, &wire.PathWatchRequest{Path: "/p"})
			return code
		}},
		{"getAllChildrenNumber", r, func(c *client) wire.Code {
			_, code, _ := c.read(wire.OpGetAllChildren, &wire.PathRequest{Path: "/p"})
			return code
		}},
		{"check", r, func(c *client) wire.Code {
			return c.multi(sub(wire.OpCheck, &wire.CheckRequest{
				Path:    "/p",
				Version: -1,
			})).Body.(*wire.MultiResponse).Results[0].Err
		}},
		{"setData", w, func(c *client) wire.Code { return c.set("/p", "", -1).Code }},
		{"getACL", r | adm, func(c *client) wire.Code { _, code := c.getACL("/p"); return code }},
		{"setACL", adm, func(c *client) wire.Code { return c.setACL("/p", openACL, -1).Code }},
		{"sync", -1, func(c *client) wire.Code {
			_, code, _ := c.read(wire.OpSync, &wire.PathRequest{Path: "/p"})
			return code
		}},
		{"addWatch", -1, func(c *client) wire.Code { return c.addWatch("/p", 0) }},
		{"getEphemerals", -1, func(c *client) wire.Code {
			_, code, _ := c.read(wire.OpGetEphemerals, &wire.EphemeralsRequest{Prefix: "/p"})
			return code
		}},
	} {
		for _, perms := range []wire.Perms{0, r, w, cr, del, adm, wire.PermAll &^ row.any, row.any | 64} {
			for _, skip := range []bool{false, true} {
				try := func(owner bool, want bool) {
					s := newServer(t, tree.Config{SkipACL: skip})
					c, stranger := s.connect(1, alice), s.connect(2)
					c.mk("/p", 0)
					c.mk("/p/x", 0)
					s.wantOK(c.setACL("/p", []wire.ACL{entry(perms, alice)}, -1), "setACL")
					if !owner {
						c = stranger
					}
					if got := row.run(c); (got == wire.OK) != want || !want && got != wire.NoAuth {
						t.Errorf("%s with %b, skip %t, owner %t: got %v, want ok %t", row.name, perms, skip, owner,
							got, want)
					}
				}
				try(true, skip || row.any < 0 || perms&row.any != 0)
				try(false, skip || row.any < 0)
			}
		}
	}
}

func TestAbsenceIsReportedBeforePermissions(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	s.wantOK(c.setACL("/", []wire.ACL{entry(0, alice)}, -1), "setACL of the root")
	_, code := c.get("/none", false)
	s.want(code, wire.NoNode, "getData")
	s.want(c.exists("/none", false), wire.NoNode, "exists")
	s.want(c.set("/none", "", -1).Code, wire.NoNode, "setData")
	s.want(c.setACL("/none", openACL, -1).Code, wire.NoNode, "setACL")
	// The parent's permissions are checked before the child's existence.
	s.want(c.create("/none", "", 0).Code, wire.NoAuth, "create")
	s.want(c.create("/zookeeper", "", 0).Code, wire.NoAuth, "create of what exists")
	s.want(c.remove("/none", -1).Code, wire.NoAuth, "delete")
	s.wantSound()
}

func TestSuperMayDoEverything(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/p", 0)
	s.wantOK(c.setACL("/p", []wire.ACL{entry(0, alice)}, -1), "setACL")
	_, code := c.get("/p", false)
	s.want(code, wire.NoAuth, "getData")
	flagged, named := s.attach(1, 8), s.attach(1, 9, wire.ID{Scheme: "super"})
	flagged.Super = true
	for _, super := range []*client{flagged, named} {
		_, code := super.get("/p", false)
		s.want(code, wire.OK, "getData")
		s.wantOK(super.create("/p/x", "", 0), "create")
		s.wantOK(super.remove("/p/x", -1), "delete")
		s.wantOK(super.set("/zookeeper/config", "x", -1), "setData of the configuration")
	}
}

func TestAddressesMatchByPrefix(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		net, address string
		want         bool
	}{
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"10.1.2.0/24", "10.1.2.77", true},
		{"10.1.2.99/24", "10.1.2.77", true},
		{"10.1.2.0/24", "10.1.3.77", false},
		{"0.0.0.0/0", "1.2.3.4", true},
		{"0.0.0.0/0", "::1", false},
		{"10.1.2.3", "::ffff:10.1.2.3", true},
		{"::1", "::1", true},
		{"fe80::/10", "fe80::1%eth0", true},
		{"fe80::/10", "2001:db8::1", false},
		{"2001:db8::/33", "2001:db8:7fff::1", true},
		{"2001:db8::/33", "2001:db8:8000::1", false},
		{"10.0.0.0/8", "nonsense", false},
	} {
		s := newServer(t, tree.Config{})
		c := s.connect(1)
		r := c.write(wire.OpCreate, &wire.CreateRequest{
			Path: "/n",
			ACL:  []wire.ACL{entry(1, wire.ID{Scheme: "ip", ID: row.net})},
		})
		s.wantOK(r, row.net)
		c.IDs = []wire.ID{{Scheme: "ip", ID: row.address}}
		if _, code := c.get("/n", false); (code == wire.OK) != row.want {
			t.Errorf("%s for %s: got %v", row.address, row.net, code)
		}
	}
}

func TestHashesAreHiddenFromReaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, reader, stranger := s.connect(1, alice), s.connect(2, bob), s.connect(3)
	ip := wire.ID{Scheme: "ip", ID: "1.2.3.4"}
	list := []wire.ACL{entry(31, alice), entry(1, bob), entry(1, ip)}
	s.wantOK(c.write(wire.OpCreate, &wire.CreateRequest{Path: "/n", ACL: list}), "create")
	if got, code := c.getACL("/n"); code != wire.OK || !slices.Equal(got, list) {
		t.Errorf("with ADMIN: got %v, want %v", got, list)
	}
	masked := []wire.ACL{
		entry(31, wire.ID{Scheme: "digest", ID: "alice:x"}), entry(1, wire.ID{Scheme: "digest", ID: "bob:x"}),
		entry(1, ip),
	}
	for range 2 {
		if got, code := reader.getACL("/n"); code != wire.OK || !slices.Equal(got, masked) {
			t.Errorf("without ADMIN: got %v, want %v", got, masked)
		}
	}
	if got, code := stranger.getACL("/n"); code != wire.NoAuth {
		t.Errorf("without READ: got %v %v", got, code)
	}
	s.wantSound()
}

func TestManyDifferentListsWork(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/n", 0)
	for i := range 10000 {
		list := []wire.ACL{entry(31, world), entry(1, wire.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:x", i)})}
		s.wantOK(c.setACL("/n", list, -1), "setACL")
	}
	s.wantSound()
}

func TestListThatExpandsTooMuchIsInvalid(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for i := range 50 {
		c.IDs = append(c.IDs, wire.ID{Scheme: "digest", ID: fmt.Sprintf("%d%s:hash", i, strings.Repeat("u", 1000))})
	}
	list := func(n int) []wire.ACL {
		var list []wire.ACL
		for i := range n {
			list = append(list, wire.ACL{Perms: wire.Perms(32 + i), ID: wire.ID{Scheme: "auth"}})
		}
		return list
	}
	create := func(path string, n int) wire.Code {
		return c.write(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: list(n)}).Code
	}
	if code := create("/few", 20); code != wire.OK {
		t.Errorf("20 entries: got %v, want OK", code)
	}
	if code := create("/many", 20_000); code != wire.InvalidACL {
		t.Errorf("20,000 entries for 50 identities of 1 KB: got %v, want %v", code, wire.InvalidACL)
	}
}
