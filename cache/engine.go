package cache

// The goroutine of a cache: from events to versions.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// patience is how long the engine waits for a moment at which nothing is about to be read, to publish an exact
	// version, before it publishes one that is not.
	patience = 50 * time.Millisecond
	// maxDirty bounds how many changed nodes are remembered, or the number of nodes in the cache if that is larger.
	maxDirty = 1 << 16
)

// errAgain ends a pass because everything has to be read again.
var errAgain = errors.New("events may have been missed")

// dirt says what events have told of a node since it was last read.
type dirt struct {
	gone    bool // the last event was its deletion
	deleted bool // one of the events was
}

// An engine follows a tree. It reads a node after each event that concerns it, in rounds: one round reads the nodes
// whose events have arrived before it. When a round is over and no further event has arrived, the copy is exactly what
// the server had: each node was read after its last event.
type engine struct {
	*follower
	tree *builder

	sess    *zk.Session
	w       *zk.Watch       // one persistent watch for the whole tree
	dirty   map[string]dirt // by relative path
	denied  map[string]bool // the nodes that may not be read, by relative path
	allowed []string        // those that may be read again; what is below them has to be read
	again   bool            // everything has to be read
	ready   bool            // the copy differs from the version, or is newer
	since   time.Time       // of the first event that is not published; zero if there is none
	waiting []chan error    // calls of Sync that the next version satisfies
	changed <-chan struct{} // the session's state
	lost    bool            // there was a disconnect, and no answer since
	inOrder bool            // the root exists and grants no more than the ACL

	load sizes
}

// run follows the tree under one session after another, until ctx ends or there is no point in going on. If a server
// refuses for good it keeps what is known and tries again later: a permission may come back.
func (f *follower) run(ctx context.Context) {
	e := &engine{
		follower: f, tree: newBuilder(), dirty: make(map[string]dirt), denied: make(map[string]bool), load: newSizes(),
	}
	for tries := 0; ; tries++ {
		before := f.View()
		sess, err := f.client.Session(ctx)
		if err == nil {
			err = e.under(ctx, sess)
		}
		switch {
		case ctx.Err() != nil:
			f.finish(f.failed(ErrClosed))
			return
		case sess == nil, errors.Is(err, ErrServer):
			f.finish(f.failed(err))
			return
		case f.View() != before:
			tries = 0
		}
		f.setBehind()
		if sess.Err() != nil || errors.Is(err, zk.ErrConnectionLost) && zk.Temporary(err) {
			continue // Session returns an error if there is no next one
		}
		if !zk.Temporary(err) {
			e.refused(f.failed(err))
		}
		_ = attempt.Pause(ctx, sess, tries) // the next round sees why it was cut short
	}
}

// failed says of which cache an error is.
func (f *follower) failed(err error) error { return fmt.Errorf("cache: %s: %w", f.root, err) }

// refused tells those who wait that a server refuses. It goes on.
func (e *engine) refused(err error) {
	e.follower.refuse(err)
	for _, done := range e.waiting {
		done <- err
	}
	e.waiting = e.waiting[:0]
}

// under follows the tree under one session until it ends or something fails.
func (e *engine) under(ctx context.Context, sess *zk.Session) (err error) {
	e.sess = sess
	if e.wasSynced() { // this session's server may lag behind the one that answered before
		if err := sess.Sync(ctx, e.root); err != nil {
			return err
		}
	}
	watch := sess.WatchRecursive
	if e.depth == 0 {
		watch = sess.Watch
	}
	if e.w, err = watch(ctx, e.root); errors.Is(err, zk.Unimplemented) {
		return fmt.Errorf("%w: follow %s: %w", ErrServer, e.root, err)
	}
	if err != nil {
		return err
	}
	defer func() { e.w.Close() }()
	e.again, e.lost = true, false
	_, e.changed = sess.State()
	for {
		if err := e.step(ctx); err != nil {
			return err
		}
	}
}

// poll takes the events that have arrived.
func (e *engine) poll() {
	for {
		event, ok := e.w.Poll()
		if !ok {
			return
		}
		switch event.Type {
		case zk.EventResynced:
			e.missed()
		case zk.EventCreated, zk.EventDataChanged:
			e.mark(event.Path, false)
		case zk.EventDeleted:
			e.mark(event.Path, true)
		case zk.EventChildrenChanged: // each child has its own event
		}
	}
}

// step waits for something to do, reads what has to be read, and publishes the result.
func (e *engine) step(ctx context.Context) error {
	e.collect(ctx)
	e.poll()
	e.reconnected() // last: once the events after a reconnect are known, so is the reconnect
	switch {
	case e.again:
		e.setBehind()
		e.again, e.allowed = false, nil
		clear(e.dirty)
		clear(e.denied)
		if err := e.pass(ctx, true, []string{""}); err != nil {
			e.again = true
			return unlessAgain(err)
		}
	case len(e.dirty) > 0:
		if e.since.IsZero() {
			e.since = time.Now()
		}
		if err := e.round(ctx); err != nil {
			return unlessAgain(err)
		}
	case len(e.waiting) == 0 && !e.ready:
		return e.wait(ctx)
	}
	e.ready = true
	return e.settled(ctx)
}

