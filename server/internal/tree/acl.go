package tree

// Access lists.

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// acl is an access control list, shared by all nodes that have an equal one. It is parsed once: what it costs to check
// a caller must not grow with the list, because a list may fill a frame, and a frame may have as many checks.
type acl struct {
	list  []wire.ACL
	world wire.Perms // what any client may do
	open  bool       // the list equals openList
	size  int        // bytes of the list in an answer
	ids   map[uint64]grant
	nets  map[netip.Prefix]wire.Perms // of the entries with the scheme ip, masked
	bits  [2][]int                    // the lengths of nets that occur, for IPv4 and for IPv6
	clash []wire.ACL                  // entries whose hash another identity has
}

// grant is what a list grants to one identity, the one of its first entry.
type grant struct {
	perms wire.Perms
	first int
}

// idSeed makes the hashes of identities unpredictable.
var idSeed = maphash.MakeSeed()

var (
	anyone   = wire.ID{Scheme: "world", ID: "anyone"}
	openList = []wire.ACL{{Perms: wire.PermAll, ID: anyone}}
)

func newACL(list []wire.ACL) *acl {
	a := &acl{list: list, open: slices.Equal(list, openList)}
	for i, e := range list {
		a.size += entrySize + len(e.ID.Scheme) + len(e.ID.ID)
		switch net, ok := parseNet(e.ID.ID); {
		case e.ID == anyone:
			a.world |= e.Perms
		case e.ID.Scheme != "ip":
			a.grantTo(i, e)
		case ok:
			a.grantNet(net.Masked(), e.Perms)
		}
	}
	return a
}

func (a *acl) grantTo(i int, e wire.ACL) {
	if a.ids == nil {
		a.ids = map[uint64]grant{}
	}
	h := maphash.Comparable(idSeed, e.ID)
	g, taken := a.ids[h]
	switch {
	case !taken:
		g = grant{first: i}
	case a.list[g.first].ID != e.ID:
		a.clash = append(a.clash, e)
		return
	}
	g.perms |= e.Perms
	a.ids[h] = g
}

func (a *acl) grantNet(net netip.Prefix, perms wire.Perms) {
	if a.nets == nil {
		a.nets = map[netip.Prefix]wire.Perms{}
	}
	a.nets[net] |= perms
	lengths := &a.bits[family(net.Addr())]
	if !slices.Contains(*lengths, net.Bits()) {
		*lengths = append(*lengths, net.Bits())
	}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// grants returns what the list grants to an identity with the given hash.
func (a *acl) grants(id wire.ID, hash uint64) (perms wire.Perms) {
	if id.Scheme == "ip" {
		return a.grantsAddress(id.ID)
	}
	if g, ok := a.ids[hash]; ok && a.list[g.first].ID == id {
		perms = g.perms
	}
	for _, e := range a.clash {
		if e.ID == id {
			perms |= e.Perms
		}
	}
	return perms
}

func (a *acl) grantsAddress(text string) (perms wire.Perms) {
	if len(a.nets) == 0 {
		return 0
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return 0
	}
	addr = addr.WithZone("").Unmap()
	for _, n := range a.bits[family(addr)] {
		if net, err := addr.Prefix(n); err == nil {
			perms |= a.nets[net]
		}
	}
	return perms
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
	t.longLists = t.longLists || a.size > longList
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
	return a.world&want != 0 || c == nil || t.cfg.SkipACL || len(a.list) == 0 || c.verdict(a)&want != 0
}

// verdicts is what a caller remembers of the last list that it was checked against, so that the same check costs
// nothing for each of many operations, or of many events.
type verdicts struct {
	list  *acl
	ids   int // how many identities it had
	perms wire.Perms
	super bool
	// hashes are those of the first identities; the others are hashed when they are needed.
	hashes []uint64
}

// verdict returns everything that c may do on a node with list a.
func (c *Caller) verdict(a *acl) wire.Perms {
	v := &c.seen
	if v.list == a && v.ids == len(c.IDs) && v.super == c.Super {
		return v.perms
	}
	for _, id := range c.IDs[len(v.hashes):] {
		v.hashes = append(v.hashes, maphash.Comparable(idSeed, id))
	}
	v.list, v.ids, v.super, v.perms = a, len(c.IDs), c.Super, a.world
	for i, id := range c.IDs {
		if id.Scheme == "super" {
			v.perms = wire.PermAll
			break
		}
		v.perms |= a.grants(id, v.hashes[i])
	}
	if c.Super {
		v.perms = wire.PermAll
	}
	return v.perms
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
