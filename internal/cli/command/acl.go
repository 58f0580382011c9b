package command

// The flag --acl.

import (
	"errors"
	"fmt"
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
	list, err := parseACL(s)
	if err == nil {
		a.text, a.list = s, list
	}
	return err
}

func parseACL(s string) ([]zk.ACL, error) {
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
		perms, err := parsePerms(rest[i+1:])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", entry, err)
		}
		list = append(list, zk.ACL{Perms: perms, ID: zk.ID{Scheme: scheme, ID: rest[:i]}})
	}
	return list, nil
}

// parsePerms reads rights as ZooKeeper's own command line writes them.
func parsePerms(s string) (zk.Perms, error) {
	letters := map[rune]zk.Perms{
		'c': zk.PermCreate, 'd': zk.PermDelete, 'r': zk.PermRead, 'w': zk.PermWrite, 'a': zk.PermAdmin,
	}
	var perms zk.Perms
	for _, letter := range s {
		perm, ok := letters[letter]
		if !ok {
			const want = "c, d, r, w and a for create, delete, read, write and admin"
			return 0, fmt.Errorf("%q is not a right: use %s", letter, want)
		}
		perms |= perm
	}
	if perms == 0 {
		return 0, errors.New("it grants no rights")
	}
	return perms, nil
}
