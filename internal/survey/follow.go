package survey

// A snapshot that is kept up to date.

import (
	"context"
	"errors"
	"iter"
	"maps"
	stdpath "path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Mode is how a snapshot is kept up to date.
type Mode string

// The modes.
const (
	Live    Mode = "live"    // the servers tell of each change
	Sampled Mode = "sampled" // it is read again from time to time
	Cut     Mode = "cut"     // no server is connected, or it refuses to tell: it shows what was
)

// How a Survey follows.
const (
	defaultEvents = 2000            // so many events a second are taken before it samples
	rateOver      = 5 * time.Second // the time over which their rate is measured
	settle        = 50 * time.Millisecond
	busyShare     = 3                // it pauses three times as long as it has read
	reread        = 10 * time.Minute // it reads everything again: no event tells of a changed ACL

	sampleShown = time.Second      // so often it reads what somebody looks at
	sampleAll   = 10 * time.Second // and so often everything; more rarely if that takes longer than a second
	sampleShare = 10               // of the time, at most a tenth is spent reading everything
	sampleFor   = time.Minute      // before it tries to be live again
	shownFor    = 30 * time.Second // since a viewer has asked for the paths that it shows
)

// FollowConfig says what a Survey follows.
type FollowConfig struct {
	Config

	Events int // so many events a second are taken before it samples; 2,000 if zero
}

// A Survey keeps a Snapshot of a part of the tree up to date, for any number of viewers: they cost the servers no more
// than one. Its methods may be called from several goroutines at once.
//
// It sets one recursive watch and reads again what an event names, some 50 ms later, so that a lock that changes hands
// a thousand times a second is read twenty times. When there are more events than FollowConfig.Events it closes the
// watch for a minute and samples: what somebody looks at each second, everything each ten seconds. It samples from the
// start if the servers have no such watches (before 3.6).
type Survey struct {
	client *zk.Client
	cfg    FollowConfig
	stop   context.CancelCauseFunc
	done   chan struct{}

	mu      sync.Mutex
	latest  *Snapshot
	mode    Mode          // how latest was read
	cut     time.Time     // since when no server is connected; zero if one is
	server  string        // that is, or was
	err     error         // why there will be no other
	changed chan struct{} // closed when latest or err changes
	shown   map[string]time.Time
}

// Follow follows until ctx ends. The Survey must be closed.
func Follow(ctx context.Context, client *zk.Client, cfg FollowConfig) (*Survey, error) {
	var err error
	if cfg.Config, err = cfg.checked(client); err != nil {
		return nil, err
	}
	if cfg.Events == 0 {
		cfg.Events = defaultEvents
	}
	ctx, stop := context.WithCancelCause(ctx)
	s := &Survey{
		client: client, cfg: cfg, stop: stop, done: make(chan struct{}),
		changed: make(chan struct{}), shown: make(map[string]time.Time),
	}
	go func() {
		defer close(s.done)
		err := s.run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		close(s.changed)
	}()
	return s, nil
}

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("the survey is closed")

// Close ends the survey, and waits for its goroutine. Calls of Next return ErrClosed.
func (s *Survey) Close() {
	s.stop(ErrClosed)
	<-s.done
}

// Next returns the latest snapshot. If that is the one given it waits for another; with nil it waits for the first.
// Shown are the paths that the caller shows, which are read more often than others while the survey samples. It returns
// ctx's cause if that ends, ErrClosed after Close, and the cause of Follow's ctx or the client's error if one of those
// has ended.
func (s *Survey) Next(ctx context.Context, last *Snapshot, shown []string) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.mode == Sampled { // else everything is read, and paths that come and go would add up
			for _, path := range shown {
				s.shown[path] = time.Now()
			}
		}
		if s.latest != nil && s.latest != last {
			return s.latest, nil
		}
		if s.err != nil {
			return nil, s.err
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			s.mu.Lock()
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
	}
}

// publish hands a snapshot to the viewers.
func (s *Survey) publish(snapshot *Snapshot, mode Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot.Server, s.mode = s.server, mode
	if mode == Live {
		clear(s.shown)
	}
	s.set(snapshot)
}

// set makes a snapshot the latest. The caller holds mu.
func (s *Survey) set(snapshot *Snapshot) {
	snapshot.Mode, snapshot.Since = s.mode, s.cut
	if !s.cut.IsZero() {
		snapshot.Mode = Cut
	}
	s.latest = snapshot
	close(s.changed)
	s.changed = make(chan struct{})
}

