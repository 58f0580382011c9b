package tree_test

import (
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/tree"
	"github.com/seed-a3166700/turnstile/internal/wire"
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

func TestNearestQuotaApplies(t *testing.T) {
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
	c.wantStats("/q", "count=3,bytes=0")
	c.wantStats("/q/in", "count=3,bytes=0")
	s.wantOK(c.remove("/zookeeper/quota/q/in/zookeeper_limits", -1), "delete of the limits")
	c.mk("/q/in/y", 0)
	c.wantStats("/q", "count=4,bytes=0")
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
