package fence

// Gate, a fence within one process.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// Store remembers the largest token of each resource beyond the life of a process. A Gate calls it, from any number of
// goroutines, with a token that it is about to admit. Store returns a *StaleError if it knows a larger one.
//
// Table.Store is a Store. For a single resource, use a File or a Node:
//
//	func(ctx context.Context, _ string, token fence.Token) error { return file.Raise(ctx, token) }
type Store func(ctx context.Context, resource string, token Token) error

// Gate is a fence within one process. It never admits work of two different tokens of a resource at a time, and no
// token after a larger one; work of one token may run concurrently. A larger token cancels the context of work under
// smaller ones, with ErrStale as the cause, and waits until that work has returned.
//
// A service of several processes needs more, because two of them may admit two tokens at a time. Let their transactions
// check the token, with Table.Admit or Node.Write; FromContext returns it.
type Gate struct {
	store Store

	mu        sync.Mutex // guards resources and their contents; no goroutine waits while it holds mu
	resources map[string]*resourceState
}

// resourceState is what a gate knows of one resource.
type resourceState struct {
	newest  Token              // the largest token that the gate has seen
	stored  Token              // the largest token that the store has admitted
	users   int                // the calls of Do in progress
	running map[*call]struct{} // the calls whose work is running
	empty   chan struct{}      // closed when running becomes empty; nil while no call waits for that
}

// call is one call of Do.
type call struct {
	token  Token
	cancel context.CancelCauseFunc
}

// NewGate returns a gate that remembers tokens in store. Without a store it forgets them when the process ends, so that
// after a restart it admits a late writer until it has seen a newer token, and it keeps a few bytes for every resource
// it has seen.
func NewGate(store Store) *Gate {
	return &Gate{store: store, resources: make(map[string]*resourceState)}
}

// Do runs work if the gate has seen no larger token of resource, and returns work's error. Work's context descends from
// ctx, carries the token (see FromContext), and ends with the cause ErrStale when a larger token arrives; work should
// then return soon, because the new holder waits for it.
//
// Without running work, Do returns a *StaleError if there is a larger token, the store's error, or ctx's cause if ctx
// ends before work of a smaller token has returned. In that last case the gate has seen the token nevertheless.
func (g *Gate) Do(ctx context.Context, resource string, token Token, work func(ctx context.Context) error) error {
	if err := cmp.Or(checkToken(token), checkWork(work == nil)); err != nil {
		return err
	}
	r, err := g.register(resource, token)
	if err != nil {
		return err
	}
	defer g.unregister(resource, r)
	if err := g.remember(ctx, r, resource, token); err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, token))
	defer cancel(nil)
	c := &call{token: token, cancel: cancel}
	if err := g.begin(ctx, r, resource, c); err != nil {
		return err
	}
	defer g.end(r, c)
	return work(inner)
}

// register counts a call, and refuses a token that is smaller than the newest.
func (g *Gate) register(resource string, token Token) (*resourceState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.resources[resource]
	if r == nil {
		r = &resourceState{running: make(map[*call]struct{})}
		g.resources[resource] = r
	}
	if err := admit(resource, token, r.newest); err != nil {
		return nil, err
	}
	r.users++
	if g.store == nil {
		r.raiseLocked(token)
	}
	return r, nil
}

// raiseLocked makes token the newest, and cancels work of smaller ones.
func (r *resourceState) raiseLocked(token Token) {
	if token <= r.newest {
		return
	}
	r.newest = token
	for c := range r.running {
		c.cancel(ErrStale)
	}
}

// remember has the store admit the token, once for each token. The token counts here only after that: a token that the
// store refuses, or fails to keep, must not shut out others.
func (g *Gate) remember(ctx context.Context, r *resourceState, resource string, token Token) error {
	g.mu.Lock()
	known := g.store == nil || r.stored >= token
	g.mu.Unlock()
	if known {
		return nil
	}
	err := g.store(ctx, resource, token)
	g.mu.Lock()
	defer g.mu.Unlock()
	if stale, ok := errors.AsType[*StaleError](err); ok {
		r.raiseLocked(stale.Newest)
		return &StaleError{Resource: resource, Token: token, Newest: stale.Newest}
	}
	if err != nil {
		return err
	}
	r.stored = max(r.stored, token)
	r.raiseLocked(token)
	return nil
}

// begin waits until no work of a smaller token is running.
func (g *Gate) begin(ctx context.Context, r *resourceState, resource string, c *call) error {
	for {
		g.mu.Lock()
		if err := admit(resource, c.token, r.newest); err != nil {
			g.mu.Unlock()
			return err
		}
		if err := context.Cause(ctx); err != nil {
			g.mu.Unlock()
			return fmt.Errorf("fence: %s: not admitted: %w", resource, err)
		}
		if !r.runsBefore(c.token) {
			r.running[c] = struct{}{}
			g.mu.Unlock()
			return nil
		}
		if r.empty == nil {
			r.empty = make(chan struct{})
		}
		empty := r.empty
		g.mu.Unlock()
		select {
		case <-empty:
		case <-ctx.Done(): // the next round returns its cause
		}
	}
}

// runsBefore reports whether work of a smaller token is running.
func (r *resourceState) runsBefore(token Token) bool {
	for c := range r.running {
		return c.token < token // all running calls have the same token
	}
	return false
}

func (g *Gate) end(r *resourceState, c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(r.running, c)
	if len(r.running) == 0 && r.empty != nil {
		close(r.empty)
		r.empty = nil
	}
}

// unregister drops a resource without calls if the store remembers its token.
func (g *Gate) unregister(resource string, r *resourceState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.users--; r.users == 0 && g.store != nil {
		delete(g.resources, resource)
	}
}

// Newest returns the largest token of resource that the gate has seen. It returns zero if there is none, and, on a gate
// with a store, while no work is running.
func (g *Gate) Newest(resource string) Token {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.resources[resource]; r != nil {
		return r.newest
	}
	return 0
}

type tokenKey struct{}

// FromContext returns the token under which a Gate, or HTTP, runs the work that ctx belongs to.
func FromContext(ctx context.Context) (token Token, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(Token)
	return token, ok
}
