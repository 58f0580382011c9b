package discovery

// Registering instances.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/member"
	"github.com/seed-a3166700/turnstile/zk"
)

// Registration is an instance that this process has registered. It may be used by any number of goroutines.
type Registration struct {
	registry *Registry
	node     *member.Node

	mu       sync.Mutex // held while the node is set, so that Instance is what was set last
	instance Instance
}
