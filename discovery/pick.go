package discovery

// How a provider picks an instance, and how it leaves out those that fail.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// Errors of picking. They are found with errors.Is.
var (
	// ErrNoInstance is what Pick returns when no instance of the service is registered, or none that the provider may
	// use.
	ErrNoInstance = errors.New("no instance of the service may be used")
)

// Strategy says which of a service's instances the next call goes to.
type Strategy int

// Strategies.
const (
	RoundRobin       Strategy = iota // one after the other
	Random                           // any, with the same probability
	Sticky                           // the same one for as long as it may be used
	LeastOutstanding                 // the one with the fewest picks that are not Done, or any of those with as few
)

// String returns the strategy's name.
func (s Strategy) String() string {
	switch s {
	case RoundRobin:
		return "RoundRobin"
	case Random:
		return "Random"
	case Sticky:
		return "Sticky"
	case LeastOutstanding:
		return "LeastOutstanding"
	}
	return fmt.Sprintf("Strategy(%d)", int(s))
}

// Ejection says when a provider leaves out an instance that fails, and for how long. Only what Done reports counts. The
// zero Ejection has useful values.
type Ejection struct {
	// Failures is how many failures in succession eject an instance; 2 if zero. A negative number ejects none.
	Failures int
	// For is how long the first ejection lasts; 30 seconds if zero. Each further one, without a success in between,
	// lasts twice as long, up to Max. An instance that comes back is ejected again by its first failure.
	For time.Duration
	Max time.Duration // 5 minutes if zero
	// AtMost is the percentage of the instances that may be out at a time; 50 if zero. One that would exceed it stays
	// in, and so does the last one: a network failure that looks as if all instances failed does not leave the caller
	// without any. If others are unregistered, those come back first whose time would be over first.
	AtMost int
	_      struct{}
}

func (e Ejection) withDefaults() (Ejection, error) {
	if e.Failures == 0 {
		e.Failures = 2
	}
	if e.For == 0 {
		e.For = 30 * time.Second
	}
	if e.Max == 0 {
		e.Max = max(5*time.Minute, e.For)
	}
	if e.AtMost == 0 {
		e.AtMost = 50
	}
	if e.For < 0 || e.Max < e.For {
		const text = "discovery: Ejection.For must be positive, and Max at least as long: %v, %v"
		return e, attempt.Bad(text, e.For, e.Max)
	}
	if e.AtMost < 0 || e.AtMost > 100 {
		return e, attempt.Bad("discovery: Ejection.AtMost is a percentage from 1 to 100: %d", e.AtMost)
	}
	return e, nil
}

// picker has the instances that a provider knows, and what it has learned of each. It belongs to one provider.
type picker struct {
	strategy Strategy
	ejection Ejection
	now      func() time.Time

	mu    sync.Mutex
	known []*target // by node name
	next  int       // for RoundRobin: the first candidate of the next pick
	stuck *target   // for Sticky
}

// target is an instance, with what is known of it. It is replaced when the instance is registered again.
type target struct {
	name     string // of its node
	born     int64  // the node's czxid: a new registration is a new target
	instance Instance

	outstanding int       // picks that are not done
	failures    int       // in succession
	ejections   int       // in succession
	out         time.Time // until when it is ejected
}

// found is an instance as it stands on the server.
type found struct {
	name     string
	born     int64
	instance Instance
}

// replace makes the picker know these instances and no others. What was learned of those that stay is kept.
func (p *picker) replace(all []found) {
	p.mu.Lock()
	defer p.mu.Unlock()
	type registration struct {
		name string
		born int64
	}
	before := make(map[registration]*target, len(p.known))
	for _, t := range p.known {
		before[registration{t.name, t.born}] = t
	}
	known := make([]*target, 0, len(all))
	for _, f := range all {
		t := before[registration{f.name, f.born}]
		if t == nil {
			t = &target{name: f.name, born: f.born}
		}
		t.instance = f.instance
		known = append(known, t)
	}
	slices.SortFunc(known, func(a, b *target) int { return strings.Compare(a.name, b.name) })
	p.known = known
	if !slices.Contains(known, p.stuck) {
		p.stuck = nil
	}
	for out := p.ejected(); p.tooMany(len(out)); out = out[1:] {
		out[0].out = time.Time{}
	}
}

