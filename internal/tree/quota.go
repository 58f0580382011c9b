package tree

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// A quota on a path is two nodes below /zookeeper/quota<path>: what is allowed, and what is used.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// limitsOf returns the path that a node sets limits for, false if it is no such node. The root has no quota.
func limitsOf(path string) (string, bool) { return quotaOf(path, limitsName) }

func quotaOf(path, name string) (string, bool) {
	if !strings.HasPrefix(path, quotaPath) {
		return "", false
	}
	subject, ok := strings.CutSuffix(path[len(quotaPath):], name)
	return subject, ok && subject != "" && subject[0] == '/'
}

// governing returns the longest path with a quota that path is at or below, "" if there is none.
func (t *Tree) governing(path string) string {
	if len(t.quotas) == 0 {
		return ""
	}
	for path != "" {
		if _, ok := t.quotas[path]; ok {
			return path
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return ""
}

// accountNode counts a node that was made (+1) or deleted (-1). The stats node of a quota starts with what is there.
func (t *Tree) accountNode(n *node, sign int64) {
	if subject, ok := quotaOf(n.path, statsName); ok && sign > 0 {
		t.recount(subject, n)
	}
	t.account(n.path, sign*int64(len(n.data)), sign)
}

// account adds to what the quota that governs path says is used.
func (t *Tree) account(path string, bytes, count int64) {
	subject := t.governing(path)
	if subject == "" {
		return
	}
	if n := t.nodes[quotaPath+subject+statsName]; n != nil {
		u := parseUsage(n.data)
		u.bytes += bytes
		u.count += count
		t.setStats(n, u.append(nil))
	}
}

// recount makes stats say what is used at and below subject.
func (t *Tree) recount(subject string, stats *node) {
	u := parseUsage(stats.data)
	u.bytes, u.count = 0, 0
	if top := t.nodes[subject]; top != nil {
		top.walk(func(n *node) {
			u.bytes += int64(len(n.data))
			u.count++
		})
	}
	t.setStats(stats, u.append(nil))
}

// overQuota reports whether a hard limit forbids that this much is added at path. As in ZooKeeper, each operation of a multi
// is judged by what was used before the multi.
func (t *Tree) overQuota(path string, bytes, count int64) bool {
	if !t.cfg.EnforceQuota {
		return false
	}
	subject := t.governing(path)
	if subject == "" {
		return false
	}
	limits, stats := t.nodes[quotaPath+subject+limitsName], t.nodes[quotaPath+subject+statsName]
	if limits == nil || stats == nil {
		return false
	}
	before, ok := t.tx.used[stats]
	if !ok {
		before = stats.data
	}
	used, limit := parseUsage(before), parseUsage(limits.data)
	return exceeds(used.bytes, bytes, limit.hard("byteHardLimit")) || exceeds(used.count, count, limit.hard("countHardLimit"))
}

// exceeds reports whether a limit forbids a change. As in ZooKeeper, it forbids every change that leaves more than it, smaller data, too.
func exceeds(used, more, limit int64) bool { return more != 0 && limit >= 0 && used+more > limit }

// maxUsage is the most that a quota's nodes need. A client may write more into them: that is not read, or else each write below would read and
// write it again.
const maxUsage = 1 << 10

// usage is the text in both nodes of a quota: "count=1,bytes=0", or with more keys "count=1,bytes=0=;byteHardLimit=5".
// A number of -1 is no limit.
type usage struct {
	count, bytes int64
	more         []string // key=value, sorted
}

func parseUsage(data []byte) usage {
	u := usage{count: -1, bytes: -1}
	if len(data) > maxUsage {
		data = data[:bytes.LastIndexAny(data[:maxUsage], ",;")+1]
	}
	for field := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		field = strings.TrimRight(field, "=")
		switch key, value, _ := strings.Cut(field, "="); key {
		case "count":
			u.count = number(value)
		case "bytes":
			u.bytes = number(value)
		case "":
		default:
			u.more = append(u.more, field)
		}
	}
	slices.Sort(u.more)
	return u
}

// number reads a limit; what is none is no limit.
func number(s string) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return v
}

func (u *usage) hard(key string) int64 {
	for _, field := range u.more {
		if k, value, _ := strings.Cut(field, "="); k == key {
			return number(value)
		}
	}
	return -1
}

// append appends the text. The equals sign before further keys keeps programs going that know two keys only.
func (u *usage) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, "count="...), u.count, 10)
	b = strconv.AppendInt(append(b, ",bytes="...), u.bytes, 10)
	for i, field := range u.more {
		if i == 0 {
			b = append(b, '=')
		}
		b = append(append(b, ';'), field...)
	}
	return b
}
