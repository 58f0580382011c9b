package zk

// The watches of a session, and how they are restored.

import (
	"strings"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// setWatchesSize is about how large a packet of restored watches gets.
const setWatchesSize = 128 << 10

// watchSet holds a session's watches by their path on the server. It is guarded by the session's mutex.
//
// Several watches of one path and kind share one on the server. It is removed there when the last of them is closed and none is on
// its way; requests are answered in order, so a registration that is queued later finds the removal done.
type watchSet struct {
	paths     map[string]*watched
	recursive int // how many recursive watches are set
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

// begin books that a request which sets w is on its way.
func (ws *watchSet) begin(w *Watch) { ws.at(w.key).flights[w.kind.slot()]++ }

func (ws *watchSet) add(w *Watch) {
	p := ws.at(w.key)
	p.sets[w.kind] = append(p.sets[w.kind], w)
	p.stale[w.kind.slot()] = false
	w.set = true
	if w.kind == watchRecursive {
		ws.recursive++
	}
}

// remove takes w out. If it was the last of its kind the server's watch is stale.
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

// fire gives an event to those whom it concerns.
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
	for at := e.Path; at != ""; at = parentOf(at) {
		if p := ws.paths[at]; p != nil {
			for _, w := range p.sets[watchRecursive] {
				event.Path = w.sess.client.cfg.root.local(e.Path)
				w.fire(event)
			}
		}
	}
}

// parentOf returns the path above, "" if there is none.
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

// fireOnce gives an event to the one-shot watches of some kinds, which are then done, here as on the server.
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

// all calls yield with every watch that is set.
func (ws *watchSet) all(yield func(*Watch)) {
	for _, p := range ws.paths {
		for _, set := range p.sets {
			for _, w := range set {
				yield(w)
			}
		}
	}
}

// resynced tells the persistent watches that events may have been missed.
func (ws *watchSet) resynced() {
	ws.all(func(w *Watch) {
		if w.kind == watchPersistent || w.kind == watchRecursive {
			w.fire(Event{Type: EventResynced, Path: w.path, Zxid: -1})
		}
	})
}

// reset forgets what only the last connection's server knew.
func (ws *watchSet) reset() {
	for path, p := range ws.paths {
		p.stale, p.coarse = [watchKinds]bool{}, false
		if p.idle() {
			delete(ws.paths, path)
		}
	}
}

// restore returns the frames that set all watches on a new connection, relative to the last transaction that the session saw,
// and how many they are. Without persistent watches it is the form that servers before 3.6 know as well.
func (ws *watchSet) restore(lastZxid int64) (frames []byte, packets int) {
	two := false
	ws.all(func(w *Watch) { two = two || w.kind == watchPersistent || w.kind == watchRecursive })
	op := wire.OpSetWatches
	if two {
		op = wire.OpSetWatches2
	}
	req, size := wire.SetWatchesRequest{Two: two, RelativeZxid: lastZxid}, 0
	lists := [watchKinds]*[]string{&req.Data, &req.Exist, &req.Child, &req.Persistent, &req.PersistentRecur}
	send := func() {
		frames = wire.AppendRequest(frames, wire.XidSetWatches, op, &req)
		packets++
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
			*lists[kind] = append(*lists[kind], path)
			if size += len(path) + 4; size >= setWatchesSize {
				send()
			}
		}
	}
	if size > 0 {
		send()
	}
	return frames, packets
}
