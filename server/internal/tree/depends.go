package tree

// Which reads depend on a write.

import (
	"slices"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// DependsOn reports whether the answer to a read depends on a path for which dirty returns true. It returns true for
// getEphemerals and getAllChildrenNumber, whose answers depend on many nodes, for sync, and for unknown records.
func DependsOn(op wire.Op, req wire.Record, dirty func(path string) bool) bool {
	at := func(path string) bool {
		if path == "" {
			path = rootPath
		}
		return dirty(path)
	}
	switch op {
	case wire.OpWhoAmI, wire.OpAddWatch:
		return false
	case wire.OpSync, wire.OpGetEphemerals, wire.OpGetAllChildren:
		return true
	}
	switch r := req.(type) {
	case *wire.PathWatchRequest:
		return r != nil && at(r.Path)
	case *wire.WatcherTypeRequest:
		return r != nil && at(r.Path) // a watch that is gone shows that it has fired
	case *wire.PathRequest:
		return r != nil && at(r.Path)
	case *wire.SetWatchesRequest:
		return r != nil && (slices.ContainsFunc(r.Data, at) || slices.ContainsFunc(r.Exist, at) ||
			slices.ContainsFunc(r.Child, at))
	case *wire.MultiRequest:
		return r != nil && slices.ContainsFunc(r.Ops, func(s wire.SubRequest) bool {
			q, ok := s.Request.(*wire.PathWatchRequest)
			return ok && q != nil && at(q.Path)
		})
	}
	return true
}
