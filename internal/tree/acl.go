package tree

// Access lists.

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// acl is an access control list, shared by all nodes that have an equal one.
type acl struct {
	list  []wire.ACL
	world wire.Perms // what any client may do
	open  bool       // the list equals openList
	size  int        // bytes of the list in an answer
}

var (
	anyone   = wire.ID{Scheme: "world", ID: "anyone"}
	openList = []wire.ACL{{Perms: wire.PermAll, ID: anyone}}
)

func newACL(list []wire.ACL) *acl {
	a := &acl{list: list, open: slices.Equal(list, openList)}
	for _, e := range list {
		if e.ID == anyone {
			a.world |= e.Perms
		}
		a.size += entrySize + len(e.ID.Scheme) + len(e.ID.ID)
	}
	return a
}

// intern returns the shared value of a list. The table is bounded, in lists and in bytes. When it is full it starts
// again from empty; nodes keep their lists, but later equal lists do not share memory with them.
func (t *Tree) intern(list []wire.ACL) *acl {
	const limit, room = 4096, 16 << 20
	if slices.Equal(list, openList) {
		return t.open
	}
	t.key = wire.AppendACLs(t.key[:0], list)
	if a, ok := t.lists[string(t.key)]; ok {
		return a
	}
	if len(t.lists) >= limit || t.listed+len(t.key) > room {
		clear(t.lists)
		t.listed = 0
	}
	t.listed += len(t.key)
	a := newACL(list)
	t.lists[string(t.key)] = a
	return a
}

func decodeList(b []byte) ([]wire.ACL, error) {
	d := jute.NewDecoder(b)
	list := wire.DecodeACLs(d)
	if d.Err() != nil || d.Len() != 0 {
		return nil, errRecord
	}
	return list, nil
}

// maxExpanded is how many bytes "auth" may expand to in one list. Each such entry expands to all identities of the
// caller, and a frame has room for many entries.
const maxExpanded = 1 << 20

// normalize turns the list of a request into the list to store: it drops duplicates and replaces "auth" by the caller's
// identities. It reports false if the list is invalid.
func (t *Tree) normalize(c *Caller, list []wire.ACL) (*acl, bool) {
	if slices.Equal(list, openList) {
		return t.open, true
	}
	list = distinct(list)
	var out []wire.ACL
	expanded := 0
	for _, e := range list {
		if e.ID.Scheme != "auth" {
			if !t.validID(e.ID) {
				return nil, false
			}
			out = append(out, e)
			continue
		}
		before := len(out)
		if c != nil {
			for _, id := range c.IDs {
				if authenticated(id.Scheme) {
					if expanded += lengthSize + len(id.Scheme) + len(id.ID); expanded > maxExpanded {
						return nil, false
					}
					out = append(out, wire.ACL{Perms: e.Perms, ID: id})
				}
			}
		}
		if len(out) == before {
			return nil, false
		}
	}
	if len(out) == 0 {
		return nil, false
	}
	return t.intern(out), true
}

// distinct drops exact duplicates. A list may fill a frame, so long ones use a map rather than compare every pair.
func distinct(list []wire.ACL) []wire.ACL {
	const short = 8
	out := make([]wire.ACL, 0, len(list))
	var seen map[wire.ACL]struct{}
	if len(list) > short {
		seen = make(map[wire.ACL]struct{}, len(list))
	}
	for _, e := range list {
		if seen != nil {
			if _, ok := seen[e]; ok {
				continue
			}
			seen[e] = struct{}{}
		} else if slices.Contains(out, e) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// authenticated reports whether "auth" expands to identities of a scheme. As in ZooKeeper, it does not for addresses,
// nor for the superuser, whose scheme has no provider there.
func authenticated(scheme string) bool {
	switch scheme {
	case "digest", "sasl", "x509":
		return true
	}
	return false
}

func (t *Tree) validID(id wire.ID) bool {
	switch id.Scheme {
	case "world":
		return id == anyone
	case "digest":
		// Like Java's String.split, which drops empty parts at the end.
		parts := strings.Split(strings.TrimRight(id.ID, ":"), ":")
		return id.ID != "" && len(parts) == 2
	case "ip":
		_, ok := parseNet(id.ID)
		return ok
	case "sasl":
		return slices.Contains(t.cfg.Schemes, id.Scheme) && validPrincipal(id.ID)
	default:
		return slices.Contains(t.cfg.Schemes, id.Scheme)
	}
}

// validPrincipal accepts name, name@realm and name/host@realm.
func validPrincipal(s string) bool {
	name, realm, ok := strings.Cut(s, "@")
	return !ok || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "/@")
}

// parseNet parses an address with an optional prefix length.
func parseNet(s string) (netip.Prefix, bool) {
	text, bits, limited := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	n := addr.BitLen()
	if limited {
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > addr.BitLen() {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(addr, n), true
}

// allowed reports whether c may do any of want on a node with list a.
func (t *Tree) allowed(c *Caller, a *acl, want wire.Perms) bool {
	if a.world&want != 0 || c == nil || t.cfg.SkipACL || len(a.list) == 0 || c.super() {
		return true
	}
	for _, e := range a.list {
		if e.Perms&want != 0 && c.matches(e.ID) {
			return true
		}
	}
	return false
}

func (c *Caller) super() bool {
	return c.Super || slices.ContainsFunc(c.IDs, func(id wire.ID) bool { return id.Scheme == "super" })
}

func (c *Caller) matches(want wire.ID) bool {
	for _, id := range c.IDs {
		if id == want || id.Scheme == "ip" && want.Scheme == "ip" && inNet(id.ID, want.ID) {
			return true
		}
	}
	return false
}

func inNet(address, network string) bool {
	net, ok := parseNet(network)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddr(address)
	return err == nil && net.Contains(addr.WithZone("").Unmap())
}

// masked returns a list as a caller without ADMIN sees it: without password hashes.
func masked(list []wire.ACL) []wire.ACL {
	out := slices.Clone(list)
	for i := range out {
		id := &out[i].ID
		if user, _, ok := strings.Cut(id.ID, ":"); ok && id.Scheme == "digest" {
			id.ID = user + ":x"
		}
	}
	return out
}
