package lock

// Finding deadlocks.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
	// maxRecord bounds a record. What is longer leaves its last waits out.
	maxRecord = 64 << 10
	// maxClients bounds how many records are read.
	maxClients = 10_000
)

// bellName is the node that is written with each new confirmation, so that those who wait look again.
const bellName = "bell"

// A waitsRecord is what a client tells of its waits.
type waitsRecord struct {
	Owner Owner         `json:"owner"`
	Waits []*stuck.Wait `json:"waits"`
	More  int           `json:"more,omitempty"` // waits that did not fit
	// Confirmed has the keys of deadlocks of which the client has found, after it had read all of their waits, that
	// its own waits among them still stood, inside of holds that still stood.
	//
	// If all clients of a deadlock have confirmed it, it has existed. Let t be when the first of them looked at its own
	// waits. It had read all the others' before, so each of those had begun before t. Every other client looked at or
	// after t, and its waits still stood: the same ones, because a wait with a new node, or inside of other holds, has
	// another key. A wait goes on without interruption, so at t all of them stood. No clock and no delay matters.
	Confirmed []string `json:"confirmed,omitempty"`
}

// A detector tells others of the long waits of a client that are inside of holds, and finds the deadlocks that they are
// part of. It lasts as long as there are such waits.
type detector struct {
	id   detectorID
	dirs attempt.Dirs
	acl  []zk.ACL
	wake chan struct{} // one slot: look now

	waits map[uint64]*inside // detectorsMu guards it

	// The fields below are run's alone.
	sess      *zk.Session // of the node, and of the bell's watch
	written   []byte      // the node's data; nil if there is none
	wrote     time.Time
	bell      *zk.Watch
	rang      bool            // so the bell may be the session's
	confirmed map[string]bool // deadlocks that we confirm
	told      map[string]bool // deadlocks that the hooks were told of
}

// A detectorID is what waits have in common that are told in one record.
type detectorID struct {
	client *zk.Client
	path   string
	rights string // suffix of the record's name, for its list of rights
}

// A client has no room for recipes' state, so this has all that run.
var (
	detectors   = make(map[detectorID]*detector) //nolint:gochecknoglobals // as above
	detectorsMu sync.Mutex                       //nolint:gochecknoglobals // never held while anything is waited for
)

// publish tells others of the wait from now on, unless it has ended.
func (in *inside) publish() {
	b := in.base
	id := detectorID{client: b.client, path: b.cfg.WaitsPath}
	if b.cfg.ACL != nil {
		sum := sha256.Sum256(fmt.Append(nil, b.cfg.ACL))
		id.rights = "-" + hex.EncodeToString(sum[:8])
	}
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	if in.over {
		return
	}
	d := detectors[id]
	if d == nil {
		d = &detector{
			id: id, acl: b.cfg.ACL, dirs: attempt.Dirs{ACL: b.cfg.ACL, AnyACL: b.cfg.AnyACL},
			wake: make(chan struct{}, 1), waits: make(map[uint64]*inside),
			confirmed: make(map[string]bool), told: make(map[string]bool),
		}
		detectors[id] = d
		go d.run()
	}
	in.detector = d
	d.waits[in.id] = in
	d.look()
}

// end ends what publish has begun, or is about to.
func (in *inside) end() {
	detectorsMu.Lock()
	defer detectorsMu.Unlock()
	in.over = true
	d := in.detector
	if d == nil {
		return
	}
	delete(d.waits, in.id)
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
		return false // pass has yet to delete it
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
	for _, in := range d.waits {
		if time.Since(in.since) < longWait+soon {
			return passSoon
		}
	}
	return passLater
}

