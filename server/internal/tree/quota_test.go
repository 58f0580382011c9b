package tree_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// setQuota creates a quota as zkCli's setquota does: the limits first, then the stats.
func (c *client) setQuota(path, limits string) {
	c.s.t.Helper()
	c.mk("/zookeeper/quota"+path, 0)
	c.s.wantOK(c.create("/zookeeper/quota"+path+"/zookeeper_limits", limits, 0), "create limits")
	c.s.wantOK(c.create("/zookeeper/quota"+path+"/zookeeper_stats", "count=-1,bytes=-1", 0), "create stats")
}

func (c *client) wantStats(path, want string) {
	c.s.t.Helper()
	r, code := c.get("/zookeeper/quota"+path+"/zookeeper_stats", false)
	if code != wire.OK || string(r.Data) != want || int(r.Stat.DataLength) != len(want) {
		c.s.t.Errorf("stats of %s: got %v %+v, want %s", path, code, r, want)
	}
}

func TestNewQuotaStartsWithTheCurrentUsage(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/q", 0)
	c.setQuota("/q", "count=3,bytes=-1")
	c.wantStats("/q", "count=1,bytes=0")
	s.wantSound()
	full := s.connect(2)
	full.mk("/r", 0)
	s.wantOK(full.create("/r/x", "12345", 0), "create")
	s.wantOK(full.create("/r/x/y", "123", 0), "create")
	full.setQuota("/r", "count=-1,bytes=-1")
	full.wantStats("/r", "count=3,bytes=8")
	full.setQuota("/none", "count=-1,bytes=-1")
	full.wantStats("/none", "count=0,bytes=0")
	s.wantSound()
}

func TestStatsAreUpdatedWithoutANewVersion(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c, w := s.connect(1), s.connect(2)
	c.mk("/q", 0)
	c.setQuota("/q", "count=3,bytes=-1")
	const stats = "/zookeeper/quota/q/zookeeper_stats"
	before := s.stat(stats)
	w.get(stats, true)
	step := func(r tree.Result, want string) {
		t.Helper()
		s.wantOK(r, want)
		s.wantEvents(r.Events)
		c.wantStats("/q", want)
		s.wantSound()
	}
	step(c.create("/q/a", "12345", 0), "count=2,bytes=5")
	step(c.create("/q/a/b", "1", 1), "count=3,bytes=6")
	step(c.create("/qq", "1", 1), "count=3,bytes=6")
	step(c.set("/q", "1234567890", -1), "count=3,bytes=16")
	step(c.set("/q/a", "", -1), "count=3,bytes=11")
	// Soft limits refuse nothing.
	step(c.create("/q/c", "", 0), "count=4,bytes=11")
	step(c.multi(
		sub(wire.OpCreate, createRequest("/q/d", "1", 0)),
		sub(wire.OpCreate, createRequest("/q/e", "1", 0)),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/q/c", Version: -1}),
	), "count=5,bytes=13")
	step(c.multi(
		sub(wire.OpCreate, createRequest("/q/f", "1", 0)),
		sub(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1}),
	), "count=5,bytes=13")
	step(s.close(1), "count=4,bytes=12")
	after := s.stat(stats)
	before.DataLength = after.DataLength
	if after != before {
		t.Errorf("stats node: got %+v, want %+v", after, before)
	}
}

func TestEachQuotaAboveANodeCountsIt(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	for _, path := range []string{"/q", "/q/in", "/q/in/deep"} {
		c.mk(path, 0)
	}
	c.setQuota("/q", "count=-1,bytes=-1")
	c.setQuota("/q/in", "count=-1,bytes=-1")
	c.wantStats("/q", "count=3,bytes=0")
	c.wantStats("/q/in", "count=2,bytes=0")
	c.mk("/q/in/x", 0)
	c.wantStats("/q", "count=4,bytes=0")
	c.wantStats("/q/in", "count=3,bytes=0")
	s.wantOK(c.remove("/zookeeper/quota/q/in/zookeeper_limits", -1), "delete of the limits")
	c.mk("/q/in/y", 0)
	c.wantStats("/q", "count=5,bytes=0")
	c.wantStats("/q/in", "count=3,bytes=0")
	s.wantSound()
}

