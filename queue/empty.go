package queue

// Waiting until nothing is left.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/queue/internal/segment"
	"github.com/seed-a3166700/turnstile/zk"
)

// AwaitEmpty waits until there is no item: none is ready, delayed, or claimed, and none waits behind another of its
// group. It returns nil if there was such a moment during the call, whatever has been put since, and ctx's cause if ctx
// ends first. It costs nothing while it waits: it watches one of the items that are left.
func (q *Queue) AwaitEmpty(ctx context.Context) error {
	err := q.reader.awaitEmpty(ctx)
	if q.ctx.Err() != nil && err != nil {
		err = ErrClosed
	}
	if err != nil {
		return q.failed("wait for the end of", err)
	}
	return nil
}

func (r reader) awaitEmpty(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(ErrClosed) })()
	for in := ""; ; {
		w, err := run(ctx, r.base, func(sess *zk.Session) (*zk.Watch, error) { return r.watchLeft(ctx, sess, in) })
		if err != nil || w == nil {
			return err
		}
		in = path.Dir(w.Path())
		_, err = w.Next(ctx) // or its session ends
		w.Close()
		if ctx.Err() != nil {
			return err
		}
	}
}

// watchLeft returns a watch on an item that is left, or nil if there is none. It looks at a segment first, in which
// there was one; "" for none.
func (r reader) watchLeft(ctx context.Context, sess *zk.Session, in string) (*zk.Watch, error) {
	before := ""
	for {
		item, err := r.lastOf(ctx, sess, in)
		seen := ""
		if item == "" && err == nil {
			item, seen, err = r.left(ctx, sess)
		}
		switch {
		case err != nil:
			return nil, err
		case item != "":
			_, there, w, err := sess.ExistsW(ctx, item)
			if err != nil || there {
				return w, err
			}
			w.Close()
			in = path.Dir(item) // most often the next one is there
		case before == "":
			// A server that lags behind may not show yet what was put before something that was finished.
			if err := sess.Sync(ctx, r.layout.root); err != nil {
				return nil, err
			}
		case seen == before:
			return nil, nil //nolint:nilnil // none is left
		}
		before = seen
	}
}

// lastOf returns the path of the last item of a segment, or "" if it has none.
func (r reader) lastOf(ctx context.Context, sess *zk.Session, in string) (string, error) {
	if in == "" {
		return "", nil
	}
	names, _, err := sess.Children(ctx, in)
	items := segment.Numbers(names, segment.ParseItem)
	if errors.Is(err, zk.NoNode) || err == nil && len(items) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return in + "/" + segment.ItemName(items[len(items)-1]), nil
}

// left returns the path of an item that is ready, claimed or delayed. If it finds none, seen is what it has looked at.
// That is not one moment: an item may have gone from a list that it was yet to look at to one that it had looked at.
// But each node is one whose Stat counts the changes of its children, so if the next look sees the same, nothing has
// changed between the end of the one and the beginning of the other, and then there was no item.
//
// Items that wait in groups need no look: there is none without another of its group that is ready, claimed or delayed.
func (r reader) left(ctx context.Context, sess *zk.Session) (item, seen string, err error) {
	var look strings.Builder
	note := func(path string, s zk.Stat) { fmt.Fprintln(&look, path, s.Czxid, s.Pzxid, s.Cversion) }
	paths := []string{r.layout.path(dirDelayed), r.layout.path(dirReady)}
	isSegment := func(_, name string) (ok bool) { _, ok = segment.ParseName(name); return ok }
	for _, ours := range []func(dir, name string) bool{isList, isSegment} {
		var below []string
		for dir, list := range attempt.Each(sess, paths, (*zk.Batch).Children) {
			c, err := list.Get(ctx)
			if err != nil && !errors.Is(err, zk.NoNode) {
				return "", "", err
			}
			note(dir, c.Stat)
			for _, name := range c.Names {
				if ours(path.Base(dir), name) {
					below = append(below, dir+"/"+name)
				}
			}
		}
		paths = below
	}
	var filled []string
	for path, node := range attempt.Each(sess, paths, (*zk.Batch).Exists) {
		e, err := node.Get(ctx)
		if err != nil {
			return "", "", err
		}
		note(path, e.Stat)
		if e.Stat.NumChildren > 0 {
			filled = append(filled, path)
		}
	}
	for _, in := range slices.Backward(filled) {
		if item, err = r.lastOf(ctx, sess, in); item != "" || err != nil {
			return item, "", err
		}
	}
	return "", look.String(), nil
}
