package discovery

// Providers, which follow the instances of a service and pick one for each call.

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
)

// Provider picks instances of one service. It has a copy of them in memory, so a pick costs no request. While ZooKeeper
// cannot be reached, or refuses, it uses the instances that it knows, and tries again; Use.Behind says how old they
// are. It may be used by any number of goroutines.
type Provider struct {
	registry *Registry
	cfg      ProviderConfig
	cache    *cache.Children
	picker   picker
	done     sync.WaitGroup
	ready    chan struct{} // closed when the picker knows the instances
	stop     context.CancelCauseFunc
	ctx      context.Context //nolint:containedctx // it ends with Close, or when the cache has failed
}

// OpenProvider returns a provider of a service's instances. It does not wait for the server: Pick does. The service
// need not be registered yet. Close the provider when it is needed no more. It returns an error if the name or the
// configuration is invalid.
func (r *Registry) OpenProvider(service string, cfg ProviderConfig) (*Provider, error) {
	if err := checkName("service", service); err != nil {
		return nil, err
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	instances, err := r.open(service)
	if err != nil {
		return nil, fmt.Errorf("discovery: service %s: %w", service, err)
	}
	p := &Provider{
		registry: r, cfg: cfg, cache: instances, ready: make(chan struct{}),
		picker: picker{strategy: cfg.Strategy, ejection: cfg.Ejection, now: time.Now},
	}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	p.done.Go(p.follow)
	return p, nil
}

// Pick returns an instance, other than those of the given uses: pass those that the same call has tried. The first
// Pick waits until the provider has read the instances; if the server refuses that, Pick returns the refusal, and a
// later Pick may succeed. Pick returns ErrNoInstance if there is none to pick, ctx's cause if ctx ends while it waits,
// and ErrClosed after Close. Call Done on every Use.
func (p *Provider) Pick(ctx context.Context, except ...*Use) (*Use, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	use, err := p.picker.pick(except)
	if err == nil {
		use.Behind = p.cache.Synced().Behind
	}
	return use, err
}

// Instances returns the instances that the provider may pick, those that are ejected included, ordered by the names of
// their nodes. It waits like Pick.
func (p *Provider) Instances(ctx context.Context) ([]Instance, error) {
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	return p.picker.instances(), nil
}

func (p *Provider) await(ctx context.Context) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx) //nolint:contextcheck // the end of the provider, not of the call
	}
	select {
	case <-p.ready:
		return nil
	default:
	}
	err := p.cache.WaitSynced(ctx) // tells of a refusal, too
	if err != nil && ctx.Err() == nil && p.ctx.Err() == nil {
		return fmt.Errorf("discovery: %s: %w", p.cache.Path(), err)
	}
	select {
	case <-p.ready:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx) //nolint:contextcheck // the end of the provider, not of the call
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the provider and removes its watch. Uses may still be Done. It may be called several times.
func (p *Provider) Close() {
	p.stop(ErrClosed)
	p.done.Wait()
}

// follow keeps the picker's instances up to date.
func (p *Provider) follow() {
	defer p.cache.Close()
	var tell sync.Once
	var last error
	for all, err := range p.registry.follow(p.ctx, p.cache) {
		if last = err; err != nil {
			continue // a refusal may pass; if the cache has ended, so does the loop
		}
		p.picker.replace(slices.DeleteFunc(all, func(f found) bool { return !p.cfg.admits(f.instance) }))
		tell.Do(func() { close(p.ready) })
	}
	p.stop(fmt.Errorf("discovery: %s: %w", p.cache.Path(), last))
}

// Watch yields the instances of a service, disabled ones included, ordered by the names of their nodes: now, and after
// every change. A slow caller misses changes, but never the last one. Watch continues across reconnects and sessions;
// without a connection, or while the server refuses, what it yielded last may be outdated.
//
// It yields a refusal only before anything else; a caller that continues its loop waits until the server relents. It
// ends with an error: ctx's cause, the client's error if the client is closed, or cache.ErrServer.
func (r *Registry) Watch(ctx context.Context, service string) iter.Seq2[[]Instance, error] {
	return func(yield func([]Instance, error) bool) {
		if err := checkName("service", service); err != nil {
			yield(nil, err)
			return
		}
		instances, err := r.open(service)
		if err != nil {
			yield(nil, fmt.Errorf("discovery: service %s: %w", service, err))
			return
		}
		defer instances.Close()
		for all, err := range r.follow(ctx, instances) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			list := make([]Instance, len(all))
			for i, f := range all {
				list[i] = f.instance
			}
			if !yield(list, nil) {
				return
			}
		}
	}
}