func (e *engine) suspended() bool {
	state, _ := e.sess.State()
	return state != zk.Connected && state != zk.ConnectedReadOnly
}

func unlessAgain(err error) error {
	if errors.Is(err, errAgain) {
		return nil
	}
	return err
}

// reconnected notes changes of the connection.
func (e *engine) reconnected() {
	select {
	case <-e.changed:
		e.lost = true // the watch tells by itself what to read, once it is restored
	default:
	}
	_, e.changed = e.sess.State()
	if e.lost = e.lost || e.suspended(); e.lost {
		e.setBehind()
	}
}

// collect receives the calls of Sync. What was committed before them has arrived as events.
func (e *engine) collect(ctx context.Context) {
	for {
		select {
		case done := <-e.syncs:
			e.waiting = append(e.waiting, done)
		case <-ctx.Done():
			return
		default:
			return
		}
	}
}

// wait waits for the next event.
func (e *engine) wait(ctx context.Context) error {
	e.w.AfterFunc(e.notify)
	select {
	case <-e.wake:
	case done := <-e.syncs:
		e.waiting = append(e.waiting, done)
	case <-e.changed:
	case <-e.sess.Context().Done():
		return e.sess.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// round reads the nodes that events have told of.
func (e *engine) round(ctx context.Context) error {
	var gets []string
	for rel, d := range e.dirty {
		switch {
		case d.gone:
			e.tree.removeTree(rel)
			delete(e.denied, rel)
			continue
		case d.deleted: // and created again: what was below it is gone, also if no event has told of that
			e.tree.removeBelow(rel)
		}
		gets = append(gets, rel)
	}
	clear(e.dirty)
	if len(gets) == 0 {
		return e.ask(ctx) // which node was deleted last, and with which others, no read would tell
	}
	if err := e.pass(ctx, false, gets); err != nil || len(e.allowed) == 0 {
		return err
	}
	allowed := e.allowed
	e.allowed = nil
	return e.pass(ctx, true, allowed) // the events of what is below them came when it was not in the copy
}

// ask sends a read and waits for the answer. All events of transactions up to that of the answer come before it, and so
// does what tells of a watch that was restored after a disconnect.
func (e *engine) ask(ctx context.Context) error {
	_, _, err := e.sess.Exists(ctx, e.root)
	return err
}

// settled publishes the copy if it is exact, or if that takes too long.
func (e *engine) settled(ctx context.Context) error {
	if !e.inOrder { // what was read is shown only if the lists are in order after that
		exists, err := attempt.Dirs{ACL: e.cfg.ACL, AnyACL: e.cfg.AnyACL, Above: true}.CheckThere(ctx, e.sess, e.root)
		if err != nil {
			return err
		}
		e.inOrder = exists
	}
	if e.lost && !e.suspended() {
		if err := e.ask(ctx); err != nil {
			return err
		}
		e.lost = false // or there was another disconnect, which the next step notes
	}
	zxid := e.sess.LastZxid()
	e.poll()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case e.sess.Err() != nil:
		return e.sess.Err()
	case e.again:
		return nil
	}
	exact := len(e.dirty) == 0
	if !exact && len(e.waiting) == 0 && (e.since.IsZero() || time.Since(e.since) < patience) {
		if e.since.IsZero() {
			e.since = time.Now()
		}
		return nil
	}
	if !exact {
		zxid = e.View().zxid
	}
	e.since, e.ready = time.Time{}, false
	e.publish(e.changed, !e.lost, &View{root: e.root, nodes: e.tree.version(), zxid: zxid, exact: exact})
	for _, done := range e.waiting {
		done <- nil
	}
	e.waiting = e.waiting[:0]
	return nil
}

// mark records an event.
func (e *engine) mark(path string, gone bool) {
	rel, ok := within(e.root, path)
	if !ok || !e.keeps(rel) {
		return
	}
	d := e.dirty[rel]
	e.dirty[rel] = dirt{gone: gone, deleted: d.deleted || gone}
	if len(e.dirty) > max(maxDirty, e.tree.n) {
		e.missed()
	}
}

// missed records that events may have been missed.
func (e *engine) missed() {
	e.again = true
	clear(e.dirty)
}

// keeps reports whether a node belongs into the copy.
func (e *engine) keeps(rel string) bool {
	if rel == "" {
		return true
	}
	level := 1
	for i := range len(rel) {
		if rel[i] == '/' {
			level++
			if e.cfg.Exclude != nil && e.cfg.Exclude(join(e.root, rel[:i])) {
				return false
			}
		}
	}
	return level <= e.depth && (e.cfg.Exclude == nil || !e.cfg.Exclude(join(e.root, rel)))
}
