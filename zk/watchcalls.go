package zk

// The operations that set watches, and the removal of watches from the server.

import (
	"context"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func (s *Session) newWatch(path string, kind watchKind) *Watch {
	return &Watch{sess: s, path: path, key: s.client.cfg.root.server(path), kind: kind}
}

// deliverWatch hands an answered call that sets a watch to its caller. The watch is set before the caller can know of it.
func (s *Session) deliverWatch(c *call) {
	w, claimed := c.watch, c.claim()
	atServer := c.err == nil && c.code == wire.OK
	s.mu.Lock()
	if c.op == wire.OpExists && c.err == nil && c.code == wire.NoNode {
		atServer, w.kind = true, watchExist
	}
	s.settle(w, atServer, claimed)
	s.flush(false)
	if claimed {
		c.signal()
	} else {
		c.free()
	}
}

// settle ends the flight of a request that sets w. atServer says that the server has set it, wanted that a caller wants it.
// The caller holds s.mu.
func (s *Session) settle(w *Watch, atServer, wanted bool) {
	p := s.watches.at(w.key)
	p.flights[w.kind.slot()]--
	switch {
	case atServer && wanted && s.cause != nil:
		w.end(s.cause)
	case atServer && wanted:
		s.watches.add(w)
	case atServer:
		p.stale[w.kind.slot()] = true
	}
	s.tidy(w.key)
}

// tidy removes from the server what nobody here wants any more of a path. The caller holds s.mu, and flushes.
func (s *Session) tidy(path string) {
	p := s.watches.paths[path]
	if p == nil {
		return
	}
	if s.conn == nil || s.cause != nil { // the server's watches went with the connection
		p.stale = [watchKinds]bool{}
	}
	for _, slot := range [...]watchKind{watchData, watchChild, watchPersistent, watchRecursive} {
		if p.stale[slot] && !p.wanted(slot) {
			s.tidySlot(path, p, slot)
		}
	}
	if p.idle() {
		delete(s.watches.paths, path)
	}
}

// tidySlot removes one kind of watch, if that can be done without harm to the others. Servers before 3.9 keep one mode a path and
// connection: removing a data watch would take the persistent one along, so the stale one waits until that goes, too; and they
// cannot remove persistent watches but with all others of the path.
func (s *Session) tidySlot(path string, p *watched, slot watchKind) {
	lasting := slot == watchPersistent || slot == watchRecursive
	switch {
	case lasting && !p.wantedAny():
		p.stale = [watchKinds]bool{}
		s.removeAtServer(path, wire.WatcherAny)
	case lasting && !p.coarse:
		p.stale[slot] = false
		s.removeAtServer(path, wire.WatcherPersistent+int32(slot-watchPersistent))
	case !lasting && !p.wanted(watchPersistent) && !p.wanted(watchRecursive):
		p.stale[slot] = false
		kind := wire.WatcherData
		if slot == watchChild {
			kind = wire.WatcherChildren
		}
		s.removeAtServer(path, kind)
	}
}

// removeAtServer queues a request that nobody waits for.
func (s *Session) removeAtServer(path string, kind int32) {
	c := s.newCall(wire.OpRemoveWatches, path)
	c.quiet = true
	c.req.watcher = wire.WatcherTypeRequest{Path: path, Type: kind}
	s.enqueue(c, &c.req.watcher)
}

// housekept looks at the answer of removeAtServer.
func (s *Session) housekept(c *call) {
	if kind := c.req.watcher.Type; c.code == wire.MarshallingError && kind >= wire.WatcherPersistent {
		s.mu.Lock()
		p := s.watches.at(c.req.watcher.Path)
		p.coarse = true
		p.stale[watchPersistent+watchKind(kind-wire.WatcherPersistent)] = true
		s.tidy(c.req.watcher.Path)
		s.flush(false)
	}
	c.free()
}

// GetW returns a node's data and Stat as Get does, and a watch that fires when the data changes or the node is deleted.
// There is no watch if the call fails, and none stays behind on the server.
func (s *Session) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpGetData, path, watchData)
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.free()
	return c.data, Stat(c.stat), c.watch, nil
}

// ExistsW tells whether a node exists as Exists does, and returns a watch that fires when the node is created or deleted or its
// data changes. There is no watch if the call fails, and none stays behind on the server.
func (s *Session) ExistsW(ctx context.Context, path string) (Stat, bool, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpExists, path, watchData)
	if err != nil {
		return Stat{}, false, nil, err
	}
	defer c.free()
	return Stat(c.stat), c.code == wire.OK, c.watch, nil
}

// ChildrenW returns a node's children as Children does, and a watch that fires when a child is created or deleted or the node is
// deleted. There is no watch if the call fails, and none stays behind on the server.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpGetChildren2, path, watchChild)
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.free()
	return c.names, Stat(c.stat), c.watch, nil
}

func (s *Session) callWatch(ctx context.Context, op wire.Op, path string, kind watchKind) (*call, error) {
	if err := ValidatePath(path); err != nil {
		return nil, refuse(op, path, err)
	}
	c := s.newCall(op, path)
	c.watch = s.newWatch(path, kind)
	c.req.watch = wire.PathWatchRequest{Path: c.watch.key, Watch: true}
	if err := s.do(ctx, c, &c.req.watch); err != nil {
		return nil, err
	}
	return c, nil
}

// Watch sets a persistent watch on a node, which need not exist. Until it is closed it yields every change of the node's
// data, its creation and deletion, and every change of its list of children. It returns Unimplemented if the server is
// older than 3.6.
func (s *Session) Watch(ctx context.Context, path string) (*Watch, error) {
	return s.addWatch(ctx, path, watchPersistent, wire.WatchPersistent)
}

// WatchRecursive sets a persistent watch on a node, which need not exist, and on all nodes below it. Until it is closed it
// yields each creation, change of data and deletion of any of them. It returns Unimplemented if the server is older than
// 3.6.
func (s *Session) WatchRecursive(ctx context.Context, path string) (*Watch, error) {
	return s.addWatch(ctx, path, watchRecursive, wire.WatchPersistentRecursive)
}

func (s *Session) addWatch(ctx context.Context, path string, kind watchKind, mode int32) (*Watch, error) {
	if err := ValidatePath(path); err != nil {
		return nil, refuse(wire.OpAddWatch, path, err)
	}
	c := s.newCall(wire.OpAddWatch, path)
	c.watch = s.newWatch(path, kind)
	if err := s.do(ctx, c, &wire.AddWatchRequest{Path: c.watch.key, Mode: mode}); err != nil {
		return nil, err
	}
	defer c.free()
	return c.watch, nil
}