func TestHardLimitsRefuseOnlyWhenEnforced(t *testing.T) {
	t.Parallel()
	for _, enforce := range []bool{false, true} {
		s := newServer(t, tree.Config{EnforceQuota: enforce})
		c := s.connect(1)
		over := wire.OK
		if enforce {
			over = wire.QuotaExceeded
		}
		c.mk("/q", 0)
		c.setQuota("/q", "count=1,bytes=1=;byteHardLimit=10;countHardLimit=3")
		s.wantOK(c.create("/q/a", "12345", 0), "create")
		s.want(c.create("/q/b", "123456", 0).Code, over, "create with too many bytes")
		s.wantOK(c.create("/q/c", "", 1), "create at the limit")
		if enforce {
			c.wantStats("/q", "count=3,bytes=5")
		}
		s.want(c.create("/q/d", "", 0).Code, over, "create of too many nodes")
		s.want(c.set("/q/a", "12345678901", 99).Code, map[bool]wire.Code{false: wire.BadVersion, true: over}[enforce],
			"setData")
		s.want(c.set("/q/a", "12345678901", -1).Code, over, "setData with too many bytes")
		s.wantOK(c.set("/q/a", "1234567890", -1), "setData at the limit")
		s.wantOK(c.set("/q/a", "1", -1), "setData with fewer bytes")
		// What a multi frees is free only after it.
		got := results(t, c.multi(
			sub(wire.OpDelete, &wire.DeleteRequest{Path: "/q/c", Version: -1}),
			sub(wire.OpCreate, createRequest("/q/e", "", 0)),
		))
		if got[1].Err != over {
			t.Errorf("multi that frees and takes: got %v", codes(got))
		}
		if enforce {
			s.wantOK(c.remove("/q/c", -1), "delete")
			c.wantStats("/q", "count=2,bytes=1")
		}
		// What it takes counts only after it, too.
		got = results(t, c.multi(
			sub(wire.OpCreate, createRequest("/q/e2", "", 0)),
			sub(wire.OpCreate, createRequest("/q/f2", "", 0)),
		))
		if want := wire.OK; enforce && got[1].Err != want {
			t.Errorf("multi that takes more than the limit: got %v", codes(got))
		}
		s.wantOK(c.set("/zookeeper/quota/q/zookeeper_limits", "count=-1,bytes=-1", -1), "setData of the limits")
		s.wantOK(c.create("/q/g", "12345678901", 0), "create without hard limits")
		s.wantSound()
	}
}

// Each refusal counts for the child of the root that it is below. A client cannot make the counts use up memory.
func TestRefusalsByQuotasAreCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	want := func(want map[string]int64) {
		t.Helper()
		if got := s.tree.QuotaRefusals(); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	c.mk("/a", 0)
	c.mk("/a/b", 0)
	c.setQuota("/a", "count=-1,bytes=-1;byteHardLimit=3")
	want(map[string]int64{})
	c.set("/a", "1234", -1)
	c.set("/a/b", "1234", -1)
	c.create("/a/b/c", "1234", 0)
	c.create("/b", "1234", 0)
	c.set("/a/none", "1234", -1)
	want(map[string]int64{"a": 3})
	s.tree.ResetQuotaRefusals()
	want(map[string]int64{"a": 0})
	for i := range 1100 {
		path := fmt.Sprintf("/n%d", i)
		c.setQuota(path, "count=-1,bytes=-1;byteHardLimit=3")
		c.create(path, "1234", 0)
	}
	c.set("/a", "1234", -1)
	if got := s.tree.QuotaRefusals(); len(got) != 1000 || got["a"] != 1 {
		t.Errorf("got %d names and %d refusals at /a, want 1000 and 1", len(got), got["a"])
	}
}

// Monitoring reads all quotas at once, so there is a bound.
func TestUseOfQuotasIsAddedUp(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/a", 0)
	c.set("/a", "12", -1)
	c.mk("/a/b", 0)
	c.setQuota("/a", "count=5,bytes=-1")
	c.setQuota("/a/b", "count=3,bytes=9=;countHardLimit=4")
	c.setQuota("/none", "count=1,bytes=1")
	s.tree.Tend()
	want := map[string]tree.QuotaUse{
		"a":    {CountLimit: 9, BytesLimit: 8, Count: 3, Bytes: 2},
		"none": {CountLimit: 1, BytesLimit: 1},
	}
	if got := s.tree.QuotaUses(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range 1000 {
		c.setQuota(fmt.Sprintf("/n%d", i), "count=1,bytes=1")
	}
	if got := s.tree.QuotaUses(); len(got) > 0 {
		t.Errorf("got %d of too many quotas", len(got))
	}
}

func TestDamagedQuotasAreIgnored(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "nonsense", "count=x,bytes=", ";;;===,,,",
		"count=1,bytes=2=;byteHardLimit=;countHardLimit=-1", "=;=1",
	} {
		s := newServer(t, tree.Config{EnforceQuota: true})
		c := s.connect(1)
		c.mk("/q", 0)
		c.setQuota("/q", text)
		s.wantOK(c.create("/q/a", "12345", 0), "create with limits "+text)
		s.wantOK(c.set("/zookeeper/quota/q/zookeeper_stats", text, -1), "setData of the stats")
		s.wantOK(c.create("/q/b", "12345", 0), "create with stats "+text)
		s.wantOK(c.remove("/zookeeper/quota/q/zookeeper_stats", -1), "delete of the stats")
		s.wantOK(c.create("/q/c", "12345", 0), "create without stats")
		s.wantSound()
	}
}

func TestStatsKeepTheirOtherKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/q", 0)
	c.setQuota("/q", "count=-1,bytes=-1")
	s.wantOK(c.set("/zookeeper/quota/q/zookeeper_stats", "count=1,bytes=0=;countHardLimit=7;byteHardLimit=9", -1),
		"setData of the stats")
	c.mk("/q/x", 0)
	c.wantStats("/q", "count=2,bytes=0=;byteHardLimit=9;countHardLimit=7")
	s.wantSound()
}

func TestRootAndSimilarPathsHaveNoQuota(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	s.wantOK(c.create("/zookeeper/quota/zookeeper_limits", "count=1,bytes=1=;countHardLimit=1", 0), "create")
	s.wantOK(c.create("/zookeeper/quota/zookeeper_stats", "x", 0), "create")
	c.mk("/zookeeper/quotax", 0)
	s.wantOK(c.create("/zookeeper/quotax/zookeeper_limits", "count=1,bytes=1=;countHardLimit=1", 0), "create")
	c.mk("/a", 0)
	c.mk("/x", 0)
	c.mk("/x/y", 0)
	r, _ := c.get("/zookeeper/quota/zookeeper_stats", false)
	if string(r.Data) != "x" {
		t.Errorf("stats of the root: got %s", r.Data)
	}
	s.wantSound()
}

func TestHugeStatsWrittenByAClientCostOneWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	c.mk("/q", 0)
	c.setQuota("/q", "count=-1,bytes=-1=;countHardLimit=3")
	const stats = "/zookeeper/quota/q/zookeeper_stats"
	junk := strings.Repeat(";x=1", 1<<18)
	s.wantOK(c.set(stats, "count=1,bytes=0"+junk, -1), "set")
	s.wantOK(c.create("/q/a", "12345", 0), "create")
	r, code := c.get(stats, false)
	if code != wire.OK || !strings.HasPrefix(string(r.Data), "count=2,bytes=5") || len(r.Data) > 2048 {
		t.Errorf("got %d bytes, %.40s %v, want a short count", len(r.Data), r.Data, code)
	}
	s.wantOK(c.create("/q/b", "", 0), "create")
	if r := c.create("/q/c", "", 0); r.Code != wire.QuotaExceeded {
		t.Errorf("got %v above the limit, want %v", r.Code, wire.QuotaExceeded)
	}
	s.wantSound()
}

func TestQuotaOfAClientFreesItFromNoOther(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	c.mk("/app", 0)
	c.setQuota("/app", "count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1")
	c.mk("/app/sub", 0)
	c.setQuota("/app/sub", "count=-1,bytes=-1")
	big := strings.Repeat("x", 101)
	s.want(c.create("/app/sub/b", big, 0).Code, wire.QuotaExceeded, "create below a quota without limits")
	c.mk("/app/sub/b", 0)
	s.want(c.set("/app/sub/b", big, -1).Code, wire.QuotaExceeded, "setData below a quota without limits")
	// The path of a quota may have no node yet.
	c.mk("/zookeeper/quota/late", 0)
	s.wantOK(c.create("/zookeeper/quota/late/zookeeper_limits", "=;byteHardLimit=10", 0), "create limits")
	s.want(c.create("/late", big, 0).Code, wire.QuotaExceeded, "create of the quota's path")
	s.wantSound()
}

func TestUsageThatAClientWritesDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	c.mk("/app", 0)
	c.setQuota("/app", "count=-1,bytes=-1=;byteHardLimit=100;countHardLimit=-1")
	const stats = "/zookeeper/quota/app/zookeeper_stats"
	over := func(what string) {
		t.Helper()
		s.want(c.create("/app/a", strings.Repeat("x", 101), 0).Code, wire.QuotaExceeded, what)
		s.wantSound()
	}
	s.wantOK(c.set(stats, "count=-1,bytes=-9000000000", -1), "set stats")
	c.wantStats("/app", "count=1,bytes=0")
	over("create after negative stats")
	s.wantOK(c.remove(stats, -1), "delete stats")
	over("create without stats")
	s.wantOK(c.create(stats, "count=-1,bytes=-9000000000", 0), "create stats")
	c.wantStats("/app", "count=1,bytes=0")
	over("create after stats that a client has made")
}

