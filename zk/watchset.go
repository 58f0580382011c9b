package zk

// The watches of a session, and how they are restored.

import (
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

const (
	// setWatchesSize is the size of the paths in a packet of restored watches, unless it has one only. It is small,
	// because some servers accept 64 KiB only (jute.maxbuffer), and would cut the connection at each reconnect.
	setWatchesSize = 32 << 10
	maxRestoring   = 2 // packets without a reply: each reply prolongs the session, however many follow
	// maxWatchPath is the size of a path that can be restored: servers cut the connection at larger packets.
	maxWatchPath = wire.DefaultMaxFrame - 64
)

// watchSet has a session's watches by their path at the server. The session's mutex guards it.
//
// Several watches of one path and kind share one at the server. The session removes it when the last of them is closed
// and no request that sets one is pending. Requests are executed in order, so a request queued later sets the watch
// anew.
type watchSet struct {
	paths     map[string]*watched
	recursive int // the number of recursive watches
	longest   int // bytes of the longest path that has had one
}

func (ws *watchSet) at(path string) *watched {
	p := ws.paths[path]
	if p == nil {
		if ws.paths == nil {
			ws.paths = make(map[string]*watched)
		}
		p = new(watched)
		ws.paths[path] = p
	}
	return p
}

// begin records a pending request that sets w.
func (ws *watchSet) begin(w *Watch) { ws.at(w.key).pending[w.kind.slot()]++ }

func (ws *watchSet) add(w *Watch) {
	p := ws.at(w.key)
	p.sets[w.kind] = append(p.sets[w.kind], w)
	p.stale[w.kind.slot()] = false
	w.set = true
	if w.kind == watchRecursive {
		ws.recursive++
		ws.longest = max(ws.longest, len(w.key))
	}
}

// remove removes w. If it was the last of its kind, the watch at the server is stale.
func (ws *watchSet) remove(w *Watch) {
	p := ws.at(w.key)
	set := p.sets[w.kind]
	for i, other := range set {
		if other == w {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = nil
			p.sets[w.kind] = set[:len(set)-1]
			break
		}
	}
	w.set = false
	if w.kind == watchRecursive {
		ws.recursive--
	}
	slot := w.kind.slot()
	p.stale[slot] = p.stale[slot] || len(p.sets[w.kind]) == 0
}

// fire adds an event to the watches that it concerns.
func (ws *watchSet) fire(e wire.Event, zxid int64) {
	event := Event{Type: EventType(e.Type), Zxid: zxid}
	if p := ws.paths[e.Path]; p != nil {
		switch event.Type {
		case EventCreated, EventDataChanged:
			p.fireOnce(event, watchData, watchExist)
		case EventChildrenChanged:
			p.fireOnce(event, watchChild)
		case EventDeleted:
			p.fireOnce(event, watchData, watchExist, watchChild)
		default:
			return
		}
		for _, w := range p.sets[watchPersistent] {
			event.Path = w.path
			w.fire(event)
		}
	}
	if ws.recursive == 0 || event.Type == EventChildrenChanged {
		return
	}
	at := e.Path // which a server may have made of a million levels
	if len(at) > ws.longest {
		at = parentOf(at[:ws.longest+1])
	}
	for ; at != ""; at = parentOf(at) {
		if p := ws.paths[at]; p != nil {
			for _, w := range p.sets[watchRecursive] {
				event.Path = w.sess.client.cfg.root.local(e.Path)
				w.fire(event)
			}
		}
	}
}

// parentOf returns the path of the parent, or "" for the root.
func parentOf(path string) string {
	switch i := strings.LastIndexByte(path, '/'); {
	case path == "/" || i < 0:
		return ""
	case i == 0:
		return "/"
	default:
		return path[:i]
	}
}

// fireOnce adds an event to the one-shot watches of some kinds, and ends them. The server has removed them.
func (p *watched) fireOnce(e Event, kinds ...watchKind) {
	for _, k := range kinds {
		for i, w := range p.sets[k] {
			e.Path = w.path
			w.fire(e)
			w.end(ErrWatchDone)
			w.set = false
			p.sets[k][i] = nil
		}
		p.sets[k] = p.sets[k][:0]
		p.stale[k.slot()] = false
	}
}

// all calls yield with every watch.
func (ws *watchSet) all(yield func(*Watch)) {
	for _, p := range ws.paths {
		for _, set := range p.sets {
			for _, w := range set {
				yield(w)
			}
		}
	}
}

// resynced adds EventResynced to the persistent watches.
func (ws *watchSet) resynced() {
	ws.all(func(w *Watch) {
		if w.kind == watchPersistent || w.kind == watchRecursive {
			w.fire(Event{Type: EventResynced, Path: w.path, Zxid: -1})
		}
	})
}

// reset drops the state of the last connection's server.
func (ws *watchSet) reset() {
	for path, p := range ws.paths {
		p.stale, p.coarse = [watchKinds]bool{}, false
		if p.idle() {
			delete(ws.paths, path)
		}
	}
}

// restore returns the packets that set all watches on a new connection, relative to the last transaction that the
// session saw. Without persistent watches they are of the form that servers before 3.6 support.
func (ws *watchSet) restore(lastZxid int64) (packets [][]byte) {
	two := false
	ws.all(func(w *Watch) { two = two || w.kind == watchPersistent || w.kind == watchRecursive })
	op := wire.OpSetWatches
	if two {
		op = wire.OpSetWatches2
	}
	req, size := wire.SetWatchesRequest{Two: two, RelativeZxid: lastZxid}, 0
	lists := [watchKinds]*[]string{&req.Data, &req.Exist, &req.Child, &req.Persistent, &req.PersistentRecur}
	send := func() {
		packets = append(packets, wire.AppendRequest(nil, wire.XidSetWatches, op, &req))
		for _, list := range lists {
			*list = (*list)[:0]
		}
		size = 0
	}
	for path, p := range ws.paths {
		for kind, set := range p.sets {
			if len(set) == 0 {
				continue
			}
			need := len(path) + 4
			if size > 0 && size+need > setWatchesSize {
				send()
			}
			*lists[kind] = append(*lists[kind], path)
			size += need
		}
	}
	if size > 0 {
		send()
	}
	return packets
}
