package conformance_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// digestUP is the digest of u:p in an access list.
const digestUP = "u:wEfJXMsqBkiZHnz2SSkdl+ve4Uc="

var aclCases = []testCase{
	{"which access lists are taken", func(s *script) {
		l := s.open("a")
		r := s.root
		lists := [][]wire.ACL{
			nil,
			{},
			open,
			reading,
			{open[0], open[0], reading[0]},
			{reading[0], acl(31, "none", "x")},
			{acl(31, "digest", "a:b"), acl(31, "digest", "a:b"), acl(1, "digest", "a:b")},
			{acl(0, "world", "anyone")},
			{acl(32, "world", "anyone")},
			{acl(-1, "world", "anyone")},
		}
		for scheme, ids := range map[string][]string{
			"world":  {"me", ""},
			"auth":   {""},
			"none":   {"x"},
			"":       {""},
			"super":  {""},
			"sasl":   {"me"},
			"x509":   {"CN=me"},
			"digest": {"u:x", "u", "u:", ":x", "a:b:c", "a:b:", "", ":"},
			"ip": {
				"127.0.0.1", "127.0.0.0/8", "127.0.0.0/0", "127.0.0.0/32", "127.0.0.0/33", "127.0.0.0/-1",
				"127.0.0.0/", "127.0.0.0/x", "1.2.3", "1.2.3.256", "host", "", "1.2.3.4/8/9",
			},
		} {
			for _, id := range ids {
				lists = append(lists, []wire.ACL{acl(31, scheme, id)})
			}
		}
		slices.SortFunc(lists, func(a, b []wire.ACL) int {
			return strings.Compare(acls(a)+strconv.Itoa(len(a)), acls(b)+strconv.Itoa(len(b)))
		})
		for _, list := range lists {
			s.logf("# %s", acls(list))
			l.each(createWith(r+"/x", list...), getACL(r+"/x"), del(r+"/x", -1), setACL(r, -1, list...), getACL(r),
				setACL(r, -1, open...))
			l.each(setACL(r+"/none", -1, list...))
		}
	}},
	{"auth in an access list stands for the connection's identities", func(s *script) {
		s.norm.anyACLOrder = true // the order does not matter
		l := s.open("a")
		r := s.root
		l.each(createWith(r+"/a", mine...), auth("digest", "u:p"), createWith(r+"/a", mine...), getACL(r+"/a"))
		l.each(auth("digest", "v:q"), createWith(r+"/b", acl(1, "auth", "ignored"), open[0]), getACL(r+"/b"), whoAmI())
		l.each(setACL(r+"/b", -1, acl(31, "auth", ""), acl(31, "auth", "")), getACL(r+"/b"))
		b := s.open("b")
		b.each(getACL(r+"/a"), getACL(r+"/b"), get(r+"/a", false), auth("digest", "v:q"), get(r+"/a", false),
			get(r+"/b", false), getACL(r+"/b"))
	}},
	{"auth packets", func(s *script) {
		l := s.open("a")
		l.each(
			whoAmI(), auth("digest", "u:p"), whoAmI(), auth("digest", "u:p"), auth("digest", "u:other"), auth("digest",
				"nocolon"),
			auth("digest", ""), auth("digest", "a:b:c"), whoAmI(), auth("ip", "x"), auth("ip", ""), whoAmI(),
		)
		for _, scheme := range []string{"world", "sasl", "super", "none", "", "x509", "auth"} {
			b := s.open("b")
			b.each(auth(scheme, "x"))
			b.next()
		}
		c := s.open("c")
		c.raw("auth cut short", wire.OpAuth, nil)
		c.next()
	}},
	{"the super user may do anything", func(s *script) {
		s.norm.anyACLOrder = true
		l := s.open("a")
		r := s.root
		l.each(
			createWith(r+"/closed", acl(0, "world", "anyone")), get(r+"/closed", false), set(r+"/closed", "", -1),
			set("/zookeeper/config", "", -1),
		)
		b := s.open("b")
		b.each(
			auth("digest", "super:wrong"), get(r+"/closed", false), auth("digest",
				"super:secret"), whoAmI(), get(r+"/closed", false),
			set(r+"/closed", "", -1), create(r+"/closed/k", "", 0), del(r+"/closed/k", -1), setACL(r+"/closed", -1,
				reading...),
			createWith(r+"/auth", mine...), getACL(r+"/auth"), del("/zookeeper/quota", -1),
		)
	}},
	{"each operation needs its permission", func(s *script) {
		l := s.open("a")
		r := s.root
		for perms := range wire.Perms(6) {
			bit := wire.Perms(1) << perms
			if perms == 5 {
				bit = 0
			}
			p := r + "/p" + string(rune('0'+perms))
			l.each(create(p, "", 0), create(p+"/kid", "", 0), setACL(p, -1, acl(bit, "world", "anyone")))
			l.each(
				get(p, false), children(p, false), children2(p, false), count(p), multi(check(p, -1)),
				multiRead(get(p, false), children(p, false)), set(p, "", -1), set(p, "", 7), create(p+"/new", "", 0),
				create(p+"/kid", "", 0), create2(p+"/q-", "", 2), del(p+"/none", -1), del(p+"/kid", 9), del(p+"/kid",
					-1), syncPath(p),
				getACL(p), addWatch(p, 0), removeWatches(p, 3),
			)
			if bit&wire.PermRead == 0 {
				fixed := []string{"3.8.4", "3.9.2"}
				s.changed("exists needs no permission, against READ", fixed, nil, nil, func() {
					s.quietly(func() {
						if m := l.each(exists(p, false)); (m.Err == wire.NoAuth) != s.target.has(fixed...) {
							s.Errorf("got %v on %s", m.Err, s.target.name)
						}
					})
				})
			} else {
				l.each(exists(p, false))
			}
			l.each(exists(p+"/none", false))
			l.each(setACL(p, 9, open...), setACL(p, -1, open...))
		}
		l.each(children2(r, false))
	}},
	{"getACL hides digests from those who may only read", func(s *script) {
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(
			auth("digest", "u:p"),
			createWith(r+"/a", acl(31, "auth", ""), reading[0], acl(1, "ip", "10.0.0.0/8"),
				acl(1, "digest", "w:hash")), getACL(r+"/a"),
		)
		b.each(getACL(r + "/a"))
		a.each(createWith(r+"/b", acl(31, "digest", digestUP)), get(r+"/b", false), getACL(r+"/b"))
		b.each(getACL(r+"/b"), auth("digest", "u:p"), getACL(r+"/b"))
		a.each(createWith(r+"/c", acl(16, "world", "anyone"), acl(31, "digest", "w:hash")))
		b.each(getACL(r + "/c"))
	}},
	{"ip access lists", func(s *script) {
		l := s.open("a")
		r := s.root
		for _, id := range []string{
			"127.0.0.1", "127.0.0.0/8", "127.0.0.0/31", "126.0.0.0/7", "10.0.0.1", "10.0.0.0/8",
			"0.0.0.0/0",
		} {
			l.each(createWith(r+"/x", acl(31, "ip", id)), get(r+"/x", false), del(r+"/x", -1))
		}
		for i, id := range []string{"::1", "fe80::/10"} {
			zxid := fmt.Sprintf("+%d", 16+i)
			created := fmt.Sprintf("a< create2 zxid=%[1]s ok Path=$/v6-%[2]d"+
				" {c%[1]s m%[1]s p%[1]s ctime=t mtime=t v0 cv0 av0 owner=- len1 kids0}", zxid, i)
			s.changed("no IPv6 in access lists, against there", []string{"3.9.4"}, // 3.9.4 and 3.9.5 were not tried
				[]string{"a< create2 zxid=" + zxid + " ERROR -114 invalid acl"}, []string{created}, func() {
					l.each(createWith(fmt.Sprintf("%s/v6-%d", r, i), acl(31, "ip", id)))
				})
		}
	}},
	{"an access list that lost its last entry", func(s *script) {
		l := s.open("a")
		r := s.root
		l.each(createWith(r+"/a", acl(31, "digest", "u:nobody")), setACL(r+"/a", -1, open...), get(r+"/a", false),
			del(r+"/a", -1))
		l.each(
			createWith(r+"/b", acl(1, "digest", "u:nobody"), acl(2, "world", "anyone"),
				acl(4, "world", "anyone")), get(r+"/b", false),
			set(r+"/b", "", -1), create(r+"/b/k", "", 0), del(r+"/b/k", -1),
		)
	}},
	{"identities belong to the connection", func(s *script) {
		a := s.open("a")
		r := s.root
		a.each(auth("digest", "u:p"), createWith(r+"/a", mine...), get(r+"/a", false))
		b := s.resume("b", a)
		a.next()
		b.each(whoAmI(), get(r+"/a", false), auth("digest", "u:p"), get(r+"/a", false))
	}},
}
