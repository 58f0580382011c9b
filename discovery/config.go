package discovery

// The configuration of providers.

import (
	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// ProviderConfig says how a Provider picks instances. The zero ProviderConfig is ready to use.
type ProviderConfig struct {
	Strategy Strategy              // RoundRobin if zero
	Filter   func(i Instance) bool // reports whether the provider may use an instance; all that are not disabled if nil
	Ejection Ejection              // how instances that fail are left out for a while
	_        struct{}
}

func (c ProviderConfig) withDefaults() (ProviderConfig, error) {
	if c.Strategy < RoundRobin || c.Strategy > LeastOutstanding {
		const use = "use RoundRobin, Random, Sticky or LeastOutstanding"
		return c, attempt.Bad("discovery: unknown strategy %v; %s", c.Strategy, use)
	}
	var err error
	c.Ejection, err = c.Ejection.withDefaults()
	return c, err
}

func (c ProviderConfig) admits(i Instance) bool {
	return !i.Disabled && (c.Filter == nil || c.Filter(i))
}
