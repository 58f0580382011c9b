package tree

// The steps of one write: applying, undoing, changes for the store.

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// transaction records what one write has done so far: enough to undo it, to derive its Changes and to fire its watches.
type transaction struct {
	zxid     int64
	at       int64 // milliseconds since 1970
	steps    []step
	triggers []trigger
	sessions []Change
	lists    int                // bytes of access lists to store again, if the write is a multi
	listed   map[*node]struct{} // the nodes with them
	looks    int                // at watches, for events
	cut      []WatcherID        // the connections that get no further events
}

type stepKind uint8

const (
	created stepKind = iota
	deleted
	dataSet
	listSet
	statsSet
	sequenceSet
)

// step is one change of one node, with what is needed to undo it.
type step struct {
	kind    stepKind
	n       *node
	data    []byte // before
	zxid    int64  // before: the parent's pzxid (created, deleted), mzxid (dataSet)
	mtime   int64  // before
	version int32  // before
}

// begin starts a write, which lasts until finish.
func (t *Tree) begin(zxid, at int64) {
	t.zxid = zxid
	t.tx.zxid, t.tx.at = zxid, at
}

// finish ends a write: it fires the watches and collects the changes, or undoes the steps of a refused write.
func (t *Tree) finish(body wire.Record, code wire.Code) Result {
	if code != wire.OK {
		t.rollback()
		t.reset()
		return Result{Code: code}
	}
	t.settleQuotas()
	r := Result{Body: body, Changes: t.changes(), Events: t.fireAll()}
	r.Cut = t.tx.cut
	t.reset()
	return r
}

func (t *Tree) reset() {
	const keep = 1 << 10 // the end of a session with very many nodes must not keep its memory allocated
	x := &t.tx
	if len(t.deepAt) > 0 {
		for i := range x.steps {
			if n := x.steps[i].n; x.steps[i].kind == deleted && t.nodes[n.path] != n {
				delete(t.deepAt, n)
			}
		}
	}
	if cap(x.steps) > keep {
		*x = transaction{}
		return
	}
	clear(x.steps)
	clear(x.triggers)
	x.steps, x.triggers, x.sessions = x.steps[:0], x.triggers[:0], nil
	x.lists, x.listed, x.looks, x.cut = 0, nil, 0, nil
}

// store counts the access list of a node whose record must be stored again.
func (x *transaction) store(n *node) {
	if x.listed == nil || n.acl.open {
		return
	}
	if _, ok := x.listed[n]; !ok {
		x.listed[n] = struct{}{}
		x.lists += n.acl.size
	}
}

// add creates a node. The caller has checked everything.
func (t *Tree) add(n *node) {
	p := n.parent
	t.tx.steps = append(t.tx.steps, step{kind: created, n: n, zxid: p.pzxid})
	t.tx.triggers = append(t.tx.triggers, trigger{wire.EventCreated, n, n.acl, p.acl})
	p.creates++
	p.pzxid = t.tx.zxid
	n.counted = t.counts
	t.tx.store(n)
	t.tx.store(p)
	t.link(n)
	t.account(n, int64(len(n.data)), 1)
	t.statsWritten(n)
}

// remove deletes a node. The caller has checked everything.
func (t *Tree) remove(n *node) {
	p := n.parent
	t.tx.steps = append(t.tx.steps, step{kind: deleted, n: n, zxid: p.pzxid})
	t.tx.triggers = append(t.tx.triggers, trigger{wire.EventDeleted, n, n.acl, p.acl})
	p.pzxid = t.tx.zxid
	t.tx.store(p)
	t.account(n, -int64(len(n.data)), -1)
	t.unlink(n)
}

