package waits

// Finding deadlocks.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// longWait is how long a wait inside of a hold lasts before others are told of it: most end before, and cost
	// nothing.
	longWait = 200 * time.Millisecond
	// A client looks for deadlocks often after a wait of its own has begun to count, and then seldom, for as long as
	// it waits: others may begin to wait later. The bell calls it besides.
	passSoon, soon, passLater = 250 * time.Millisecond, 2 * time.Second, 2 * time.Second
	// writePause is the least time between two writes of a client's record.
	writePause = 200 * time.Millisecond
	// passTime bounds one look, so that a client that is cut off tries again.
	passTime = 10 * time.Second
)

// A detector tells others of the long waits of a client that are inside of holds, and finds the deadlocks that they are
// part of. It lasts as long as there are such waits.
type detector struct {
	id   detectorID
	dirs attempt.Dirs
	wake chan struct{} // one slot: look now

	waits map[uint64]*Wait // detectorsMu guards it

	// The fields below are run's alone.
	sess      *zk.Session // of the node, and of the bell's watch
	written   []byte      // the node's data; nil if there is none
	wrote     time.Time
	bell      *zk.Watch
	rang      bool            // so the bell may be the session's
	warned    bool            // of a refusal
	confirmed map[string]bool // deadlocks that we confirm
	told      map[string]bool // deadlocks that the hooks were told of
}

// A detectorID is what waits have in common that are told in one record.
type detectorID struct {
	client *zk.Client
	path   string
	rights string // part of the record's name, for its list of rights
}

// A client has no room for recipes' state, so this has all that run.
var (
	detectors   = make(map[detectorID]*detector) //nolint:gochecknoglobals // as above
	detectorsMu sync.Mutex                       //nolint:gochecknoglobals // never held while anything is waited for
)

// publish tells others of the wait from now on, unless it has ended.
func (w *Wait) publish() {
	sum := sha256.Sum256(fmt.Append(nil, w.Dirs.ACL))
	id := detectorID{client: w.Client, path: w.Path, rights: hex.EncodeToString(sum[:8])}
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	if w.over {
		return
	}
	d := detectors[id]
	if d == nil {
		d = &detector{
			id: id, dirs: w.Dirs,
			wake: make(chan struct{}, 1), waits: make(map[uint64]*Wait),
			confirmed: make(map[string]bool), told: make(map[string]bool),
		}
		detectors[id] = d
		go d.run()
	}
	w.detector = d
	d.waits[w.id] = w
	d.look()
}

// unpublish ends what publish has begun, or is about to.
func (w *Wait) unpublish() {
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	w.over = true
	d := w.detector
	if d == nil {
		return
	}
	delete(d.waits, w.id)
	if len(d.waits) == 0 {
		d.look()
	}
}

// look has run look at once.
func (d *detector) look() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run looks for deadlocks for as long as there are waits.
func (d *detector) run() {
	for {
		d.pass()
		if d.finished() {
			return
		}
		select {
		case <-d.wake:
		case <-time.After(d.pause()):
		}
	}
}

// finished ends the detector if there are no waits any more, and its node has gone.
func (d *detector) finished() bool {
	if d.written != nil && d.sess.Err() == nil {
		return false // pass has yet to remove it
	}
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	if len(d.waits) > 0 {
		return false
	}
	delete(detectors, d.id)
	if d.bell != nil {
		d.bell.Close()
	}
	return true
}

// pause returns how long to wait for the next look.
func (d *detector) pause() time.Duration {
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	for _, w := range d.waits {
		if time.Since(w.Since) < longWait+soon {
			return passSoon
		}
	}
	return passLater
}

// standing returns the waits that stand, by their number: what is returned stood, all of it at a time, within the call.
// What has changed while it was looked at is left out: so each wait that is left stood when the second look began.
func (d *detector) standing() map[uint64]*stuck.Wait {
	record, session := d.name(), d.sess.ID()
	detectorsMu.Lock() // no wait ends meanwhile
	defer detectorsMu.Unlock()
	look := func() map[uint64]*stuck.Wait {
		list := make(map[uint64]*stuck.Wait, len(d.waits))
		for id, wait := range d.waits {
			if w := wait.describe(record, session); w != nil {
				list[id] = w
			}
		}
		return list
	}
	first := look()
	second := look()
	maps.DeleteFunc(second, func(id uint64, w *stuck.Wait) bool {
		before := first[id]
		return before == nil || !before.Same(w)
	})
	return second
}