// standing returns the waits that stand, by their number: what is returned stood, all of it at a time, within the call.
// What has changed while it was looked at is left out: so each wait that is left stood when the second look began.
func (d *detector) standing(record string, session int64) map[uint64]*stuck.Wait {
	detectorsMu.Lock() // no wait ends meanwhile
	defer detectorsMu.Unlock()
	look := func() map[uint64]*stuck.Wait {
		list := make(map[uint64]*stuck.Wait, len(d.waits))
		for id, in := range d.waits {
			if w := in.describe(record, session); w != nil {
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
	name := recordName(sess.ID()) + d.id.rights
	mine := d.standing(name, sess.ID())
	d.alone(mine)
	if len(mine) == 0 && d.written == nil {
		return
	}
	if err := d.write(ctx, name, mine); err != nil || len(mine) == 0 {
		return
	}
	d.listen(ctx)
	records, err := readWaits(ctx, sess, d.id.path)
	if err != nil {
		return
	}
	records[name] = &waitsRecord{Owner: line.ThisProcess(""), Waits: slices.Collect(maps.Values(mine))}
	if d.confirm(ctx, records, name) {
		if d.write(ctx, name, mine) == nil {
			d.ring(ctx)
		}
	}
}

// recordName returns the name of the record of a session, without what its rights add.
func recordName(session int64) string { return "0x" + strconv.FormatUint(uint64(session), 16) }

// alone finds deadlocks among the client's own waits. It need not tell others of them first: what is standing stood at
// one time. Whether holds of other processes stand, only the server knows.
func (d *detector) alone(mine map[uint64]*stuck.Wait) {
	owner := line.ThisProcess("")
	waits := slices.DeleteFunc(slices.Collect(maps.Values(mine)), func(w *stuck.Wait) bool {
		return slices.ContainsFunc(w.Holds, func(h stuck.Hold) bool { return h.Other })
	})
	for _, found := range stuck.Find(waits) {
		d.tell(found, func(string) Owner { return owner })
	}
}

// write writes the node with what is told, if that has changed, or deletes it if there is nothing to tell.
func (d *detector) write(ctx context.Context, name string, mine map[uint64]*stuck.Wait) error {
	path := d.id.path + "/" + name
	if len(mine) == 0 {
		err := d.sess.Delete(ctx, path, -1)
		if err == nil || errors.Is(err, zk.NoNode) {
			d.written = nil
		}
		if d.rang { // whoever still waits looks once more, and rings another one if need be
			d.rang = false
			_ = d.sess.Delete(ctx, d.id.path+"/"+bellName, -1) // it goes with the session at the latest
		}
		return err
	}
	data := d.record(mine)
	if string(data) == string(d.written) {
		return nil
	}
	select {
	case <-time.After(writePause - time.Since(d.wrote)):
	case <-ctx.Done():
		return ctx.Err()
	}
	d.wrote = time.Now()
	err := d.put(ctx, path, data)
	if err == nil {
		d.written = data
	}
	return err
}

// put sets a node of the session, or makes it.
func (d *detector) put(ctx context.Context, path string, data []byte) error {
	for tries := 0; ; tries++ {
		_, err := d.sess.Set(ctx, path, data, -1)
		if !errors.Is(err, zk.NoNode) {
			return err
		}
		_, err = d.sess.CreateNode(ctx, zk.Node{Path: path, Data: data, Mode: zk.Ephemeral, ACL: d.acl})
		switch {
		case errors.Is(err, zk.NoNode) && tries == 0:
			if err := d.dirs.Make(ctx, d.sess, d.id.path); err != nil {
				return err
			}
		case errors.Is(err, zk.NodeExists) && tries < 3: // made by the creation whose answer was lost, or by another
		default:
			return err
		}
	}
}

// record returns the node's data.
func (d *detector) record(mine map[uint64]*stuck.Wait) []byte {
	r := waitsRecord{Owner: line.ThisProcess(""), Confirmed: slices.Sorted(maps.Keys(d.confirmed))}
	size := 0
	for _, id := range slices.Sorted(maps.Keys(mine)) {
		b, err := json.Marshal(mine[id])
		if size += len(b); err != nil || size > maxRecord {
			r.More++
			continue
		}
		r.Waits = append(r.Waits, mine[id])
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil // cannot happen: every field marshals
	}
	return data
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
	_, _, w, err := d.sess.ExistsW(ctx, d.id.path+"/"+bellName)
	if err != nil {
		return // there is the next pass
	}
	w.AfterFunc(d.look)
	d.bell = w
}

// ring calls all who wait. The bell goes with the session that made it, or nothing would ever remove it.
func (d *detector) ring(ctx context.Context) {
	d.rang = true
	_ = d.put(ctx, d.id.path+"/"+bellName, nil) // there is the next pass
}

// readWaits reads what all clients tell. It leaves out what is none of their own: a record counts only if its node is
// of the session that its name says.
func readWaits(ctx context.Context, sess *zk.Session, path string) (map[string]*waitsRecord, error) {
	names, _, err := sess.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	if len(names) > maxClients {
		names = names[:maxClients]
	}
	records := make(map[string]*waitsRecord, len(names))
	for names := range slices.Chunk(names, 64) {
		b := sess.Batch()
		asked := make([]*zk.Future[zk.Data], len(names))
		for i, name := range names {
			if name != bellName {
				asked[i] = b.Get(path + "/" + name)
			}
		}
		b.Send()
		for i, name := range names {
			if asked[i] == nil {
				continue
			}
			node, err := asked[i].Get(ctx)
			switch {
			case errors.Is(err, zk.NoNode), errors.Is(err, zk.NoAuth):
				continue
			case err != nil:
				return nil, err
			}
			session, _, _ := strings.Cut(name, "-")
			r := new(waitsRecord)
			if session != recordName(node.Stat.EphemeralOwner) || json.Unmarshal(node.Data, r) != nil {
				continue
			}
			r.Waits = slices.DeleteFunc(r.Waits, func(w *stuck.Wait) bool { return w == nil })
			for _, w := range r.Waits {
				w.Record = name
			}
			records[name] = r
		}
	}
	return records, nil
}

// find returns the deadlocks in records.
func find(records map[string]*waitsRecord) []*stuck.Deadlock {
	var waits []*stuck.Wait
	for _, name := range slices.Sorted(maps.Keys(records)) {
		waits = append(waits, records[name].Waits...)
	}
	return stuck.Find(waits)
}

// certain reports whether all of a deadlock's clients have confirmed it.
func certain(d *stuck.Deadlock, records map[string]*waitsRecord) bool {
	return !slices.ContainsFunc(d.Records(), func(name string) bool {
		return !slices.Contains(records[name].Confirmed, d.Key)
	})
}

// confirm confirms the deadlocks that waits of ours are part of and that still stand, and tells of those that all
// others have confirmed as well. It reports whether there is one that it had not confirmed before.
func (d *detector) confirm(ctx context.Context, records map[string]*waitsRecord, name string) (changed bool) {
	confirmed := make(map[string]bool)
	for _, found := range find(records) {
		if !slices.Contains(found.Records(), name) {
			continue
		}
		if !d.others(ctx, found, name) || !d.stands(found, name) {
			continue
		}
		confirmed[found.Key] = true
		changed = changed || !d.confirmed[found.Key]
		if !d.confirmed[found.Key] {
			continue // others must be able to read it first
		}
		records[name].Confirmed = append(records[name].Confirmed, found.Key)
		if certain(found, records) {
			d.tell(found, func(record string) Owner { return records[record].Owner })
		}
	}
	d.confirmed = confirmed
	return changed
}

// others asks the server whether the holds of other processes stand that our waits in the deadlock are inside of: a
// hold of theirs is its node. They stood at some moment after the records were read, as the waits did that are looked
// at next.
func (d *detector) others(ctx context.Context, found *stuck.Deadlock, name string) bool {
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
func (d *detector) stands(found *stuck.Deadlock, name string) bool {
	now := d.standing(name, d.sess.ID())
	return !slices.ContainsFunc(found.Waits, func(w *stuck.Wait) bool {
		return w.Record == name && (now[w.ID] == nil || !now[w.ID].Same(w))
	})
}

// tell tells the hooks of a deadlock, once, and has the wait fail that is to give way, if it is ours.
func (d *detector) tell(found *stuck.Deadlock, owner func(record string) Owner) {
	if d.told[found.Key] {
		return
	}
	d.told[found.Key] = true
	err := newDeadlockError(found, owner)
	victim := found.Cycle[0].Wait
	for _, w := range found.Waits {
		detectorsMu.Lock()
		in := d.waits[w.ID]
		detectorsMu.Unlock()
		if in == nil || w.Record != recordName(d.sess.ID())+d.id.rights {
			continue
		}
		in.tell(err)
		// What was certain may have ended meanwhile, by a caller that has left. Then nothing has to give way.
		if w == victim && w.Yields && d.stands(found, w.Record) {
			in.fail(err)
		}
	}
}

func newDeadlockError(found *stuck.Deadlock, owner func(record string) Owner) *DeadlockError {
	e := new(DeadlockError)
	for _, s := range found.Cycle {
		step := DeadlockStep{Path: s.Path, Owner: owner(s.Wait.Record), Since: s.Wait.Since}
		step.Owner.Label = s.Wait.Label
		if s.Hold != nil {
			step.Token = Token(s.Hold.Token)
		}
		e.Steps = append(e.Steps, step)
	}
	return e
}

// A FoundDeadlock is one that the clients of an ensemble tell of.
type FoundDeadlock struct {
	Steps []DeadlockStep // as in DeadlockError

	// Confirmed says that all of its clients have confirmed it: it has existed. Otherwise it may be about to be
	// confirmed, or may never have existed: a client that no longer waits may still be shown.
	Confirmed bool
}

// Deadlocks returns the deadlocks of waits inside of holds, as the clients tell of them below waitsPath
// (DefaultWaitsPath if empty). It returns none if nothing is there.
func Deadlocks(ctx context.Context, client *zk.Client, waitsPath string) ([]FoundDeadlock, error) {
	path, err := ReportDeadlock.check(waitsPath)
	if err == nil {
		err = attempt.Args("lock", client, path, nil)
	}
	if err != nil {
		return nil, err
	}
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock: %s: %w", path, attempt.Explain(client, err))
	}
	records, err := readWaits(ctx, sess, path)
	if ignoreNoNode(err) != nil {
		return nil, fmt.Errorf("lock: %s: %w", path, attempt.Explain(client, err))
	}
	var list []FoundDeadlock
	for _, found := range find(records) {
		e := newDeadlockError(found, func(record string) Owner { return records[record].Owner })
		list = append(list, FoundDeadlock{Steps: e.Steps, Confirmed: certain(found, records)})
	}
	return list, nil
}
