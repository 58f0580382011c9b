package discovery

// Registering instances.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// Registration is an instance that this program has registered, until Unregister. It may be used by any number of
// goroutines.
type Registration struct {
	registry *Registry
	node     *member.Node

	mu       sync.Mutex // guards instance
	instance Instance
}

// taken has the nodes that are registered, by their client and path. The nodes of one client are those of one session
// at a time, so nothing at the server would tell two registrations of one id apart.
var taken sync.Map

// seat is a key of taken.
type seat struct {
	client *zk.Client
	path   string
}

func (g *Registration) seat() seat {
	i := g.Instance()
	return seat{g.registry.client, g.registry.Path(i.Service) + "/" + i.ID}
}

// Register registers an instance and waits until clients can find it. It stays registered: after the end of a session
// it is registered again under the next one, as it was last set (CURATOR-146). If an instance of another program has
// the same id, a Dynamic one is left alone, and Register waits until it is gone, which is how a program that starts
// again takes its place. A Static or Permanent one is replaced. One that this client has registered is not: Register
// returns ErrRegistered.
//
// If Register fails, nothing is left behind, or its removal goes on in the background. It returns ctx's cause if ctx
// ends first, ErrClosed, the client's error if the client was closed, the server's refusal, or an error that says what
// is wrong with the instance.
func (r *Registry) Register(ctx context.Context, i Instance) (*Registration, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	i, err := i.withDefaults(time.Now())
	if err != nil {
		return nil, err
	}
	data, err := r.encode(i)
	if err != nil {
		return nil, err
	}
	cfg := member.NodeConfig{ACL: r.cfg.ACL, AnyACL: r.cfg.AnyACL, Mode: member.Persistent}
	switch i.Type {
	case Dynamic:
		cfg.Mode = member.Ephemeral
	case DynamicSequential:
		cfg.Mode = member.EphemeralSequential
	case Static, Permanent:
	}
	reg := &Registration{registry: r, instance: i}
	if i.Type != DynamicSequential { // its name has a number of its own
		if _, ok := taken.LoadOrStore(reg.seat(), reg); ok {
			return nil, fmt.Errorf("discovery: %w: %s of %s", ErrRegistered, i.ID, i.Service)
		}
	}
	node, err := member.OpenNode(r.client, r.Path(i.Service)+"/"+i.ID, data, cfg)
	if err != nil {
		r.remove(reg)
		return nil, fmt.Errorf("discovery: %w", err)
	}
	reg.node = node
	if !r.add(reg) {
		r.remove(reg)
		node.Close()
		return nil, fmt.Errorf("discovery: %w", ErrClosed)
	}
	if err := node.Await(ctx); err != nil {
		reg.Unregister()
		return nil, reg.failed("register", err)
	}
	return reg, nil
}

// Instance returns the instance as it was last registered or updated.
func (g *Registration) Instance() Instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.instance
}

// Update changes what clients see of the instance, in place, and waits until they can see it. Pass what Instance
// returns, with changes: the service, the id and the type must stay. If Update returns an error other than of a wrong
// instance, the change will still be made when that is possible, unless the instance is unregistered or another Update
// comes first. Updates must not be called at the same time.
func (g *Registration) Update(ctx context.Context, i Instance) error {
	before, id := g.Instance(), i.ID
	i, err := i.withDefaults(before.Registered)
	if err != nil {
		return err
	}
	if i.Service != before.Service || i.ID != before.ID || i.Type != before.Type {
		return attempt.Bad("discovery: update %s of %s: the service, the id and the type cannot change: "+
			"given service %q, id %q, type %s; start from Registration.Instance, or register another instance",
			before.ID, before.Service, i.Service, id, i.Type)
	}
	data, err := g.registry.encode(i)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.instance = i
	g.mu.Unlock()
	if err := g.node.Set(ctx, data); err != nil {
		return g.failed("update", err)
	}
	return nil
}

// Await waits until clients can find the instance: it is gone for a while after the end of a session. Its errors are
// those of Register.
func (g *Registration) Await(ctx context.Context) error {
	if err := g.node.Await(ctx); err != nil {
		return g.failed("await", err)
	}
	return nil
}

// Unregister removes this instance, and no other one that has the same id, in the background: until it is gone or the
// session has ended. It is not registered again, whatever was on its way. A Static or Permanent one that another
// program has replaced is the same node, though, and goes as well. A second Unregister does nothing.
func (g *Registration) Unregister() {
	g.registry.remove(g)
	g.node.Close()
}

// UnregisterWait unregisters the instance, and waits until it is gone. If ctx ends first it returns its cause, and the
// removal goes on in the background. It may be called again.
func (g *Registration) UnregisterWait(ctx context.Context) error {
	g.registry.remove(g)
	if err := g.node.CloseWait(ctx); err != nil {
		return g.failed("unregister", err)
	}
	return nil
}

func (g *Registration) failed(what string, err error) error {
	i := g.Instance()
	if errors.Is(err, member.ErrClosed) {
		err = ErrClosed
	}
	return fmt.Errorf("discovery: %s %s of %s: %w", what, i.ID, i.Service, err)
}

// add takes note of a registration, unless the registry is closed.
func (r *Registry) add(g *Registration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.registrations[g] = struct{}{}
	return true
}

// encode returns what an instance's node holds. It returns an error for one that no server would accept.
func (r *Registry) encode(i Instance) ([]byte, error) {
	data, err := i.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if limit := attempt.MaxData(0, r.Path(i.Service)+"/"+i.ID, r.cfg.ACL); len(data) > limit {
		const text = "discovery: %w: an instance of %d bytes; the limit is %d"
		return nil, fmt.Errorf(text, zk.BadArguments, len(data), limit)
	}
	return data, nil
}

func (r *Registry) remove(g *Registration) {
	taken.CompareAndDelete(g.seat(), g)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.registrations, g)
}

// Close unregisters what was registered through this registry, except for Permanent instances, and does not wait until
// they are gone. Providers and watches are not affected. A second Close does nothing.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	all := r.registrations
	r.registrations = map[*Registration]struct{}{}
	r.mu.Unlock()
	for g := range all {
		taken.CompareAndDelete(g.seat(), g)
		if g.Instance().Type == Permanent {
			g.node.Detach()
			continue
		}
		g.node.Close()
	}
}
