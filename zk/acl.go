package zk

// Access control lists and credentials.

import (
	"crypto/sha1"
	"encoding/base64"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Perms is a set of permissions.
type Perms int32

// The permissions of an ACL entry.
const (
	PermRead   = Perms(wire.PermRead)
	PermWrite  = Perms(wire.PermWrite)
	PermCreate = Perms(wire.PermCreate) // create children
	PermDelete = Perms(wire.PermDelete) // delete children
	PermAdmin  = Perms(wire.PermAdmin)  // set the list itself
	PermAll    = Perms(wire.PermAll)
)

// ID names who an ACL entry is for: a scheme ("world", "digest", "ip", "sasl", "x509", "auth") and an identity in it.
type ID struct {
	Scheme string
	ID     string
}

// ACL is one entry of a node's access control list.
type ACL struct {
	Perms Perms
	ID    ID
}

// Auth is a credential: a scheme and what it wants to know.
type Auth struct {
	Scheme string
	Data   []byte
}

// Digest returns the credential of user in the digest scheme.
func Digest(user, password string) Auth {
	return Auth{Scheme: "digest", Data: []byte(user + ":" + password)}
}

// DigestID returns the identity that Digest(user, password) gives a connection, for use in an ACL.
func DigestID(user, password string) ID {
	sum := sha1.Sum([]byte(user + ":" + password))
	return ID{Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// OpenACL returns the list that lets everybody do everything.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, ID: ID{Scheme: "world", ID: "anyone"}}} }

// ReadOnlyACL returns the list that lets everybody read.
func ReadOnlyACL() []ACL { return []ACL{{Perms: PermRead, ID: ID{Scheme: "world", ID: "anyone"}}} }

// CreatorACL returns the list that lets those do everything who are authenticated as the node's creator is.
func CreatorACL() []ACL { return []ACL{{Perms: PermAll, ID: ID{Scheme: "auth"}}} }

var openACL = []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", ID: "anyone"}}}

// toWire converts a list; nil means open.
func toWire(acl []ACL) []wire.ACL {
	if acl == nil {
		return openACL
	}
	v := make([]wire.ACL, len(acl))
	for i, a := range acl {
		v[i] = wire.ACL{Perms: wire.Perms(a.Perms), ID: wire.ID(a.ID)}
	}
	return v
}

func fromWire(acl []wire.ACL) []ACL {
	v := make([]ACL, len(acl))
	for i, a := range acl {
		v[i] = ACL{Perms: Perms(a.Perms), ID: ID(a.ID)}
	}
	return v
}
