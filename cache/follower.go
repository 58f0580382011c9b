package cache

// What all caches have in common: the published version, and the goroutine that publishes it.

import (
	"context"
	"errors"
	"sync"
	"time"

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
	wake   chan struct{}      // one slot: full if there may be events
	syncs  chan chan struct{} // from Sync; the engine closes what it receives
	ended  chan struct{}      // closed when the goroutine has ended

	mu       sync.Mutex // guards what follows
	view     *View
	synced   bool            // view is not the empty one
	replaced chan struct{}   // closed when view is replaced, and when the goroutine ends
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
		wake: make(chan struct{}, 1), syncs: make(chan chan struct{}), ended: make(chan struct{}),
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

// View returns the latest version of the contents. It is empty before the first synchronization. After Close, or when
// the cache has ended with an error, it stays as it was.
func (f *follower) View() *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// WaitSynced waits until the cache has read everything once; Err returns its errors as well. If ctx ends first it
// returns ctx's cause.
func (f *follower) WaitSynced(ctx context.Context) error {
	_, err := f.next(ctx, nil)
	return err
}

// Err returns nil while the cache follows its nodes, ErrClosed after Close, the client's error if the client was
// closed, and otherwise why the cache has ended: it may not read its root, or a reply was larger than
// zk.Config.MaxFrame.
func (f *follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// next waits for a version other than last, and returns it.
func (f *follower) next(ctx context.Context, last *View) (*View, error) {
	for {
		f.mu.Lock()
		view, synced, err, changed := f.view, f.synced, f.err, f.replaced
		f.mu.Unlock()
		switch {
		case synced && view != last:
			return view, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Sync waits until the cache has everything that was committed before the call, by any client. Afterwards a read shows
// one's own writes. It returns ctx's cause if ctx ends first, and an error if the cache or the client has ended. It
// costs a round trip to the leader. A leader that was replaced without noticing answers for the time before that. On
// servers older than 3.6 the cache reads everything again.
func (f *follower) Sync(ctx context.Context) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)() //nolint:contextcheck // the cache's end ends it, too
	for {
		sess, err := f.client.Session(limited)
		if err == nil {
			err = sess.Sync(limited, f.root)
		}
		switch {
		case err == nil:
			return f.settle(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.ctx.Err() != nil:
			<-f.ended
			return f.Err()
		case sess == nil:
			return err
		case sess.Context().Err() != nil, errors.Is(err, zk.ErrConnectionLost):
		case transient(err):
			sleep(ctx, pause)
		default:
			return err
		}
	}
}

// settle waits until the engine has processed all events that have arrived.
func (f *follower) settle(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case f.syncs <- done:
	case <-f.ended:
		return f.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
		return nil
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

// publish replaces the version.
func (f *follower) publish(changed <-chan struct{}, current bool, v *View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.synced, f.changed = v, true, changed
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
