package conformance_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// A normal formats values so that two servers give the same text if they behave the same. Zxids count from the start
// of the case, sessions and passwords get names in order of appearance, and times are checked and left out.
type normal struct {
	base      int64
	began     time.Time
	sessions  map[int64]string
	passwords map[string]string
	times     map[int64]int64 // of transactions, as far as stats have shown them

	anyACLOrder bool // sort access lists
	anyZxid     bool // leave out zxids: the collector may have used some for nodes that are already gone
}

func newNormal() *normal {
	return &normal{
		began: time.Now(), sessions: map[int64]string{}, passwords: map[string]string{},
		times: map[int64]int64{},
	}
}

func (n *normal) zxid(z int64) string {
	if n.anyZxid {
		return "?"
	}
	switch z {
	case 0:
		return "0"
	case -1:
		return "minus1"
	case 1 << 62:
		return "future"
	default:
		return fmt.Sprintf("%+d", z-n.base)
	}
}

func (n *normal) session(id int64) string {
	if id == 0 {
		return "none"
	}
	if _, ok := n.sessions[id]; !ok {
		n.sessions[id] = fmt.Sprintf("s%d", len(n.sessions)+1)
	}
	return n.sessions[id]
}

func (n *normal) password(p []byte) string {
	switch {
	case p == nil:
		return "null"
	case len(p) == 0:
		return "empty"
	case !slices.ContainsFunc(p, func(b byte) bool { return b != 0 }):
		return fmt.Sprintf("%d zeros", len(p))
	}
	if _, ok := n.passwords[string(p)]; !ok {
		n.passwords[string(p)] = fmt.Sprintf("p%d(%d bytes)", len(n.passwords)+1, len(p))
	}
	return n.passwords[string(p)]
}

func (n *normal) identity(id int64, password []byte) string {
	return fmt.Sprintf("session=%s password=%s", n.session(id), n.password(password))
}

// when checks the time of transaction zxid: within the case, never before an earlier transaction's, and the same in
// every stat.
func (n *normal) when(zxid, ms int64) string {
	if zxid <= n.base {
		if zxid == 0 && ms == 0 {
			return "never"
		}
		return "before"
	}
	at := time.UnixMilli(ms)
	if at.Before(n.began.Add(-2*time.Second)) || at.After(time.Now().Add(2*time.Second)) {
		return fmt.Sprintf("WRONG(%v)", at)
	}
	if known, ok := n.times[zxid]; ok && known != ms {
		return fmt.Sprintf("WRONG(%d, was %d)", ms, known)
	}
	n.times[zxid] = ms
	for other, t := range n.times {
		if (other < zxid && t > ms) || (other > zxid && t < ms) {
			return fmt.Sprintf("WRONG(%d at %s, %d at %s)", ms, n.zxid(zxid), t, n.zxid(other))
		}
	}
	return "t"
}

func (n *normal) stat(s *wire.Stat) string {
	return fmt.Sprintf("{c%s m%s p%s ctime=%s mtime=%s v%d cv%d av%d owner=%s len%d kids%d}", n.zxid(s.Czxid),
		n.zxid(s.Mzxid), n.zxid(s.Pzxid),
		n.when(s.Czxid, s.Ctime), n.when(s.Mzxid,
			s.Mtime), s.Version, s.Cversion, s.Aversion, n.owner(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

func (n *normal) owner(id int64) string {
	if id == 0 {
		return "-"
	}
	if name, ok := n.sessions[id]; ok {
		return name
	}
	return fmt.Sprintf("%#x", uint64(id))
}

// show formats a record's fields.
func (n *normal) show(r wire.Record) string {
	switch r := r.(type) {
	case nil, *wire.Empty:
		return ""
	case rawBody:
		return fmt.Sprintf(" raw % x", []byte(r))
	case *wire.MultiRequest:
		var b strings.Builder
		for _, sub := range r.Ops {
			fmt.Fprintf(&b, " [%v%s]", sub.Op, n.show(sub.Request))
		}
		return b.String()
	case *wire.MultiResponse:
		var b strings.Builder
		for i := range r.Results {
			b.WriteString(" " + n.result(&r.Results[i]))
		}
		return b.String()
	case *wire.ChildrenResponse:
		return " " + n.set(r.Children)
	case *wire.Children2Response:
		return " " + n.set(r.Children) + " " + n.stat(&r.Stat)
	case *wire.WhoAmIResponse:
		var ids []string
		for _, id := range r.IDs {
			ids = append(ids, id.Scheme+":"+id.ID)
		}
		return " " + n.set(ids)
	default:
		return n.fields(reflect.ValueOf(r).Elem())
	}
}

// set sorts what servers return in any order. A null vector is not an empty one.
func (n *normal) set(names []string) string {
	if names == nil {
		return "null"
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return fmt.Sprint(names)
}

func (n *normal) result(r *wire.MultiResult) string {
	switch r.Op {
	case wire.OpError:
		return fmt.Sprintf("[error %d]", int32(r.Err))
	case wire.OpCreate:
		return fmt.Sprintf("[%d %s]", r.Op, r.Path)
	case wire.OpCreate2:
		return fmt.Sprintf("[%d %s %s]", r.Op, r.Path, n.stat(&r.Stat))
	case wire.OpSetData:
		return fmt.Sprintf("[%d %s]", r.Op, n.stat(&r.Stat))
	case wire.OpGetData:
		return fmt.Sprintf("[%d %s %s]", r.Op, quote(r.Data), n.stat(&r.Stat))
	case wire.OpGetChildren:
		return fmt.Sprintf("[%d %s]", r.Op, n.set(r.Children))
	default:
		return fmt.Sprintf("[%d]", r.Op)
	}
}

func (n *normal) fields(v reflect.Value) string {
	var b strings.Builder
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch x := f.Interface().(type) {
		case wire.Stat:
			b.WriteString(" " + n.stat(&x))
		case []byte:
			fmt.Fprintf(&b, " %s=%s", name, quote(x))
		case []wire.ACL:
			if n.anyACLOrder {
				x = slices.SortedFunc(slices.Values(x), func(a, b wire.ACL) int {
					return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
				})
			}
			fmt.Fprintf(&b, " %s=%s", name, acls(x))
		case string:
			fmt.Fprintf(&b, " %s=%s", name, shorten(x))
		case wire.CreateRequest:
			b.WriteString(n.fields(f))
		case bool:
			if x {
				fmt.Fprintf(&b, " %s", name)
			}
		case int64:
			if name == "RelativeZxid" {
				fmt.Fprintf(&b, " %s=%s", name, n.zxid(x))
			} else {
				fmt.Fprintf(&b, " %s=%d", name, x)
			}
		default:
			fmt.Fprintf(&b, " %s=%v", name, x)
		}
	}
	return b.String()
}

func acls(list []wire.ACL) string {
	switch {
	case list == nil:
		return "null"
	case len(list) == 1 && list[0] == open[0]:
		return "open"
	}
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "(%d %s %s)", a.Perms, a.ID.Scheme, a.ID.ID)
	}
	return b.String()
}

func quote(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 100:
		return fmt.Sprintf("%d bytes", len(b))
	default:
		return fmt.Sprintf("%q", b)
	}
}

func shorten(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%q…(%d bytes)", s[:20], len(s))
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}
