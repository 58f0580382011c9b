package classic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// snapshot is what is known of a queue's directories, so that they need not be listed for each item.
type snapshot struct {
	sess  *zk.Session
	ready []entry // what existed and was not locked, the next one first
	seen  counters

	aside bool // not the shared one, but one for a single item
}

type entry struct {
	name string
	key  key
}

// counters tell whether a list is still complete. A Stat counts the children that were created and deleted: Cversion
// is the sum of both, NumChildren the difference. So items that were put since can be seen without listing; and items
// that were unlocked without being removed, too, because the removal of an item is one deletion in either directory.
type counters struct {
	born     int64 // the directory's own creation: its counters start anew with it
	added    int32 // twice what was created in the items' directory
	released int32 // twice by how much more was deleted in the locks' directory than in the items'
}

func countersOf(items, locks zk.Stat) counters {
	return counters{
		born:     items.Czxid,
		added:    items.Cversion + items.NumChildren,
		released: (locks.Cversion - locks.NumChildren) - (items.Cversion - items.NumChildren),
	}
}

// pop takes the next entry that is due.
func (w *snapshot) pop() (entry, bool) {
	if len(w.ready) == 0 || w.ready[0].key.due > time.Now().UnixMilli() {
		return entry{}, false
	}
	e := w.ready[0]
	w.ready = w.ready[1:]
	return e, true
}

// next returns the item to try next. If there is none it waits, or returns ErrEmpty at once.
//
// Only one goroutine of a queue looks into the directories and waits at them, and the others wait for it: however
// many goroutines there are, a put wakes one in a process. Among processes the layouts have no order of waiting: a
// put wakes each process, and one gets the item.
func (d *base) next(ctx context.Context, sess *zk.Session, wait bool) (entry, error) {
	w, back, err := d.takeTurn(ctx, sess, wait)
	if err != nil {
		return entry{}, err
	}
	defer back()
	for {
		if !d.complete(ctx, sess, w) {
			if err := d.list(ctx, sess, w, nil); err != nil {
				return entry{}, err
			}
		}
		if e, ok := w.pop(); ok {
			return e, nil
		}
		if !wait {
			return entry{}, ErrEmpty
		}
		if err := d.await(ctx, sess, w); err != nil {
			return entry{}, err
		}
	}
}

// takeTurn waits for the shared snapshot. A caller that does not want to wait gets one of its own if another
// goroutine has that: it may be waiting for an item.
func (d *base) takeTurn(ctx context.Context, sess *zk.Session, wait bool) (w *snapshot, back func(), err error) {
	back = func() { d.turn <- w }
	if !wait {
		select {
		case w = <-d.turn:
			return w, back, nil
		default:
			return &snapshot{aside: true}, func() {}, nil
		}
	}
	select {
	case w = <-d.turn:
		return w, back, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-sess.Context().Done():
		return nil, nil, sess.Err()
	}
}

// complete reports whether the first of the snapshot is still the first of the queue. If it cannot tell, it returns
// false.
func (d *base) complete(ctx context.Context, sess *zk.Session, w *snapshot) bool {
	stale := !w.aside && d.stale.Swap(false)
	switch {
	case w.sess != sess || len(w.ready) == 0 || stale:
		return false
	case d.naming.fifo && d.locks == "":
		return true // later items come behind those that exist
	}
	b := sess.Batch()
	items := b.Exists(d.dir)
	locks := items
	if d.locks != "" {
		locks = b.Exists(d.locks)
	}
	b.Send()
	i, err := items.Get(ctx)
	if err != nil || !i.Exists {
		return false
	}
	l, err := locks.Get(ctx)
	if err != nil {
		return false
	}
	now := countersOf(i.Stat, l.Stat)
	if d.naming.fifo {
		now.added = w.seen.added
	}
	return now == w.seen
}

// await waits until there may be something ready that was not before.
func (d *base) await(ctx context.Context, sess *zk.Session, w *snapshot) error {
	if d.locks != "" { // or the removal of a lock could not be watched
		if err := d.makeDir(ctx, sess, d.locks); err != nil {
			return err
		}
	}
	var at watches
	defer at.close()
	if err := d.list(ctx, sess, w, &at); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	if len(w.ready) > 0 {
		due := w.ready[0].key.due
		if due <= now {
			return nil
		}
		// Look at the clock again now and then: it may be set. In nanoseconds a time centuries ahead would overflow.
		left := time.Duration(min(due-now, time.Minute.Milliseconds())) * time.Millisecond
		until, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		err := at.wait(until)
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		w.ready = nil
		return err
	}
	return at.wait(ctx)
}

// list fills the snapshot with all items that exist, are not locked and not broken. If at is not nil it gets watches
// on what was listed.
func (d *base) list(ctx context.Context, sess *zk.Session, w *snapshot, at *watches) error {
	*w = snapshot{sess: sess, aside: w.aside}
	items, itemStat, err := at.children(ctx, sess, d.dir)
	if err != nil {
		return err
	}
	locked, lockStat := map[string]bool{}, itemStat
	if d.locks != "" {
		var names []string
		if names, lockStat, err = at.children(ctx, sess, d.locks); err != nil {
			return err
		}
		for _, name := range names {
			locked[name] = true
		}
	}
	w.seen = countersOf(itemStat, lockStat)
	broken := d.passedOver(items)
	for _, name := range items {
		if k, ok := d.naming.parse(name); ok && !locked[name] && !broken[name] {
			w.ready = append(w.ready, entry{name, k})
		}
	}
	slices.SortFunc(w.ready, func(a, b entry) int { return compareKeys(a.key, b.key) })
	return nil
}

// watches are the watches of a goroutine that waits. A nil *watches lists without watching.
type watches struct{ all []*zk.Watch }

// children lists a directory, which is empty if it does not exist; then the watch is for its creation: a directory
// that was created for the sake of waiting would be left behind (CURATOR-545).
func (ws *watches) children(ctx context.Context, sess *zk.Session, dir string) ([]string, zk.Stat, error) {
	for {
		if ws == nil {
			names, stat, err := sess.Children(ctx, dir)
			if errors.Is(err, zk.NoNode) {
				err = nil
			}
			return names, stat, err
		}
		names, stat, w, err := sess.ChildrenW(ctx, dir)
		if !errors.Is(err, zk.NoNode) {
			if err == nil {
				ws.all = append(ws.all, w)
			}
			return names, stat, err
		}
		_, exists, w, err := sess.ExistsW(ctx, dir)
		switch {
		case err != nil:
			return nil, zk.Stat{}, err
		case !exists:
			ws.all = append(ws.all, w)
			return nil, zk.Stat{}, nil
		}
		w.Close() // created in between
	}
}

// wait waits until one of them has seen something.
func (ws *watches) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	first := make(chan error, len(ws.all))
	for _, w := range ws.all {
		wg.Go(func() {
			_, err := w.Next(ctx)
			first <- err
		})
	}
	err := <-first
	cancel()
	wg.Wait()
	return err
}

func (ws *watches) close() {
	for _, w := range ws.all {
		w.Close()
	}
}