// pass looks once. What fails is tried again at the next pass: others then know of our waits later, and less is found.
func (d *detector) pass() {
	ctx, cancel := context.WithTimeout(context.Background(), passTime)
	defer cancel()
	sess, err := d.id.client.Session(ctx)
	if err != nil {
		return
	}
	if sess != d.sess { // the node and the watch have ended with the session before
		d.sess, d.written, d.bell, d.rang = sess, nil, nil, false
	}
	name := d.name()
	mine := d.standing()
	d.alone(mine)
	if len(mine) == 0 {
		if d.written != nil {
			d.remove(name)
		}
		return
	}
	if err := d.write(ctx, name, mine); err != nil {
		d.warn(ctx, err)
		return
	}
	d.listen(ctx)
	records, err := Read(ctx, sess, d.id.path)
	if err != nil {
		d.warn(ctx, err)
		return
	}
	records[name] = &Record{Owner: line.ThisProcess(""), Waits: slices.Collect(maps.Values(mine))}
	if d.confirm(ctx, records, name) && d.write(ctx, name, mine) == nil {
		d.ring(ctx)
	}
}

// warn warns, once, of a refusal that does not pass.
func (d *detector) warn(ctx context.Context, err error) {
	if d.warned || ctx.Err() != nil || d.sess.Err() != nil || zk.Temporary(err) {
		return
	}
	d.warned = true
	d.id.client.Logger().Warn("deadlocks with other clients are not found", "path", d.id.path, "err", err)
}

// name returns the name of the node.
func (d *detector) name() string { return recordName(d.sess.ID(), d.id.rights) }

// alone finds deadlocks among the client's own waits. It need not tell others of them first: what is standing stood at
// one time. Whether holds of other processes stand, only the server knows.
func (d *detector) alone(mine map[uint64]*stuck.Wait) {
	owner := line.ThisProcess("")
	waits := slices.DeleteFunc(slices.Collect(maps.Values(mine)), func(w *stuck.Wait) bool {
		return slices.ContainsFunc(w.Holds, func(h stuck.Hold) bool { return h.Other })
	})
	for _, found := range stuck.Find(waits) {
		d.tell(found, func(string) line.Owner { return owner })
	}
}

// write writes the node with what is told, if that has changed.
func (d *detector) write(ctx context.Context, name string, mine map[uint64]*stuck.Wait) error {
	data := Record{
		Owner: line.ThisProcess(""), Confirmed: slices.Sorted(maps.Keys(d.confirmed)),
	}.encode(mine)
	if string(data) == string(d.written) {
		return nil
	}
	select {
	case <-time.After(writePause - time.Since(d.wrote)):
	case <-ctx.Done():
		return ctx.Err()
	case <-d.sess.Context().Done(): // with which the node goes, and at the client's end the detector
		return d.sess.Err()
	}
	d.wrote = time.Now()
	d.written = []byte{} // whatever becomes of the reply, there may be a node to remove
	err := d.put(ctx, name, data)
	if err == nil {
		d.written = data
	}
	return err
}

// put sets a node of the session, or makes it.
func (d *detector) put(ctx context.Context, name string, data []byte) error {
	path := attempt.Join(d.id.path, name)
	_, err := d.sess.Set(ctx, path, data, -1)
	if !errors.Is(err, zk.NoNode) {
		return err
	}
	if err := d.dirs.Make(ctx, d.sess, d.id.path); err != nil {
		return err
	}
	_, err = d.sess.CreateNode(ctx, zk.Node{Path: path, Data: data, Mode: zk.Ephemeral, ACL: d.dirs.ACL})
	return err
}