// ejected returns the targets that are out, ordered by when they come back.
func (p *picker) ejected() []*target {
	now := p.now()
	out := slices.DeleteFunc(slices.Clone(p.known), func(t *target) bool { return !now.Before(t.out) })
	slices.SortStableFunc(out, func(a, b *target) int { return a.out.Compare(b.out) })
	return out
}

// tooMany reports whether so many targets may not be out at a time.
func (p *picker) tooMany(out int) bool {
	return out > 0 && (out >= len(p.known) || out*100 > p.ejection.AtMost*len(p.known))
}

// pick returns an instance other than those of the given uses, or ErrNoInstance.
func (p *picker) pick(except []*Use) (*Use, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	t := p.choose(func(t *target) bool {
		return !now.Before(t.out) && !slices.ContainsFunc(except, func(u *Use) bool { return u.is(t) })
	})
	if t == nil {
		return nil, fmt.Errorf("discovery: %w", ErrNoInstance)
	}
	t.outstanding++
	return &Use{picker: p, target: t, Instance: t.instance}, nil
}

// choose returns the usable target whose turn it is, or nil if none is usable.
func (p *picker) choose(usable func(*target) bool) *target {
	switch p.strategy {
	case RoundRobin:
		// The turn counts in the list of all instances, so one that is left out for a while does not shift the
		// others'.
		for range p.known {
			t := p.known[p.next%len(p.known)]
			p.next = (p.next + 1) % len(p.known)
			if usable(t) {
				return t
			}
		}
		return nil
	case Sticky:
		if p.stuck != nil && usable(p.stuck) {
			return p.stuck
		}
		t := p.any(usable)
		if t != nil {
			p.stuck = t
		}
		return t
	case LeastOutstanding:
		least := math.MaxInt
		for _, t := range p.known {
			if t.outstanding < least && usable(t) {
				least = t.outstanding
			}
		}
		return p.any(func(t *target) bool { return t.outstanding == least && usable(t) })
	case Random:
	}
	return p.any(usable)
}

// any returns any of the targets for which usable is true, or nil if there is none.
func (p *picker) any(usable func(*target) bool) *target {
	var list []*target
	for _, t := range p.known {
		if usable(t) {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[rand.IntN(len(list))]
}

// done takes note of how a use ended.
func (p *picker) done(t *target, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t.outstanding--
	if !failed {
		t.failures, t.ejections = 0, 0
		return
	}
	t.failures++
	needed := p.ejection.Failures
	if t.ejections > 0 {
		needed = 1
	}
	now := p.now()
	if needed < 0 || t.failures < needed || now.Before(t.out) {
		return
	}
	if p.tooMany(len(p.ejected()) + 1) {
		return
	}
	length := p.ejection.For
	for range t.ejections {
		length += min(length, p.ejection.Max-length) // twice as long would overflow if it is centuries
	}
	t.ejections++
	t.failures = 0
	t.out = now.Add(length)
}

// Use is an instance that Pick has returned, until Done.
type Use struct {
	Instance Instance
	// Behind is for how long the provider's instances had not been current at the time of the pick; 0 if they were.
	Behind time.Duration

	picker *picker
	target *target
	once   sync.Once
}

// Done says that the caller needs the instance no more, and how it went: with a nil error, the instance works. Other
// errors count as failures of the instance, so pass nil for what is not the instance's fault, such as a request that it
// refused. Calls after the first do nothing.
func (u *Use) Done(err error) { u.once.Do(func() { u.picker.done(u.target, err != nil) }) }

func (u *Use) is(t *target) bool { return u != nil && u.target.name == t.name }

// Fixed picks among instances that it was given, in the way a Provider does: for tests, and for services that are not
// registered. It may be used by any number of goroutines.
type Fixed struct{ picker picker }

// NewFixed returns a Fixed. It returns an error if the configuration is invalid.
func NewFixed(instances []Instance, cfg ProviderConfig) (*Fixed, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Fixed{picker: picker{strategy: cfg.Strategy, ejection: cfg.Ejection, now: time.Now}}
	var all []found
	for i, instance := range instances {
		if cfg.admits(instance) {
			all = append(all, found{name: strconv.Itoa(i), instance: instance})
		}
	}
	f.picker.replace(all)
	return f, nil
}

// Pick returns an instance other than those of the given uses, or ErrNoInstance.
func (f *Fixed) Pick(_ context.Context, except ...*Use) (*Use, error) { return f.picker.pick(except) }

func (p *picker) instances() []Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Instance, len(p.known))
	for i, t := range p.known {
		all[i] = t.instance
	}
	return all
}
