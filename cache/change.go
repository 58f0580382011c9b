package cache

// Changes from one version to a later one.

import (
	"context"
	"fmt"
	"iter"
)

// Kind says what happened to a node.
type Kind int

// The kinds of changes.
const (
	Created  Kind = iota + 1 // the node is new
	Changed                  // its data was set
	Deleted                  // it is gone
	Replaced                 // it was deleted and created again
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Created:
		return "created"
	case Changed:
		return "changed"
	case Deleted:
		return "deleted"
	case Replaced:
		return "replaced"
	default:
		return fmt.Sprintf("kind(%d)", int(k))
	}
}

// A Change is the difference between two states of a node.
type Change struct {
	Kind   Kind
	Path   string
	Before Entry // zero if Created
	After  Entry // zero if Deleted
}

// Changes yields the nodes as they are now, as Created, and then every change. It begins when the cache is synced for
// the first time. A slow caller misses intermediate states of a node, never the last; however slow it is, it costs at
// most the memory of the version that it was last told of. Changes that the cache learned of together come in the order
// of All, deleted nodes included.
//
// It ends with an error: ctx's cause, ErrClosed after Close, or why the cache has ended. If a server refuses before the
// first synchronization it yields that, too; a caller that continues its loop waits for the server to relent. Later
// refusals it does not yield: see Err and Synced.
func (f *follower) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		last := &View{root: f.root}
		for view, err := range f.Views(ctx) {
			if err != nil {
				if !yield(Change{}, err) {
					return
				}
				continue
			}
			for c := range last.until(view) {
				if !yield(c, nil) {
					return
				}
			}
			last = view
		}
	}
}

// Views yields the contents as they are now, and then the latest version after every change. It begins when the cache
// is synced for the first time. A slow caller misses versions, never the last. It ends with the errors of Changes.
func (f *follower) Views(ctx context.Context) iter.Seq2[*View, error] {
	return func(yield func(*View, error) bool) {
		var last *View
		var told error
		for {
			if ctx.Err() != nil { // also if there always is a later version
				yield(nil, context.Cause(ctx))
				return
			}
			view, err := f.next(ctx, last, told)
			if !yield(view, err) || err != nil && (ctx.Err() != nil || f.isOver()) {
				return
			}
			if told = err; err == nil {
				last = view
			}
		}
	}
}

func (f *follower) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

// until yields the changes from v to a later version.
func (v *View) until(later *View) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		compare(&v.nodes, &later.nodes, func(before, after *cursor) bool {
			var c Change
			switch {
			case before == nil:
				c = Change{Kind: Created, After: later.at(after)}
			case after == nil:
				c = Change{Kind: Deleted, Before: v.at(before)}
			default:
				c = Change{Kind: Changed, Before: v.at(before), After: later.at(after)}
				if c.Before.Czxid != c.After.Czxid {
					c.Kind = Replaced
				}
			}
			if c.Path = c.After.Path; after == nil {
				c.Path = c.Before.Path
			}
			return yield(c)
		})
	}
}
