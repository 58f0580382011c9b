package lock

// The configurations of the other locks.

import (
	"context"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// RWConfig says how an RWMutex behaves. The zero RWConfig is ready to use. Its fields mean what those of Config do.
type RWConfig struct {
	Label     string                                       // what this contender is for
	Layout    Layout                                       // which other programs respect our contenders
	ACL       []zk.ACL                                     // of the nodes
	AnyACL    bool                                         // accepts existing nodes that grant more
	Handoff   Handoff                                      // how long readers may join readers that hold the lock
	Retry     Retry                                        // how often a failed acquisition is tried again
	Delay     time.Duration                                // how long the lock rests after an unclean loss
	OnSuspend OnSuspend                                    // what a lost connection does to a hold
	OnRevoke  func(ctx context.Context, r Revocation) bool // is asked when another client asks for the lock
	// OnDeadlock says what a wait inside a hold does that can never end.
	OnDeadlock OnDeadlock
	WaitsPath  string // where such waits are published
	Hooks      Hooks  // are told of acquisitions

	_ struct{}
}

func (c RWConfig) config() Config {
	return Config{
		Label: c.Label, Layout: c.Layout, ACL: c.ACL, AnyACL: c.AnyACL, Handoff: c.Handoff, Retry: c.Retry,
		Delay: c.Delay, OnSuspend: c.OnSuspend, OnRevoke: c.OnRevoke,
		OnDeadlock: c.OnDeadlock, WaitsPath: c.WaitsPath, Hooks: c.Hooks,
	}
}

// SetConfig says how a Set behaves. The zero SetConfig is ready to use. Its fields mean what those of Config do.
type SetConfig struct {
	Label     string                                       // what this contender is for
	Layout    Layout                                       // which other programs respect our contenders
	ACL       []zk.ACL                                     // of the nodes
	AnyACL    bool                                         // accepts existing nodes that grant more
	Retry     Retry                                        // how often a failed acquisition is tried again
	Delay     time.Duration                                // how long a path rests after an unclean loss
	OnSuspend OnSuspend                                    // what a lost connection does to a hold
	OnRevoke  func(ctx context.Context, r Revocation) bool // is asked when another client asks for one of the locks
	// OnDeadlock says what a wait inside a hold does that can never end.
	OnDeadlock OnDeadlock
	WaitsPath  string // where such waits are published
	Hooks      Hooks  // are told of acquisitions

	_ struct{}
}

func (c SetConfig) config() Config {
	return Config{
		Label: c.Label, Layout: c.Layout, ACL: c.ACL, AnyACL: c.AnyACL, Retry: c.Retry, Delay: c.Delay,
		OnSuspend: c.OnSuspend, OnRevoke: c.OnRevoke, OnDeadlock: c.OnDeadlock, WaitsPath: c.WaitsPath, Hooks: c.Hooks,
	}
}

// SemaphoreConfig says how a Semaphore behaves. The zero SemaphoreConfig is ready to use. Its fields mean what those of
// Config do. There is no Delay: holders of permits work at the same time in any case, so what they write to must cope
// with the late writes of one that was lost.
type SemaphoreConfig struct {
	Label     string                                       // what this contender is for
	Layout    Layout                                       // Curator or Kazoo: whose semaphore it is
	ACL       []zk.ACL                                     // of the nodes
	AnyACL    bool                                         // accepts existing nodes that grant more
	Retry     Retry                                        // how often a failed acquisition is tried again
	OnSuspend OnSuspend                                    // what a lost connection does to a hold
	OnRevoke  func(ctx context.Context, r Revocation) bool // is asked when another client asks for the permits
	// OnDeadlock says what a wait inside a hold does that can never end.
	OnDeadlock OnDeadlock
	WaitsPath  string // where such waits are published
	Hooks      Hooks  // are told of acquisitions

	_ struct{}
}

func (c SemaphoreConfig) config() Config {
	return Config{
		Label: c.Label, Layout: c.Layout, ACL: c.ACL, AnyACL: c.AnyACL, Retry: c.Retry, OnSuspend: c.OnSuspend,
		OnRevoke: c.OnRevoke, OnDeadlock: c.OnDeadlock, WaitsPath: c.WaitsPath, Hooks: c.Hooks,
	}
}

// SimpleConfig says how a Simple behaves. The zero SimpleConfig is ready to use. Its fields mean what those of Config
// do. There is no Delay: the node, which is all that there is of a simple lock, goes with its holder, and the programs
// that share the path look for nothing else.
type SimpleConfig struct {
	Label     string                                       // what this contender is for
	ACL       []zk.ACL                                     // of the node
	AnyACL    bool                                         // accepts existing nodes that grant more
	Retry     Retry                                        // how often a failed acquisition is tried again
	OnSuspend OnSuspend                                    // what a lost connection does to a hold
	OnRevoke  func(ctx context.Context, r Revocation) bool // is asked when another client asks for the lock
	// OnDeadlock says what a wait inside a hold does that can never end.
	OnDeadlock OnDeadlock
	WaitsPath  string // where such waits are published
	Hooks      Hooks  // are told of acquisitions

	_ struct{}
}

func (c SimpleConfig) config() Config {
	return Config{
		Label: c.Label, ACL: c.ACL, AnyACL: c.AnyACL, Retry: c.Retry, OnSuspend: c.OnSuspend,
		OnRevoke: c.OnRevoke, OnDeadlock: c.OnDeadlock, WaitsPath: c.WaitsPath, Hooks: c.Hooks,
	}
}
