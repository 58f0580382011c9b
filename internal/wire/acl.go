package wire

// Access control lists: setACL, and the reply of getACL.

import "github.com/seed-a3166700/turnstile/internal/jute"

// Perms is a set of permissions.
type Perms int32

// The permissions of an ACL entry.
const (
	PermRead   Perms = 1
	PermWrite  Perms = 2
	PermCreate Perms = 4
	PermDelete Perms = 8
	PermAdmin  Perms = 16
	PermAll    Perms = 31
)

// ID names who an ACL entry is for: a scheme and an identity in it.
type ID struct {
	Scheme string
	ID     string
}

// ACL is one entry of a node's access control list.
type ACL struct {
	Perms Perms
	ID    ID
}

// AppendACLs appends a vector of entries. A nil slice is sent as the empty vector.
func AppendACLs(b []byte, acl []ACL) []byte {
	b = jute.AppendInt(b, int32(len(acl)))
	for _, a := range acl {
		b = jute.AppendInt(b, int32(a.Perms))
		b = jute.AppendString(jute.AppendString(b, a.ID.Scheme), a.ID.ID)
	}
	return b
}

// DecodeACLs reads a vector of entries. The null vector reads as nil.
func DecodeACLs(d *jute.Decoder) []ACL {
	n := d.Count(12)
	if n < 0 || d.Err() != nil {
		return nil
	}
	acl := make([]ACL, 0, n)
	for range n {
		acl = append(acl, ACL{Perms: Perms(d.Int()), ID: ID{Scheme: d.String(), ID: d.String()}})
	}
	return acl
}

// SetACLRequest replaces a node's list, if its list version is the given one or Version is -1.
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Append appends r to b.
func (r *SetACLRequest) Append(b []byte) []byte {
	return jute.AppendInt(AppendACLs(jute.AppendString(b, r.Path), r.ACL), r.Version)
}

// Decode fills r from d.
func (r *SetACLRequest) Decode(d *jute.Decoder) {
	r.Path, r.ACL, r.Version = d.String(), DecodeACLs(d), d.Int()
}

// ACLResponse answers getACL.
type ACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Append appends r to b.
func (r *ACLResponse) Append(b []byte) []byte { return r.Stat.Append(AppendACLs(b, r.ACL)) }

// Decode fills r from d.
func (r *ACLResponse) Decode(d *jute.Decoder) {
	r.ACL = DecodeACLs(d)
	r.Stat.Decode(d)
}
