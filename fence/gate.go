package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Store remembers the largest token of each resource for longer than a process lives. It is called with a token that is about to be admitted, and
// returns a *StaleError if it knows a larger one. It may be called from any number of goroutines.
//
// Table.Store is one. One for a single resource is made of a File or a Node in a line:
//
//	func(ctx context.Context, _ string, token fence.Token) error { return file.Raise(ctx, token) }
type Store func(ctx context.Context, resource string, token Token) error

// Gate is a fence within one process, before whatever that process does: it lets work in by its token, and never two tokens of
// one resource at a time. Work of one token may run many times at once.
//
// As soon as a larger token arrives, nothing smaller is let in any more. What is still at work under a smaller one is told by its context, with
// ErrStale as the cause, and the larger token waits until it has returned.
//
// A service that runs as several processes needs more than a Gate: two processes may work on two tokens at a time. Let
// their transactions admit the token, with Table.Admit or Node.Write, and FromContext to get it.
type Gate struct {
	store Store

	mu    sync.Mutex // guards doors and what is in them; never held while anything is waited for
	doors map[string]*door
}

// door is one resource's part of a gate.
type door struct {
	newest Token               // the largest token that has come here
	stored Token               // the largest token that the store has admitted
	users  int                 // who is inside or waits to be
	inside map[*visit]struct{} // whose work is under way
	empty  chan struct{}       // closed when the last inside leaves; nil if nobody waits for that
}

// visit is one piece of work.
type visit struct {
	token  Token
	cancel context.CancelCauseFunc
}

// NewGate returns a gate that remembers in store. A nil store is memory alone: the gate forgets when the process ends, so a
// late writer that comes after a restart and before any newer one gets in; and it keeps a few bytes for every resource it has ever seen.
func NewGate(store Store) *Gate {
	return &Gate{store: store, doors: make(map[string]*door)}
}

// Do runs work if no larger token of resource has come, and returns its error. Work's context descends from ctx, carries the token
// (FromContext), and ends with ErrStale as its cause when a larger token has come: then work should return soon, because the new holder
// waits for it. Do returns a *StaleError without running work if a larger token has come; the store's error; ctx's cause if that has ended or
// ends while work of a smaller token is under way. The token counts as seen in the last case, too.
func (g *Gate) Do(ctx context.Context, resource string, token Token, work func(ctx context.Context) error) error {
	if err := checkToken(token); err != nil {
		return err
	}
	d, err := g.arrive(resource, token)
	if err != nil {
		return err
	}
	defer g.depart(resource, d)
	if err := g.remember(ctx, d, resource, token); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, token))
	defer cancel(nil)
	v := &visit{token: token, cancel: cancel}
	if err := g.enter(ctx, d, resource, v); err != nil {
		return err
	}
	defer g.leave(d, v)
	return work(inner)
}

// arrive announces the token: from now on nothing smaller is let in.
func (g *Gate) arrive(resource string, token Token) (*door, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.doors[resource]
	if d == nil {
		d = &door{inside: make(map[*visit]struct{})}
		g.doors[resource] = d
	}
	if err := admit(resource, token, d.newest); err != nil {
		return nil, err
	}
	d.users++
	if g.store == nil {
		d.raise(token)
	}
	return d, nil
}

// raise makes token the newest, and tells work of smaller ones to end. The caller holds the gate's mu.
func (d *door) raise(token Token) {
	if token <= d.newest {
		return
	}
	d.newest = token
	for v := range d.inside {
		v.cancel(ErrStale)
	}
}

// remember has the store admit the token, once for each. Only then does the token count here: one that the store refuses, or cannot
// keep, must not shut anybody out.
func (g *Gate) remember(ctx context.Context, d *door, resource string, token Token) error {
	g.mu.Lock()
	known := g.store == nil || d.stored >= token
	g.mu.Unlock()
	if known {
		return nil
	}
	err := g.store(ctx, resource, token)
	g.mu.Lock()
	defer g.mu.Unlock()
	if stale, ok := errors.AsType[*StaleError](err); ok {
		d.raise(stale.Newest)
		return &StaleError{Resource: resource, Token: token, Newest: stale.Newest}
	}
	if err != nil {
		return err
	}
	d.stored = max(d.stored, token)
	d.raise(token)
	return nil
}

// enter waits until no smaller token is at work.
func (g *Gate) enter(ctx context.Context, d *door, resource string, v *visit) error {
	for {
		g.mu.Lock()
		if err := admit(resource, v.token, d.newest); err != nil {
			g.mu.Unlock()
			return err
		}
		if err := context.Cause(ctx); err != nil {
			g.mu.Unlock()
			return fmt.Errorf("fence: %s: not let in: %w", resource, err)
		}
		if !d.older(v.token) {
			d.inside[v] = struct{}{}
			g.mu.Unlock()
			return nil
		}
		if d.empty == nil {
			d.empty = make(chan struct{})
		}
		empty := d.empty
		g.mu.Unlock()
		select {
		case <-empty:
		case <-ctx.Done(): // said above
		}
	}
}

func (d *door) older(token Token) bool {
	for v := range d.inside {
		return v.token < token // all inside have one token
	}
	return false
}

func (g *Gate) leave(d *door, v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(d.inside, v)
	if len(d.inside) == 0 && d.empty != nil {
		close(d.empty)
		d.empty = nil
	}
}

// depart forgets a resource that nobody uses, if the store remembers it.
func (g *Gate) depart(resource string, d *door) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.users--; d.users == 0 && g.store != nil {
		delete(g.doors, resource)
	}
}

// Newest returns the largest token of resource that has come here, zero if none has, or if the store remembers it and nobody is
// at work.
func (g *Gate) Newest(resource string) Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.doors[resource]; d != nil {
		return d.newest
	}
	return 0
}

type tokenKey struct{}

// FromContext returns the token under which a Gate, or HTTP, has let the work in that ctx belongs to.
func FromContext(ctx context.Context) (token Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(Token)
	return token, ok
}
