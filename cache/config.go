package cache

// The configuration, and the errors of this package.

import (
	"errors"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of caches. They are found with errors.Is.
var (
	// ErrClosed is what Err, Sync, Changes and Views return after Close, and WaitSynced if the cache was never synced.
	ErrClosed = errors.New("the cache is closed")
	// ErrServer ends a cache: it is connected to a server that has no persistent watches.
	ErrServer = errors.New("caches need ZooKeeper 3.6 or later")
)

// Config says what a cache keeps. The zero Config keeps everything.
type Config struct {
	// NoData leaves out the nodes' data. The cache then follows which nodes exist and when they change.
	NoData bool
	// MaxDepth limits a Tree to so many levels below its root; zero is no limit. Node and Children ignore it.
	MaxDepth int
	// Exclude leaves out a node, and everything below it, if it returns true for the node's path; nil excludes nothing.
	// It is not called for the root. It must give the same answer for a path each time, must not block, and must not
	// call the cache.
	Exclude func(path string) bool
	// ACL refuses a root that grants, or that is below a node that grants, more of the rights to create, delete and
	// administer than ACL: others could change what the cache shows. If it is nil, or AnyACL is set, none is refused.
	ACL    []zk.ACL
	AnyACL bool

	_ struct{}
}

// everything is the depth of a tree without a limit.
const everything = 1 << 30

func (cfg Config) check(client *zk.Client, path string) error {
	if cfg.MaxDepth < 0 {
		return attempt.Bad("cache: MaxDepth must not be negative: %d; zero is no limit", cfg.MaxDepth)
	}
	return attempt.ReadArgs("cache", client, path)
}
