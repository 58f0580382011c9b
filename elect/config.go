package elect

// How a candidate behaves.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/waits"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// Config says how a candidate behaves. The zero Config is ready to use.
type Config struct {
	Layout Layout   // which other programs take part in the election; LeaderLatch if zero
	ACL    []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool

	// Retry says how often and how soon a campaign is tried again after it lost its session or connection while it
	// waited. Zero retries for as long as the caller's context lasts.
	Retry lock.Retry

	// Delay is how long nobody leads after an unclean loss, to let late writes of the lost leader arrive: after its
	// session ended without Resign, or its node was deleted by force. The next leader with a Delay waits for as long as
	// the lost one's says before Campaign returns, and TryCampaign returns ErrLed meanwhile. There is no wait after
	// Resign. Candidates without a Delay, as all of other programs are, neither cause a wait nor observe one. It costs
	// a round trip whenever a candidate becomes the first in line, and leaves a node at DelayPath while one leads and
	// after a loss.
	//
	// It cannot be combined with the Layout LeaderElectionSupport, whose names can come again: they would not tell a
	// lost leader from a new one.
	Delay time.Duration

	// OnRevoke is called when another client asks for the leadership, with lock.Revoke. It may finish work first. If it
	// returns true, the leadership's context ends, with a *RevokedError; if it returns false, the leadership goes on,
	// unless the other client ends it by force. The context that it gets ends with the leadership. Each request calls
	// it on a goroutine of its own. If OnRevoke is nil, the leadership's context ends at once.
	//
	// With the Layout LeaderElectionSupport a leader cannot be asked, so OnRevoke is refused: Java's candidates would
	// miss the end of a leader whose node has been written to.
	OnRevoke func(ctx context.Context, r Revocation) bool

	// OnDeadlock says what a campaign does that goes on inside of a hold, of a lock or of another leadership, and can
	// never end, because of a deadlock: see lock.OnDeadlock. What goes on with the leadership's context is inside of
	// the leadership.
	OnDeadlock lock.OnDeadlock
	// WaitsPath is where campaigns inside of holds are published for others: lock.DefaultWaitsPath if empty.
	WaitsPath string

	Hooks Hooks // called when a campaign begins and ends, and when a leadership does

	_ struct{}
}

func (c *Config) check() error {
	if err := c.Layout.check(); err != nil {
		return err
	}
	if err := line.Policy(c.Retry).Check(); err != nil {
		return fmt.Errorf("elect: %w", err)
	}
	var err error
	if c.WaitsPath, err = waits.CheckConfig("elect", int(c.OnDeadlock), c.WaitsPath); err != nil {
		return err
	}
	support := c.Layout == LeaderElectionSupport
	switch {
	case c.Delay < 0:
		return attempt.Bad("elect: Delay must not be negative: %v", c.Delay)
	case c.Delay > 0 && support:
		return attempt.Bad("elect: LeaderElectionSupport and Delay cannot be combined; leave one of them zero")
	case c.OnRevoke != nil && support:
		return attempt.Bad("elect: a leader with the Layout LeaderElectionSupport cannot be asked; leave OnRevoke nil")
	}
	return nil
}

// DelayPath returns the path of the directory, a sibling of the election's path, in which leaders with a Config.Delay
// leave a node while they lead and after an unclean loss.
func DelayPath(path string) string { return line.DelayPath(path) }

// Revocation is a request to a leader to resign: who asks, why and when.
type Revocation = lock.Revocation

// RevokedError is the cause of a leadership's context after a revocation, which its field Revocation describes. It
// wraps ErrRevoked.
type RevokedError = lock.RevokedError
