package tree

// Quotas.

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// A quota on a path is two nodes below /zookeeper/quota<path>: the limits, and the usage, which ZooKeeper calls stats.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
)

// limitsOf returns the path whose quota limits are stored at path, false if path stores none. The root has no quota.
func limitsOf(path string) (string, bool) { return quotaOf(path, limitsName) }

func quotaOf(path, name string) (string, bool) {
	if !strings.HasPrefix(path, quotaPath) {
		return "", false
	}
	subject, ok := strings.CutSuffix(path[len(quotaPath):], name)
	return subject, ok && subject != "" && subject[0] == '/'
}

// governing returns the nearest path at or above path that has a quota, "" if there is none.
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

// accountNode counts a node that was created (+1) or deleted (-1). A new stats node starts with the current usage.
func (t *Tree) accountNode(n *node, sign int64) {
	if subject, ok := quotaOf(n.path, statsName); ok && sign > 0 {
		t.recount(subject, n)
	}
	t.account(n.path, sign*int64(len(n.data)), sign)
}

// account adds to the usage in the quota that governs path.
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

// recount sets the usage in stats to that of subject and everything below it.
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

// overQuota reports whether a hard limit forbids adding bytes and count at path. As in ZooKeeper, each operation of a
// multi is checked against the usage before the multi.
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
	return exceeds(used.bytes, bytes, limit.hard("byteHardLimit")) ||
		exceeds(used.count, count, limit.hard("countHardLimit"))
}

// exceeds reports whether a limit forbids a change. As in ZooKeeper, it forbids every change whose result is above the
// limit, even one that makes data smaller.
func exceeds(used, more, limit int64) bool { return more != 0 && limit >= 0 && used+more > limit }

// maxUsage bounds how much of a quota node's data is read. A client may write more into it, and without the bound every
// write below the path would read and write all of that again.
const maxUsage = 1 << 10

// usage is the content of both nodes of a quota: "count=1,bytes=0", or with more keys
// "count=1,bytes=0=;byteHardLimit=5". The number -1 means no limit.
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

// number parses a limit. Text that is not a number means no limit.
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

// append appends the encoded usage. The equals sign before further keys is for programs that know the first two only.
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
