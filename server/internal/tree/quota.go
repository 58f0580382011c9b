package tree

// Quotas.

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
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

// quotas are all quotas of a tree.
type quotas struct {
	bySubject map[string]*quota
	governs   map[*node]*quota // by the node at the quota's path, to find those of a node's ancestors
	changed   []*quota         // by the current transaction
	stale     []*quota         // their stats nodes do not show the usage yet
	toCount   []*quota         // their usage is not counted yet, or not to the end
	counts    uint32           // how many were begun
	atOnce    int              // nodes that may be counted before the next Tend
	refusals  map[string]int64 // writes that a quota has refused, for each child of the root
}

func newQuotas() quotas {
	return quotas{bySubject: map[string]*quota{}, governs: map[*node]*quota{}, refusals: map[string]int64{}}
}

// quota is a path with limits. Its usage is what the server has counted, whatever clients write into the stats node,
// and includes the nodes of quotas below it: otherwise a client could escape from a quota by a quota of its own.
type quota struct {
	subject              string
	bytes, count         int64 // used
	hardBytes, hardCount int64 // the limits, -1 if there is none

	before struct{ bytes, count int64 } // the transaction, if it is in changed
	begun  uint32                       // the number of its count, 0 before that
	todo   []*node                      // left to count
	done   bool
	dirty  bool // is in changed
	stale  bool // is in the tree's stale
	gone   bool // the limits were deleted
}

// includes reports whether n, which is at or below q's path, is counted in q's usage.
func (q *quota) includes(n *node) bool { return q.done || q.begun != 0 && n.counted == q.begun }

// registerQuota notes what a node of the tree means for quotas.
func (t *Tree) registerQuota(n *node) {
	if len(t.bySubject) > 0 {
		if q := t.bySubject[n.path]; q != nil {
			t.governs[n] = q
		}
	}
	subject, ok := limitsOf(n.path)
	if !ok {
		return
	}
	q := &quota{subject: subject}
	q.read(n.data)
	t.bySubject[subject] = q
	if top := t.nodes[subject]; top != nil {
		t.governs[top] = q
	}
	if len(t.toCount) == 0 {
		t.atOnce = countedAtOnce
	}
	t.toCount = append(t.toCount, q)
}

// unregisterQuota undoes registerQuota.
func (t *Tree) unregisterQuota(n *node) {
	if len(t.bySubject) == 0 {
		return
	}
	delete(t.governs, n)
	subject, ok := limitsOf(n.path)
	if !ok {
		return
	}
	if q := t.bySubject[subject]; q != nil {
		q.gone, q.todo = true, nil
		if last := len(t.toCount) - 1; last >= 0 && t.toCount[last] == q {
			t.toCount = t.toCount[:last] // one that comes and goes leaves nothing to do
		}
		delete(t.bySubject, subject)
		delete(t.governs, t.nodes[subject])
	}
}

func (q *quota) read(limits []byte) {
	u := parseUsage(limits)
	q.hardBytes, q.hardCount = u.hard("byteHardLimit"), u.hard("countHardLimit")
}

// quotaData notes that the data of a node has changed, which may hold limits.
func (t *Tree) quotaData(n *node) {
	if len(t.bySubject) == 0 {
		return
	}
	if subject, ok := limitsOf(n.path); ok && t.bySubject[subject] != nil {
		t.bySubject[subject].read(n.data)
	}
}

// statsWritten makes the current transaction write the usage into a stats node that a client has created or set.
func (t *Tree) statsWritten(n *node) {
	if len(t.bySubject) == 0 {
		return
	}
	if subject, ok := quotaOf(n.path, statsName); ok && t.bySubject[subject] != nil {
		t.use(t.bySubject[subject], 0, 0)
	}
}

// account adds to the usage of all quotas that govern n. n is in the tree.
func (t *Tree) account(n *node, bytes, count int64) {
	if len(t.governs) == 0 {
		return
	}
	for p := n; p != nil; p = p.parent {
		if q := t.governs[p]; q != nil && q.includes(n) {
			t.use(q, bytes, count)
		}
	}
}

