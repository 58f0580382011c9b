package zk

// The operations that set watches, and the removal of watches from the server.

import (
	"context"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

func (s *Session) newWatch(path string, kind watchKind) *Watch {
	return &Watch{sess: s, path: path, key: s.client.cfg.root.server(path), kind: kind}
}

// deliverWatch hands an answered call that sets a watch to its caller. It adds the watch before the caller can use it.
func (s *Session) deliverWatch(c *call) {
	w, claimed := c.watch, c.claim()
	atServer := c.err == nil && c.code == wire.OK
	s.mu.Lock()
	if c.op == wire.OpExists && c.err == nil && c.code == wire.NoNode {
		atServer, w.kind = true, watchExist
	}
	s.watchAnswered(w, atServer, claimed)
	if atServer {
		s.mend(w)
	}
	s.flush(false)
	if claimed {
		c.signal()
	} else {
		c.free()
	}
}

// watchAnswered ends a pending request that sets w. atServer reports whether the server has set the watch, and wanted
// whether the caller still needs it. The caller holds s.mu.
func (s *Session) watchAnswered(w *Watch, atServer, wanted bool) {
	p := s.watches.at(w.key)
	p.pending[w.kind.slot()]--
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

// mend sets the persistent watches of a path again after w was set there, and has their readers read the nodes again. A
// server before 3.9 stores one mode for each path and connection (ZOOKEEPER-4466), so w has taken their place. A server
// that tells the transactions of events is not so old. If a path has persistent watches of both modes, the recursive
// one is set last: only the events of the list of children are then missing. The caller holds s.mu, and flushes.
func (s *Session) mend(w *Watch) {
	p := s.watches.paths[w.key]
	if p == nil || s.conn == nil || s.conn.dated {
		return
	}
	again := func(kind watchKind, mode int32) {
		if len(p.sets[kind]) == 0 {
			return
		}
		c := s.newCall(wire.OpAddWatch, w.path)
		c.quiet = true
		s.enqueue(c, &wire.AddWatchRequest{Path: w.key, Mode: mode})
		for _, lasting := range p.sets[kind] {
			lasting.fire(Event{Type: EventResynced, Path: lasting.path, Zxid: -1})
		}
	}
	if w.kind <= watchChild {
		again(watchPersistent, wire.WatchPersistent)
	}
	if w.kind != watchChild && w.kind != watchRecursive { // it has no use for events of lists
		again(watchRecursive, wire.WatchPersistentRecursive)
	}
}

// tidy removes the stale watches of a path from the server. The caller holds s.mu, and flushes.
func (s *Session) tidy(path string) {
	p := s.watches.paths[path]
	if p == nil {
		return
	}
	if s.conn == nil || s.cause != nil { // the server's watches have ended with the connection
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

// tidySlot removes one kind of watch, unless that would remove others. Servers before 3.9 store one mode for each path
// and connection: removing a data watch would remove a persistent one too, so the stale one stays until that is closed;
// and they can remove persistent watches only together with all others of the path.
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

// removeAtServer queues a request without a caller that removes watches.
func (s *Session) removeAtServer(path string, kind int32) {
	c := s.newCall(wire.OpRemoveWatches, path)
	c.quiet = true
	c.req.watcher = wire.WatcherTypeRequest{Path: path, Type: kind}
	s.enqueue(c, &c.req.watcher)
}

// removed handles the reply to removeAtServer.
func (s *Session) removed(c *call) {
	defer c.free()
	path, kind := c.req.watcher.Path, c.req.watcher.Type
	tooOld := c.code == wire.MarshallingError && kind >= wire.WatcherPersistent
	tooBusy := c.code == wire.ThrottledOp || c.code == wire.OperationTimeout
	if !tooOld && !tooBusy {
		return
	}
	s.mu.Lock()
	p := s.watches.at(path)
	p.coarse = p.coarse || tooOld
	for _, slot := range slotsOf(kind) { // the watches are still there
		p.stale[slot] = true
	}
	s.tidy(path)
	s.flush(false)
}

// slotsOf returns the slots that are stale again after a removal that did not happen. A leftover of a persistent watch
// has all others of its path removed with it.
func slotsOf(watcherType int32) []watchKind {
	switch watcherType {
	case wire.WatcherAny:
		return []watchKind{watchPersistent, watchRecursive}
	case wire.WatcherData:
		return []watchKind{watchData}
	case wire.WatcherChildren:
		return []watchKind{watchChild}
	default:
		return []watchKind{watchPersistent + watchKind(watcherType-wire.WatcherPersistent)}
	}
}

// GetW returns a node's data and Stat as Get does, and a watch that fires when the data changes or the node is deleted.
// If the call fails it leaves no watch behind.
func (s *Session) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpGetData, path, watchData)
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.free()
	return c.data, Stat(c.stat), c.watch, nil
}

// ExistsW reports whether a node exists as Exists does, and returns a watch that fires when the node is created or
// deleted or its data changes. If the call fails it leaves no watch behind.
func (s *Session) ExistsW(ctx context.Context, path string) (Stat, bool, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpExists, path, watchData)
	if err != nil {
		return Stat{}, false, nil, err
	}
	defer c.free()
	return Stat(c.stat), c.code == wire.OK, c.watch, nil
}

// ChildrenW returns a node's children as Children does, and a watch that fires when a child is created or deleted or
// the node is deleted. If the call fails it leaves no watch behind.
func (s *Session) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	c, err := s.callWatch(ctx, wire.OpGetChildren2, path, watchChild)
	if err != nil {
		return nil, Stat{}, nil, err
	}
	defer c.free()
	return c.names, Stat(c.stat), c.watch, nil
}

// validateWatch returns an error for the path of a watch that could not be restored on another connection.
func (s *Session) validateWatch(path string) error {
	if size := len(s.client.cfg.root) + len(path); size > maxWatchPath {
		return fmt.Errorf("%w: path of %d bytes is too long to be watched, limit %d", BadArguments, size, maxWatchPath)
	}
	return ValidatePath(path)
}

func (s *Session) callWatch(ctx context.Context, op wire.Op, path string, kind watchKind) (*call, error) {
	if err := s.validateWatch(path); err != nil {
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

// Watch sets a persistent watch on a node, which need not exist. Until it is closed it yields every change of the
// node's data, its creation and deletion, and every change of its list of children. It returns Unimplemented if the
// server is older than 3.6.
func (s *Session) Watch(ctx context.Context, path string) (*Watch, error) {
	return s.addWatch(ctx, path, watchPersistent, wire.WatchPersistent)
}

// WatchRecursive sets a persistent watch on a node, which need not exist, and on all nodes below it. Until it is closed
// it yields each creation, change of data and deletion of any of them. It returns Unimplemented if the server is older
// than 3.6.
func (s *Session) WatchRecursive(ctx context.Context, path string) (*Watch, error) {
	return s.addWatch(ctx, path, watchRecursive, wire.WatchPersistentRecursive)
}

func (s *Session) addWatch(ctx context.Context, path string, kind watchKind, mode int32) (*Watch, error) {
	if err := s.validateWatch(path); err != nil {
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
