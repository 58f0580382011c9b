package conformance_test

import (
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// TestRestart runs a script with a restart in it. Afterwards everything that was answered, the sessions and their
// ephemerals are still there.
//
// Promise: 11
func TestRestart(t *testing.T) {
	t.Parallel()
	var want []string
	for _, tg := range targetsOf(t, profiles()[0]) {
		if tg.restart == nil {
			continue
		}
		s := newScript(t, tg, "/restart")
		a, b := s.open("a"), s.open("b")
		r := s.root
		a.each(
			create2(r+"/p", "persistent", 0), create2(r+"/e", "ephemeral", 1), create2(r+"/q-", "", 2), set(r+"/p",
				"changed", 0),
			createWith(r+"/secret", acl(31, "digest", digestUP)), container(r+"/c", 4), ttl(r+"/t", 5, 1<<40-1),
			multi(create(r+"/m", "", 0), del(r+"/q-0000000002", -1)),
		)
		b.each(create2(r+"/e2", "", 1), create2(r+"/null", "", 0), set(r+"/none", "", -1), del(r+"/null", -1),
			closeSession())
		a.each(get(r+"/p", true), setACL(r+"/p", -1, reading...), syncPath(r))
		tg.restart(t)
		a.next()
		s.logf("# restart")
		c := s.resume("c", a)
		c.each(
			syncPath(r), get(r+"/p", false), get(r+"/e", false), children2(r, false), exists(r+"/c",
				false), exists(r+"/t", false),
			getACL(r+"/p"), get(r+"/secret", false), ephemerals(""), exists(r+"/e2", false),
		)
		c.each(create(r+"/q-", "", 2), set(r+"/e", "again", 0), setWatches(0, nil, []string{r + "/x"}, nil))
		d := s.dial("d")
		d.hello(wire.ConnectRequest{
			Timeout: sessionTimeout, SessionID: b.session, Password: b.password,
			HasReadOnly: true,
		})
		e := s.open("e")
		e.each(auth("digest", "u:p"), get(r+"/secret", false), exists(r+"/e", true))
		c.each(closeSession())
		e.each(ping(), children2(r, false))
		s.finish()
		if tg.apache {
			want = s.lines
		} else if want != nil && !slices.Equal(want, s.lines) {
			t.Errorf("%s differs from Apache ZooKeeper over a restart:\n%s", tg.name, diff(want, s.lines))
		}
	}
}