func (t *Tree) use(q *quota, bytes, count int64) {
	if !q.dirty {
		q.dirty = true
		q.before.bytes, q.before.count = q.bytes, q.count
		t.changed = append(t.changed, q)
	}
	q.bytes += bytes
	q.count += count
}

// undoUse undoes what the current transaction has done to usage.
func (t *Tree) undoUse() {
	for _, q := range t.changed {
		q.bytes, q.count, q.dirty = q.before.bytes, q.before.count, false
	}
	t.changed = t.changed[:0]
}

// The work that one write, or one Tend, may do for quotas.
const (
	countedAtOnce = 1000
	shownAtOnce   = 16
)

// settleQuotas counts for new quotas and writes the stats of changed ones, or leaves that to Tend.
func (t *Tree) settleQuotas() {
	if len(t.toCount) > 0 {
		t.atOnce = t.recount(t.atOnce)
	}
	for i, q := range t.changed {
		q.dirty = false
		if i < shownAtOnce {
			t.show(q)
		} else if !q.stale {
			q.stale = true
			t.stale = append(t.stale, q)
		}
	}
	clear(t.changed)
	t.changed = t.changed[:0]
}

// Tend continues what writes have left to do for quotas: counting the usage of new ones, and showing it. It does a
// little of it, so that nobody waits for long, and uses no zxid. It reports whether there is more to do.
func (t *Tree) Tend() (r Result, more bool) {
	t.atOnce = countedAtOnce
	n := min(shownAtOnce, len(t.stale))
	for _, q := range t.stale[:n] {
		q.stale = false
		t.show(q)
	}
	t.stale = t.stale[n:]
	return t.finish(nil, wire.OK), t.MustTend()
}

// MustTend reports whether Tend has anything to do.
func (t *Tree) MustTend() bool { return len(t.stale)+len(t.toCount) > 0 }

// recount counts up to n nodes and returns how many are left of n. Nodes that come, go or change meanwhile are
// accounted for if they are counted already.
func (t *Tree) recount(n int) int {
	for n > 0 && len(t.toCount) > 0 {
		q := t.toCount[0]
		n--
		switch {
		case q.gone:
			t.toCount = t.toCount[1:]
			continue
		case q.begun == 0:
			t.counts++
			q.begun = t.counts
			if top := t.nodes[q.subject]; top != nil {
				q.todo = []*node{top}
			}
		}
		for ; n > 0 && len(q.todo) > 0; n-- {
			last := len(q.todo) - 1
			x := q.todo[last]
			q.todo = q.todo[:last]
			if x.counted == q.begun || t.nodes[x.path] != x { // it came or went after the count had begun
				continue
			}
			x.counted = q.begun
			q.todo = append(q.todo, x.children...)
			t.use(q, int64(len(x.data)), 1)
		}
		if len(q.todo) == 0 {
			q.todo, q.done = nil, true
			t.use(q, 0, 0)
			t.toCount = t.toCount[1:]
		}
	}
	return n
}

// recountAll counts the usage of all quotas in one pass over the nodes.
func (t *Tree) recountAll() {
	type visit struct {
		n *node
		q *quota // the nearest one
	}
	outer := map[*quota]*quota{}
	var order []*quota // the outer ones first
	for todo := []visit{{n: t.root}}; len(t.governs) > 0 && len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if q := t.governs[v.n]; q != nil {
			outer[q] = v.q
			order = append(order, q)
			v.q = q
		}
		if v.q != nil {
			t.use(v.q, int64(len(v.n.data)), 1)
		}
		for _, child := range v.n.children {
			todo = append(todo, visit{child, v.q})
		}
	}
	for _, q := range slices.Backward(order) {
		if o := outer[q]; o != nil {
			t.use(o, q.bytes, q.count)
		}
	}
	for _, q := range t.toCount {
		q.done = true
		t.use(q, 0, 0)
	}
	t.toCount = nil
}

// show writes the usage into the stats node. It changes no version and fires no watch.
func (t *Tree) show(q *quota) {
	n := t.nodes[quotaPath+q.subject+statsName]
	if n == nil || q.gone || !q.done {
		return
	}
	u := parseUsage(n.data)
	u.bytes, u.count = q.bytes, q.count
	if data := u.append(nil); !bytes.Equal(data, n.data) {
		t.tx.steps = append(t.tx.steps, step{kind: statsSet, n: n, data: n.data})
		t.replace(n, data)
	}
}