// setData replaces a node's data. The caller has checked everything.
func (t *Tree) setData(n *node, data []byte) {
	t.tx.steps = append(t.tx.steps, step{
		kind: dataSet, n: n, data: n.data, zxid: n.mzxid, mtime: n.mtime,
		version: n.version,
	})
	t.tx.triggers = append(t.tx.triggers, trigger{kind: wire.EventDataChanged, n: n, acl: n.acl})
	t.tx.store(n)
	grown := int64(len(data) - len(n.data))
	t.replace(n, data)
	n.mzxid, n.mtime = t.tx.zxid, t.tx.at
	n.version++
	t.account(n, grown, 0)
	t.statsWritten(n)
}

// setList replaces a node's access list, which fires no watch. The caller has checked everything.
func (t *Tree) setList(n *node, a *acl) {
	t.tx.steps = append(t.tx.steps, step{kind: listSet, n: n})
	n.acl = a
	n.aversion++
}

func (t *Tree) replace(n *node, data []byte) {
	t.size += int64(len(data) - len(n.data))
	n.data = data
	t.quotaData(n)
}

// rollback undoes all steps, the last one first.
func (t *Tree) rollback() {
	x := &t.tx
	for i := len(x.steps) - 1; i >= 0; i-- {
		s := &x.steps[i]
		n := s.n
		switch s.kind {
		case created:
			t.unlink(n)
			delete(t.deepAt, n)
			n.parent.creates--
			n.parent.pzxid = s.zxid
		case deleted:
			t.relink(n)
			n.parent.pzxid = s.zxid
		case dataSet:
			t.replace(n, s.data)
			n.mzxid, n.mtime, n.version = s.zxid, s.mtime, s.version
		case statsSet:
			t.replace(n, s.data)
		case listSet, sequenceSet:
			// Nothing that could fail follows these in a transaction.
		}
	}
	t.undoUse()
	clear(x.steps)
	clear(x.triggers)
	x.steps, x.triggers = x.steps[:0], x.triggers[:0]
}

// touched is the effect of a transaction on one path.
type touched struct {
	path string
	data bool // the data record changed as well as the meta record
}

// changes converts the steps to changes of the store: one state per touched node, that after the last step.
func (t *Tree) changes() []Change {
	x := &t.tx
	if len(x.steps) == 0 {
		return x.sessions
	}
	// Nearly every write has one step. Only writes with many steps need a map to find repeated paths.
	const few = 4
	var room [2 * few]touched
	list := room[:0]
	var index map[string]int
	if len(x.steps) > few {
		index = make(map[string]int, len(x.steps)+1)
	}
	note := func(path string, data bool) {
		at := -1
		if index != nil {
			if i, ok := index[path]; ok {
				at = i
			} else {
				index[path] = len(list)
			}
		} else {
			for i := range list {
				if list[i].path == path {
					at = i
					break
				}
			}
		}
		if at < 0 {
			list = append(list, touched{path: path, data: data})
			return
		}
		list[at].data = list[at].data || data
	}
	for i := range x.steps {
		n := x.steps[i].n
		switch x.steps[i].kind {
		case created:
			note(n.path, len(n.data) > 0)
			note(n.parent.path, false)
		case deleted:
			note(n.path, true)
			note(n.parent.path, false)
		case dataSet, statsSet:
			note(n.path, true)
		case listSet, sequenceSet:
			note(n.path, false)
		}
	}
	out := make([]Change, 0, 2*len(list)+len(x.sessions))
	for _, e := range list {
		out = t.appendChanges(out, e)
	}
	return append(out, x.sessions...)
}

func (t *Tree) appendChanges(out []Change, e touched) []Change {
	const record = 96 // bytes; enough for a record with openList
	n := t.nodes[e.path]
	if n == nil {
		return append(out, Change{Kind: RemoveNode, Path: e.path})
	}
	out = append(out, Change{
		Kind: PutNode, Path: n.path,
		Value: appendRecord(make([]byte, 0, record), n, n.dataLength()),
	})
	switch {
	case e.data && len(n.data) > 0:
		out = append(out, Change{Kind: PutData, Path: n.path, Value: n.data})
	case e.data:
		out = append(out, Change{Kind: RemoveData, Path: n.path})
	}
	return out
}