// watchConnection tells the viewers whether a server is connected, until the session or ctx ends.
func (s *Survey) watchConnection(ctx context.Context, sess *zk.Session) {
	for state := range sess.States(ctx) {
		server, _ := sess.Server()
		s.mu.Lock()
		cut := state != zk.Connected && state != zk.ConnectedReadOnly
		changed := cut == s.cut.IsZero()
		s.server = server
		switch {
		case !cut:
			s.cut = time.Time{}
		case changed:
			s.cut = time.Now()
		}
		if changed && s.latest != nil {
			other := *s.latest
			s.set(&other)
		}
		s.mu.Unlock()
	}
}

// errBusy ends following live, errAgain a reading that may have missed something.
var (
	errBusy  = errors.New("too many events")
	errAgain = errors.New("everything must be read again")
)

// run follows under each session in turn, until ctx or the client ends.
func (s *Survey) run(ctx context.Context) error {
	for tries := 0; ; tries++ {
		sess, err := s.client.Session(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		switch err = s.under(ctx, sess); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil, sess.Err() != nil:
			tries = 0
		case !attempt.Passing(sess, err) && !s.outdated():
			return err
		}
		_ = attempt.Pause(ctx, sess, tries)
	}
}

// outdated tells the viewers that the latest snapshot shows what was. It returns false if there is none: then they need
// to know the refusal; later ones may pass.
func (s *Survey) outdated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil {
		return false
	}
	if s.cut.IsZero() {
		s.cut = time.Now()
	}
	other := *s.latest
	s.set(&other)
	return true
}

// under follows under one session.
func (s *Survey) under(ctx context.Context, sess *zk.Session) error {
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { s.watchConnection(ctx, sess) })
	err := s.live(ctx, sess)
	if errors.Is(err, errBusy) || errors.Is(err, zk.Unimplemented) {
		return s.sample(ctx, sess)
	}
	return err
}

// live follows by watches: one on the root, and if that is a lock itself, on what belongs to it beside it.
func (s *Survey) live(ctx context.Context, sess *zk.Session) error {
	paths := []string{s.cfg.Root}
	for _, end := range append([]string{kazooQueue}, beside...) {
		if s.cfg.Root != "/" {
			paths = append(paths, s.cfg.Root+end)
		}
	}
	var watches []*zk.Watch
	defer func() {
		for _, w := range watches {
			w.Close()
		}
	}()
	for _, path := range paths {
		w, err := attempt.Ask(ctx, sess, func() (*zk.Watch, error) { return sess.WatchRecursive(ctx, path) })
		if path != s.cfg.Root && errors.Is(err, zk.NoAuth) { // what may not be read cannot be shown
			continue
		}
		if err != nil {
			return err
		}
		watches = append(watches, w)
	}
	var large map[string]struct{}
	for since := time.Now(); ; {
		for range pending(watches) { // what has happened so far will be read
		}
		began := time.Now()
		r := newReading(s.client, s.cfg.Config)
		if began.Sub(since) < reread {
			r.skip = large
		} else {
			since = began
		}
		if err := r.whole(ctx); err != nil {
			return err
		}
		rested := time.Now().Add(busyShare * time.Since(began))
		large = r.tooLarge
		s.publish(r.snapshot(), Live)
		if err := s.events(ctx, sess, watches, r); !errors.Is(err, errAgain) {
			return err
		}
		if err := pause(ctx, time.Until(rested)); err != nil {
			return err
		}
	}
}

