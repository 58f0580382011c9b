package tree

import (
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// WatcherID names a connection, which is what watches belong to. The server chooses it and does not use it twice.
type WatcherID uint64

// Caller is who asks: one value per connection, kept by the server. The tree remembers the pointer while the connection
// has watches, because events are shown only to those who may read the node; so identities that are added to IDs count
// for watches that were set before.
type Caller struct {
	Session int64
	Watcher WatcherID
	// IDs are the identities of the connection: {"ip", address}, {"digest", "user:hash"}, {"sasl", user}, {"x509", subject}.
	IDs []wire.ID
	// Super lets everything pass. An identity of the scheme "super" does the same.
	Super bool
}

// Config chooses how strict the tree is. The zero value is ZooKeeper's default.
type Config struct {
	ExtendedTypes bool     // TTL nodes may be created
	EnforceQuota  bool     // hard limits refuse writes
	SkipACL       bool     // everybody may do everything
	Schemes       []string // schemes that ACLs may name beside world, auth, digest and ip: "sasl", "x509"
	// NeverUsedAfter is the age in milliseconds after which a container that never had a child may be collected; never if 0.
	NeverUsedAfter int64
	_              struct{}
}