func TestAccessListOfTheQuotaPathProtectsAllQuotas(t *testing.T) {
	t.Parallel()
	for _, enforce := range []bool{true, false} {
		s := newServer(t, tree.Config{EnforceQuota: enforce})
		admin, user := s.connect(1, alice), s.connect(2, bob)
		admin.mk("/app", 0)
		admin.setQuota("/app", "count=-1,bytes=-1=;countHardLimit=3")
		s.wantOK(admin.setACL("/zookeeper/quota", []wire.ACL{entry(31, alice), entry(1, world)}, -1), "setACL")
		want := wire.OK
		if enforce {
			want = wire.NoAuth
		}
		const limits = "/zookeeper/quota/app/zookeeper_limits"
		s.want(user.set(limits, "count=-1,bytes=-1", -1).Code, want, "setData of limits")
		s.want(user.setACL(limits, openACL, -1).Code, want, "setACL of limits")
		s.want(user.create("/zookeeper/quota/app/x", "", 0).Code, want, "create beside limits")
		deleted := results(t, user.multi(sub(wire.OpDelete, &wire.DeleteRequest{Path: limits, Version: -1})))
		s.want(deleted[0].Err, want, "delete of limits in a multi")
		if _, code := user.get("/zookeeper/quota/app/zookeeper_stats", false); code != wire.OK {
			t.Errorf("get of the stats: got %v, want OK", code)
		}
		s.wantOK(admin.create("/zookeeper/quota/app/y", "", 0), "create by the administrator")
		s.wantSound()
	}
}

// The count of a large tree is taken in pieces, and what changes meanwhile is in it exactly once.
func TestUsageIsExactThoughItIsCountedInPieces(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{EnforceQuota: true})
	c := s.connect(1)
	c.mk("/q", 0)
	for i := range 30 {
		c.mk(fmt.Sprintf("/q/%d", i), 0)
		for k := range 100 {
			s.wantOK(c.create(fmt.Sprintf("/q/%d/%d", i, k), "xy", 0), "create")
		}
	}
	c.setQuota("/q", "count=-1,bytes=-1")
	c.setQuota("/q/3", "count=-1,bytes=-1")
	for i := range 30 { // changes of nodes that are counted and of others
		s.wantOK(c.set(fmt.Sprintf("/q/%d/1", i), "longer", -1), "set")
		s.wantOK(c.remove(fmt.Sprintf("/q/%d/2", i), -1), "delete")
		c.mk(fmt.Sprintf("/q/%d/2", i), 0)
		c.mk(fmt.Sprintf("/q/%d/2/new", i), 0)
		if r := c.multi(sub(wire.OpDelete, &wire.DeleteRequest{Path: fmt.Sprintf("/q/%d/3", i), Version: -1}),
			sub(wire.OpDelete, &wire.DeleteRequest{Path: "/none", Version: -1})); r.Code != wire.OK {
			t.Fatal(r.Code)
		}
	}
	pieces := 0
	for more := s.tree.MustTend(); more; pieces++ {
		var r tree.Result
		r, more = s.tree.Tend()
		s.done(r)
	}
	if pieces < 2 {
		t.Errorf("got %d pieces, want several", pieces)
	}
	c.wantStats("/q", fmt.Sprintf("count=%d,bytes=%d", 1+30*102, 30*(98*2+6)))
	s.wantSound()
}

// A quota that comes and goes again and again costs no count at all.
func TestQuotasThatComeAndGoInOneMultiAreNotCounted(t *testing.T) {
	t.Parallel()
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	c.mk("/q", 0)
	c.mk("/zookeeper/quota/q", 0)
	var ops []wire.SubRequest
	for range 1000 {
		ops = append(ops,
			sub(wire.OpCreate, createRequest("/zookeeper/quota/q/zookeeper_limits", "count=1,bytes=1", 0)),
			sub(wire.OpDelete, &wire.DeleteRequest{Path: "/zookeeper/quota/q/zookeeper_limits", Version: -1}))
	}
	s.wantOK(c.multi(ops...), "multi")
	if s.tree.MustTend() {
		t.Error("got something left to count, want nothing")
	}
	s.wantSound()
}

// However often the use of quotas changes, each is left to be shown once.
func TestWritesBelowManyQuotasLeaveBoundedWork(t *testing.T) {
	t.Parallel()
	const depth, writes = 100, 200
	s := newServer(t, tree.Config{})
	c := s.connect(1)
	path, stats := "", "/zookeeper/quota"
	for range depth {
		path, stats = path+"/a", stats+"/a"
		c.mk(path, 0)
		c.mk(stats, 0)
		s.wantOK(c.create(stats+"/zookeeper_limits", "count=1000,bytes=1000", 0), "create limits")
	}
	for i := range writes {
		s.wantOK(c.set(path, strings.Repeat("x", i%7), -1), "set")
	}
	rounds := 0
	for more := s.tree.MustTend(); more; rounds++ {
		_, more = s.tree.Tend()
	}
	if rounds > depth {
		t.Errorf("%d rounds to show %d quotas", rounds, depth)
	}
}