// pending returns the events that have arrived.
func pending(watches []*zk.Watch) iter.Seq[zk.Event] {
	return func(yield func(zk.Event) bool) {
		for _, w := range watches {
			for e, ok := w.Poll(); ok; e, ok = w.Poll() {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// events keeps a reading up to date, until it would miss something.
func (s *Survey) events(ctx context.Context, sess *zk.Session, watches []*zk.Watch, r *reading) error {
	var rate rate
	var took time.Duration // the last pass
	again := time.NewTimer(reread)
	if r.partial != "" {
		again.Reset(sampleFor)
	}
	defer again.Stop()
	arrived := make(chan struct{}, 1)
	lazy := make(map[string]struct{}) // to be read when late fires
	var late <-chan time.Time
	for {
		dirty := make(map[string]struct{})
		for _, w := range watches {
			w.AfterFunc(func() {
				select {
				case arrived <- struct{}{}:
				default:
				}
			})
		}
		select {
		case <-arrived:
		case <-late:
			dirty, lazy, late = lazy, make(map[string]struct{}), nil
		case <-again.C:
			return errAgain
		case <-sess.Context().Done():
			return sess.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := pause(ctx, max(settle, busyShare*took)); err != nil {
			return err
		}
		n := 0
		for e := range pending(watches) {
			if n++; e.Type == zk.EventResynced {
				return errAgain
			}
			r.touch(e, dirty, lazy)
		}
		if len(lazy) > 0 && late == nil {
			late = time.After(sampleAll)
		}
		if rate.over(n, s.cfg.Events) {
			return errBusy
		}
		partial, began := r.partial, time.Now()
		if err := r.again(ctx, slices.Collect(maps.Keys(dirty))); err != nil {
			return err
		}
		if r.partial != partial {
			return errAgain // what an event has named was not read
		}
		took = time.Since(began)
		s.publish(r.snapshot(), Live)
	}
}

// rate counts events.
type rate struct {
	since time.Time
	n     int
}

// over reports whether, with n more, there were more than so many a second.
func (r *rate) over(n, most int) bool {
	if now := time.Now(); now.Sub(r.since) > rateOver {
		r.since, r.n = now, 0
	}
	r.n += n
	return r.n > most*int(rateOver/time.Second)
}

// sample reads from time to time, for a minute or until the session ends.
func (s *Survey) sample(ctx context.Context, sess *zk.Session) error {
	var r *reading
	var all time.Time
	for end := time.Now().Add(sampleFor); ; {
		var err error
		if began := time.Now(); !began.Before(all) {
			r = newReading(s.client, s.cfg.Config)
			err = r.whole(ctx)
			all = time.Now().Add(max(sampleAll, sampleShare*time.Since(began)))
		} else {
			err = r.again(ctx, s.looked())
		}
		if err != nil {
			return err
		}
		s.publish(r.snapshot(), Sampled)
		if err := pause(ctx, sampleShown); err != nil || time.Now().After(end) {
			return err
		}
		if err := sess.Err(); err != nil {
			return err // or nobody would tell of the connection under the next one
		}
	}
}

// looked returns the paths that viewers show.
func (s *Survey) looked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.shown, func(_ string, asked time.Time) bool { return time.Since(asked) > shownFor })
	return slices.Collect(maps.Keys(s.shown))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// touch adds to dirty what an event may have changed, of what is known, and to lazy what is long and most likely the
// same: queues. It forgets what was deleted.
func (r *reading) touch(e zk.Event, dirty, lazy map[string]struct{}) {
	path, parent, name := e.Path, stdpath.Dir(e.Path), stdpath.Base(e.Path)
	mark := func(path string) {
		if _, ok := r.known[path]; ok {
			dirty[path] = struct{}{}
		}
	}
	child := name
	for up := parent; len(up) >= len(r.cfg.Root); up = stdpath.Dir(up) {
		switch kind := r.known[up]; {
		case kind.Contended() && kind.covers(child):
			mark(up)
			return
		case kind == ClassicQueue:
			lazy[up] = struct{}{}
			return
		case kind == Queue:
			return
		}
		if up == r.cfg.Root {
			break
		}
		child = stdpath.Base(up)
	}
	if permitsDir(stdpath.Base(parent)) { // of a semaphore that nobody has used
		mark(stdpath.Dir(parent))
	}
	of, ok := besideOf(path)
	if !ok {
		of, ok = besideOf(parent)
	}
	for _, line := range []string{path, parent} {
		if of, ok := strings.CutSuffix(line, kazooQueue); ok {
			mark(of)
		}
	}
	_, isKnown := dirty[parent]
	if _, known := r.known[parent]; known || path == r.cfg.Root {
		isKnown = true
	}
	switch {
	case ok: // a record or a mark of the lock beside it
		mark(of)
		mark(parent)
	case contender(name):
		if e.Type == zk.EventDeleted { // it may have been a directory
			r.forget(path)
			delete(dirty, path)
		}
		mark(parent)
	case e.Type == zk.EventDataChanged:
		mark(path)
	case e.Type == zk.EventDeleted:
		r.forget(path)
		delete(dirty, path)
		mark(parent)
	case !isKnown: // what is above it is not read, or will be
	case e.Type == zk.EventCreated:
		dirty[path] = struct{}{}
		mark(parent)
	}
}
