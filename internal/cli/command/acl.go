package command

// The flag --acl.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

// acl is a flag's value: who may use the nodes that are created.
type acl struct {
	text string
	list []zk.ACL // nil is open to all
}

// Words for the most common lists.
const (
	aclOpen    = "open"
	aclCreator = "creator"
)

func (a *acl) Type() string   { return "list" }
func (a *acl) String() string { return a.text }

func (a *acl) Set(s string) error {
	list, err := ParseACL(s)
	if err == nil {
		a.text, a.list = s, list
	}
	return err
}

// ParseACL reads an access control list as --acl takes it. It is nil if it is open to all.
func ParseACL(s string) ([]zk.ACL, error) {
	switch s {
	case aclOpen:
		return nil, nil
	case aclCreator:
		return zk.CreatorACL(), nil
	}
	var list []zk.ACL
	for entry := range strings.SplitSeq(s, ",") {
		// The identity may contain colons, as those of digest and of IPv6 do.
		scheme, rest, _ := strings.Cut(entry, ":")
		i := strings.LastIndexByte(rest, ':')
		if scheme == "" || i < 0 {
			return nil, fmt.Errorf("%q must be %s, %s, or scheme:id:rights such as sasl:ann:cdrwa "+
				"(several separated by commas)", entry, aclOpen, aclCreator)
		}
		perms, err := ParsePerms(rest[i+1:])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		list = append(list, zk.ACL{Perms: perms, ID: zk.ID{Scheme: scheme, ID: rest[:i]}})
	}
	return list, nil
}

// A right is what an entry may grant, with its letter.
type right struct {
	letter rune
	perm   zk.Perms
}

var rights = []right{
	{'c', zk.PermCreate}, {'d', zk.PermDelete}, {'r', zk.PermRead}, {'w', zk.PermWrite}, {'a', zk.PermAdmin},
}

// FormatACL writes an access control list as ParseACL reads it.
func FormatACL(list []zk.ACL) string {
	entries := make([]string, len(list))
	for i, entry := range list {
		entries[i] = entry.ID.Scheme + ":" + entry.ID.ID + ":" + FormatPerms(entry.Perms)
	}
	return strings.Join(entries, ",")
}

// FormatPerms writes rights as letters, as ZooKeeper's own command line does.
func FormatPerms(perms zk.Perms) string {
	var b strings.Builder
	for _, r := range rights {
		if perms&r.perm != 0 {
			b.WriteRune(r.letter)
		}
	}
	return b.String()
}

// ParsePerms reads rights as ZooKeeper's own command line writes them.
func ParsePerms(s string) (zk.Perms, error) {
	var perms zk.Perms
	for _, letter := range s {
		i := slices.IndexFunc(rights, func(r right) bool { return r.letter == letter })
		if i < 0 {
			const want = "c, d, r, w and a for create, delete, read, write and admin"
			return 0, fmt.Errorf("%q is not a right: use %s", letter, want)
		}
		perms |= rights[i].perm
	}
	if perms == 0 {
		return 0, errors.New("it grants no rights")
	}
	return perms, nil
}
