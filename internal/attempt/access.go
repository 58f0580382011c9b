package attempt

// Whether what exists grants more than a recipe was asked to grant.

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// permsAbove are the permissions with which a client can replace what is below a node.
const permsAbove = zk.PermCreate | zk.PermDelete | zk.PermAdmin

// ErrWider reports that a node that exists grants more than was asked for.
var ErrWider = errors.New("the node grants more than the ACL asked for")

// Access is the rights of a recipe's own nodes. It may be used by any number of goroutines.
type Access struct {
	ACL    []zk.ACL
	AnyACL bool     // accepts nodes that exist and grant more
	passed sync.Map // has the paths that were found in order
}

// Check is that of Dirs, for the recipe's own nodes. It asks until it has found a path in order: from then on only
// those whom ACL allows to could replace it.
func (a *Access) Check(ctx context.Context, sess *zk.Session, paths ...string) error {
	if a.ACL == nil || a.AnyACL {
		return nil
	}
	for _, p := range paths {
		if _, passed := a.passed.Load(p); passed {
			continue
		}
		exists, err := Dirs{ACL: a.ACL}.CheckThere(ctx, sess, p)
		if err != nil {
			return err
		}
		if exists {
			a.passed.Store(p, true)
		}
	}
	return nil
}

// Check returns an error that is ErrWider, and names the node, if a node that exists on the way to one of paths, itself
// included, grants more than ACL: all permissions count for the node itself, and above it those to create, delete and
// administer. The root does not count, and neither does a node whose list this client may not read.
func (d Dirs) Check(ctx context.Context, sess *zk.Session, paths ...string) error {
	_, err := d.CheckThere(ctx, sess, paths...)
	return err
}

// CheckThere is Check. It also reports whether all of paths exist.
func (d Dirs) CheckThere(ctx context.Context, sess *zk.Session, paths ...string) (exist bool, err error) {
	if d.ACL == nil || d.AnyACL {
		return true, nil
	}
	want := d.ACL
	if slices.ContainsFunc(want, isAuth) {
		me, err := Ask(ctx, sess, func() ([]zk.ID, error) { return sess.WhoAmI(ctx) })
		if err != nil && !errors.Is(err, zk.Unimplemented) {
			return false, err
		}
		want = resolved(want, me)
	}
	own := zk.PermAll
	if d.Above {
		own = permsAbove
	}
	exist = true
	seen := map[string]bool{"/": true}
	look := func(p string, perms zk.Perms) error {
		seen[p] = true
		have, err := Ask(ctx, sess, func() ([]zk.ACL, error) {
			acl, _, err := sess.GetACL(ctx, p)
			return acl, err
		})
		if err != nil && !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.NoAuth) {
			return err
		}
		exist = exist && !errors.Is(err, zk.NoNode)
		if entry, ok := wider(have, want, perms); ok {
			const text = "%w: %s grants %v to %s:%s; use a path below a node of your own, or accept the node's list"
			return fmt.Errorf(text, ErrWider, p, entry.Perms&perms, entry.ID.Scheme, entry.ID.ID)
		}
		return nil
	}
	for _, p := range paths { // before those above, of which one may be another of paths
		if seen[p] {
			continue
		}
		if err := look(p, own); err != nil {
			return false, err
		}
	}
	for _, p := range paths {
		for p = path.Dir(p); !seen[p]; p = path.Dir(p) {
			if err := look(p, permsAbove); err != nil {
				return false, err
			}
		}
	}
	return exist, nil
}

func isAuth(a zk.ACL) bool { return a.ID.Scheme == "auth" }

// resolved returns a list with the identities of this client in place of "auth". Without any, on servers before 3.7
// that do not tell, every identity that takes a credential stands for them.
func resolved(acl []zk.ACL, me []zk.ID) []zk.ACL {
	var list []zk.ACL
	for _, a := range acl {
		if !isAuth(a) {
			list = append(list, a)
			continue
		}
		if me == nil {
			list = append(list, a)
		}
		for _, id := range me {
			if id.Scheme != "ip" {
				list = append(list, zk.ACL{Perms: a.Perms, ID: id})
			}
		}
	}
	return list
}

// wider returns an entry of have that grants one of perms to a client to which want does not.
func wider(have, want []zk.ACL, perms zk.Perms) (zk.ACL, bool) {
	for _, h := range have {
		extra := h.Perms & perms
		for _, w := range want {
			if covers(w.ID, h.ID) {
				extra &^= w.Perms
			}
		}
		if extra != 0 {
			return h, true
		}
	}
	return zk.ACL{}, false
}

// covers reports whether the clients of id are among those of all.
func covers(all, id zk.ID) bool {
	switch {
	case all == id, all == zk.ID{Scheme: "world", ID: "anyone"}:
		return true
	case isAuth(zk.ACL{ID: all}):
		return id.Scheme != "world" && id.Scheme != "ip"
	case all.Scheme != "digest" || id.Scheme != "digest":
		return false
	}
	// Servers tell users without their hash, to others than administrators and in the answer to WhoAmI.
	a, aHash, _ := strings.Cut(all.ID, ":")
	b, bHash, _ := strings.Cut(id.ID, ":")
	return a == b && (len(aHash) <= 1 || len(bHash) <= 1)
}