// mayChangeQuotas reports whether c may do what is wanted to nodes below the path of quotas. If quotas are enforced,
// the access list of that path protects all of them, because each node of a quota has only the list that its creator
// gave it, and the path above it has only that of its own creator.
func (t *Tree) mayChangeQuotas(c *Caller, path string, want wire.Perms) bool {
	return !t.cfg.EnforceQuota || !strings.HasPrefix(path, quotaPath+"/") ||
		t.allowed(c, t.nodes[quotaPath].acl, want)
}

// AnyoneMaySetQuotas reports whether the access list of the path of quotas is open to everyone.
func (t *Tree) AnyoneMaySetQuotas() bool { return t.nodes[quotaPath].acl.world&^wire.PermRead != 0 }

// overQuota reports whether a hard limit forbids adding bytes and count at path, whose nearest existing node is n. As
// in ZooKeeper, each operation of a multi is checked against the usage before the multi.
func (t *Tree) overQuota(path string, n *node, bytes, count int64) bool {
	if !t.cfg.EnforceQuota || len(t.bySubject) == 0 {
		return false
	}
	if n.path != path {
		if q := t.bySubject[path]; q != nil && q.over(bytes, count) {
			t.noteRefusal(path)
			return true
		}
	}
	for ; n != nil; n = n.parent {
		if q := t.governs[n]; q != nil && q.over(bytes, count) {
			t.noteRefusal(path)
			return true
		}
	}
	return false
}

// maxRefusals is for how many children of the root refusals are counted. A client could make any number of quotas, one
// after the other.
const maxRefusals = 1000

// noteRefusal counts that a quota has refused a write at path.
func (t *Tree) noteRefusal(path string) {
	name, _, _ := strings.Cut(path[1:], "/")
	if _, known := t.refusals[name]; known || len(t.refusals) < maxRefusals && len(name) <= maxUsage {
		t.refusals[strings.Clone(name)]++
	}
}

// QuotaRefusals returns how many writes quotas have refused since the last reset, for each child of the root at or
// below which they were, up to 1,000 of them. Those of before the reset stay, with 0.
func (t *Tree) QuotaRefusals() map[string]int64 { return maps.Clone(t.refusals) }

// QuotaUse is what the quotas at and below a child of the root allow and what they have counted, added up. A quota
// without a limit adds -1 to it, as in ZooKeeper.
type QuotaUse struct{ CountLimit, BytesLimit, Count, Bytes int64 }

// QuotaUses returns the use of all quotas by child of the root. It returns none if there are more than maxRefusals
// quotas, because reading them all would take long.
func (t *Tree) QuotaUses() map[string]QuotaUse {
	if len(t.bySubject) > maxRefusals {
		return nil
	}
	uses := make(map[string]QuotaUse)
	for subject, q := range t.bySubject {
		name, _, _ := strings.Cut(subject[1:], "/")
		n := t.nodes[quotaPath+subject+limitsName]
		if n == nil || len(name) > maxUsage {
			continue
		}
		soft, u := parseUsage(n.data), uses[name]
		u.CountLimit += hardOr(q.hardCount, soft.count)
		u.BytesLimit += hardOr(q.hardBytes, soft.bytes)
		u.Count += q.count
		u.Bytes += q.bytes
		uses[name] = u
	}
	return uses
}

// hardOr returns the hard limit, or the soft one if there is no hard one.
func hardOr(hard, soft int64) int64 {
	if hard > -1 {
		return hard
	}
	return soft
}

// ResetQuotaRefusals sets the numbers of QuotaRefusals to 0.
func (t *Tree) ResetQuotaRefusals() {
	for name := range t.refusals {
		t.refusals[name] = 0
	}
}

func (q *quota) over(bytes, count int64) bool {
	usedBytes, usedCount := q.bytes, q.count
	if q.dirty {
		usedBytes, usedCount = q.before.bytes, q.before.count
	}
	return exceeds(usedBytes, bytes, q.hardBytes) || exceeds(usedCount, count, q.hardCount)
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
