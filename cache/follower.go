package cache

// What all caches have in common: the published version, and the goroutine that publishes it.

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A follower keeps a copy of a tree. Its goroutine, which runs an engine, owns everything except what the mutex guards.
// All methods may be called from several goroutines at once.
type follower struct {
	client *zk.Client
	root   string
	cfg    Config
	depth  int // levels below the root

	ctx    context.Context //nolint:containedctx // it ends with the goroutine
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}   // one slot: full if there may be events
	syncs  chan chan error // from Sync; the engine answers what it receives
	ended  chan struct{}   // closed when the goroutine has ended

	mu       sync.Mutex // guards what follows
	view     *View
	synced   bool            // view is not the empty one
	replaced chan struct{}   // closed when what stands above or below is replaced, and when the goroutine ends
	refusal  error           // why the view cannot be brought up to date at the moment, if a server refuses
	err      error           // why the goroutine has ended
	changed  <-chan struct{} // closed when the state of the session that the engine follows has changed since
	behind   time.Time       // when the view ceased to be current; zero if it is
}

func follow(client *zk.Client, path string, depth int, cfg Config) (*follower, error) {
	if err := cfg.check(client, path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{
		client: client, root: path, cfg: cfg, depth: depth, ctx: ctx, cancel: cancel,
		wake: make(chan struct{}, 1), syncs: make(chan chan error), ended: make(chan struct{}),
		view: &View{root: path}, replaced: make(chan struct{}), behind: time.Now(),
	}
	f.wg.Go(func() { f.run(ctx) })
	return f, nil
}

// Path returns the path of the cache's root.
func (f *follower) Path() string { return f.root }

// Close ends the cache: it removes its watches from the server and waits for its goroutine. Views can still be read. A
// second Close does nothing.
func (f *follower) Close() {
	f.cancel()
	f.wg.Wait()
}

// View returns the latest version of the contents. It is empty before the first synchronization. After Close, and while
// the servers cannot be reached or refuse, it stays as it was: see Synced.
func (f *follower) View() *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// WaitSynced waits until the cache has read everything once, and returns nil from then on, also after Close. If ctx
// ends first it returns ctx's cause, and if the cache ends, or a server refuses, what Err returns. After a refusal the
// cache goes on trying, and WaitSynced may be called again.
func (f *follower) WaitSynced(ctx context.Context) error {
	_, err := f.next(ctx, nil, nil)
	return err
}

// Err returns nil while the cache follows its nodes. While a server refuses it says why: the cache may not read its
// root, or a reply is larger than zk.Config.MaxFrame. Then the contents stay as they were, and the cache tries again
// every few seconds. Err returns ErrClosed after Close, the client's error if the client was closed, and an ErrServer
// on a server that has no persistent watches: then the cache has ended.
func (f *follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.err, f.refusal)
}

// next waits for a version other than last, and returns it. Before the first version it returns a refusal, unless it is
// told, the one that the caller knows.
func (f *follower) next(ctx context.Context, last *View, told error) (*View, error) {
	for {
		f.mu.Lock()
		view, synced, refusal, err, changed := f.view, f.synced, f.refusal, f.err, f.replaced
		f.mu.Unlock()
		switch {
		case synced && view != last:
			return view, nil
		case err != nil:
			return nil, err
		case !synced && refusal != nil && refusal != told: //nolint:errorlint // it is the same, or it is not
			return nil, refusal
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Sync waits until the cache has everything that was committed before the call, by any client. Afterwards a read shows
// one's own writes. It returns ctx's cause if ctx ends first, and an error if a server refuses, or the cache or the
// client has ended. It costs a round trip to the leader. A leader that was replaced without noticing answers for the
// time before that.
func (f *follower) Sync(ctx context.Context) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)() //nolint:contextcheck // the cache's end ends it, too
	_, err := attempt.Run(limited, f.client, func(sess *zk.Session) (none struct{}, err error) {
		return none, sess.Sync(limited, f.root)
	})
	switch {
	case err == nil:
		return f.settle(ctx)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.ctx.Err() != nil:
		<-f.ended
		return f.Err()
	default:
		return f.failed(err)
	}
}

// settle waits until the engine has processed all events that have arrived.
func (f *follower) settle(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case f.syncs <- done:
	case <-f.ended:
		return f.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		return err
	case <-f.ended:
		return f.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A Status says how much a cache's contents can be relied on.
type Status struct {
	// Zxid is the View's: the contents have all changes up to this transaction. It is 0 before the first
	// synchronization.
	Zxid int64
	// Current reports whether the cache is connected, has compared everything since the last disconnect, and gets each
	// change within moments.
	Current bool
	// Behind is for how long it has not been current: since the disconnect, as far as this client has noticed it, or
	// since the cache was made.
	Behind time.Duration
}

// Synced returns how current the contents are.
func (f *follower) Synced() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Zxid: f.view.zxid, Current: f.behind.IsZero()}
	if s.Current {
		select {
		case <-f.changed: // the engine will notice that, too
			s.Current = false
			f.behind = time.Now()
		default:
			return s
		}
	}
	s.Behind = time.Since(f.behind)
	return s
}

// setBehind records that the contents are not current.
func (f *follower) setBehind() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind.IsZero() {
		f.behind = time.Now()
	}
}

// wasSynced reports whether there is a version.
func (f *follower) wasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// refuse records that a server refuses.
func (f *follower) refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != nil && f.refusal.Error() == err.Error() {
		return // it is known
	}
	f.refusal = err
	close(f.replaced)
	f.replaced = make(chan struct{})
}

// notify wakes the engine. It never blocks.
func (f *follower) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// publish replaces the version.
func (f *follower) publish(changed <-chan struct{}, current bool, v *View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.synced, f.changed, f.refusal = v, true, changed, nil
	if current {
		f.behind = time.Time{}
	}
	close(f.replaced)
	f.replaced = make(chan struct{})
}

// finish records why the goroutine ends.
func (f *follower) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind.IsZero() {
		f.behind = time.Now()
	}
	f.err = err
	f.cancel()
	close(f.replaced)
	close(f.ended)
}