// remove removes the node, and the bell: clients that still wait look once more, and ring another one if need be. It
// waits until that is done, or the session has ended: a later deletion could remove the node of the next wait.
func (d *detector) remove(name string) {
	paths := []string{attempt.Join(d.id.path, name)}
	if d.rang {
		paths = append(paths, attempt.Join(d.id.path, bellName()))
	}
	_ = attempt.Remove(d.sess, paths...).Wait(context.Background()) // if it is refused, they go with the session
	d.written, d.rang = nil, false
}

// listen has the bell wake run. The watch is there before the records are read, so that no confirmation is missed.
func (d *detector) listen(ctx context.Context) {
	if d.bell != nil {
		if _, rung := d.bell.Poll(); !rung {
			return
		}
		d.bell.Close()
		d.bell = nil
	}
	_, _, w, err := d.sess.ExistsW(ctx, attempt.Join(d.id.path, bellName()))
	if err != nil {
		return // there is the next pass
	}
	w.AfterFunc(d.look)
	d.bell = w
}

// ring calls all who wait. The bell goes with the session that made it, or nothing would ever remove it.
func (d *detector) ring(ctx context.Context) {
	d.rang = true
	_ = d.put(ctx, bellName(), nil) // there is the next pass
}

// confirm confirms the deadlocks that waits of ours are part of and that still stand, and tells of those that all
// others have confirmed as well. It reports whether there is one that it had not confirmed before.
func (d *detector) confirm(ctx context.Context, records map[string]*Record, name string) (changed bool) {
	confirmed := make(map[string]bool)
	for _, found := range Find(records) {
		if !slices.Contains(found.Records(), name) || !d.others(ctx, found) || !d.stands(found) {
			continue
		}
		confirmed[found.Key] = true
		changed = changed || !d.confirmed[found.Key]
		if !d.confirmed[found.Key] {
			continue // others must be able to read it first
		}
		records[name].Confirmed = append(records[name].Confirmed, found.Key)
		if Certain(found, records) {
			d.tell(found, func(record string) line.Owner { return records[record].Owner })
		}
	}
	d.confirmed = confirmed
	return changed
}

// others asks the server whether the holds of other processes stand that our waits in the deadlock are inside of: a
// hold of theirs is its node. They stood at some moment after the records were read, as the waits did that are looked
// at next.
func (d *detector) others(ctx context.Context, found *stuck.Deadlock) bool {
	name := d.name()
	b := d.sess.Batch()
	asked := make(map[int64]*zk.Future[zk.Existence])
	for _, w := range found.Waits {
		for _, h := range w.Holds {
			if w.Record == name && h.Other && asked[h.Token] == nil {
				b.Sync(h.Node)
				asked[h.Token] = b.Exists(h.Node)
			}
		}
	}
	b.Send()
	for token, f := range asked {
		node, err := f.Get(ctx)
		if err != nil || !node.Exists || node.Stat.Czxid != token/line.Turns {
			return false
		}
	}
	return true
}

// stands reports whether our waits in the deadlock still stand, as they were told.
func (d *detector) stands(found *stuck.Deadlock) bool {
	name, now := d.name(), d.standing()
	return !slices.ContainsFunc(found.Waits, func(w *stuck.Wait) bool {
		return w.Record == name && (now[w.ID] == nil || !now[w.ID].Same(w))
	})
}

// tell tells the hooks and the log of a deadlock, once, and has the wait fail that is to give way, if it is ours.
func (d *detector) tell(found *stuck.Deadlock, owner func(record string) line.Owner) {
	if d.told[found.Key] {
		return
	}
	d.told[found.Key] = true
	victim := found.Cycle[0].Wait
	var log sync.Once
	for _, w := range found.Waits {
		detectorsMu.Lock()
		ours := d.waits[w.ID]
		detectorsMu.Unlock()
		if ours == nil || w.Record != d.name() {
			continue
		}
		err := ours.Found(found, owner)
		log.Do(func() { d.id.client.Logger().Warn("locks wait for each other", "err", err) })
		// What was certain may have ended meanwhile, by a caller that has left. Then nothing has to give way.
		if w == victim && w.Yields && d.stands(found) {
			ours.fail(err)
		}
	}
}
