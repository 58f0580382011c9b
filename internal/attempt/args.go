package attempt

// What callers pass in, and the names that they may not choose.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/zk"
)

const mark = "__"

// Mark returns the name of a node that a recipe needs for itself below one of its own.
func Mark(name string) string { return mark + name + mark }

// Beside returns the path of a node that a recipe needs for itself beside path, which other projects' clients share:
// they would take a child of path for one of theirs.
func Beside(path, name string) string { return path + "-" + Mark(name) }

// marked reports whether a name is one that Mark or Beside returns.
func marked(name string) bool {
	inner, ok := strings.CutSuffix(name, mark)
	if !ok {
		return false
	}
	return strings.HasPrefix(inner, mark) || strings.Contains(inner, "-"+mark)
}

// Join returns the path of the child of dir with the given name.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Reserved reports whether a path is the server's own, or that of a node of its own.
func Reserved(path string) bool {
	return path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/")
}

const (
	// packet bounds a request, in bytes: servers drop the connection of a client that sends more (jute.maxbuffer). The
	// client cannot know then what became of the request. If it repeated the request for that reason it would do so for
	// ever, and everything that shares the session would suffer.
	packet = 0xfffff
	// headroom is what a request has besides data, paths and lists of rights, with room to spare.
	headroom = 8 << 10
	// maxPath bounds a recipe's path, and maxACL the list of rights of its nodes, in bytes: several nodes below the
	// path fit into one request.
	maxPath = 8 << 10
	maxACL  = 32 << 10
)

// Args checks what a recipe's constructor is given: the client, the path of a node of the recipe's own, and the rights
// of the nodes that it creates. Package is the name with which its errors begin.
func Args(pkg string, client *zk.Client, path string, acl []zk.ACL) error {
	if client == nil {
		return fmt.Errorf("%s: %w: client is nil; open one with zk.Open", pkg, zk.BadArguments)
	}
	return PathArgs(pkg, path, acl)
}

// ReadArgs is Args for a recipe that only reads, which may be what belongs to others.
func ReadArgs(pkg string, client *zk.Client, path string) error {
	if client == nil {
		return fmt.Errorf("%s: %w: client is nil; open one with zk.Open", pkg, zk.BadArguments)
	}
	return validPath(pkg, path)
}

func validPath(pkg, path string) error {
	if len(path) > maxPath {
		const text = "%s: %w: path of %d bytes, beginning with %.40q: use at most %d"
		return fmt.Errorf(text, pkg, zk.BadArguments, len(path), path, maxPath)
	}
	if err := zk.ValidatePath(path); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	return nil
}

// PathArgs is Args for a recipe that is given sessions.
func PathArgs(pkg, path string, acl []zk.ACL) error {
	if err := validPath(pkg, path); err != nil {
		return err
	}
	if Reserved(path) {
		const text = "%s: %w: %s belongs to the server; use a path such as /app/%[1]s"
		return fmt.Errorf(text, pkg, zk.BadArguments, path)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if marked(name) {
			const text = "%s: %w: %s: names such as %s are for nodes that recipes make for themselves; use another path"
			return fmt.Errorf(text, pkg, zk.BadArguments, path, name)
		}
	}
	if acl != nil && len(acl) == 0 || slices.ContainsFunc(acl, func(a zk.ACL) bool { return a.ID.Scheme == "" }) {
		const text = "%s: %w: the ACL is empty, or an entry of it has no scheme; nil gives everyone all rights"
		return fmt.Errorf(text, pkg, zk.BadArguments)
	}
	if size := ACLSize(acl); size > maxACL {
		const text = "%s: %w: an ACL of %d bytes; use at most %d"
		return fmt.Errorf(text, pkg, zk.BadArguments, size, maxACL)
	}
	return nil
}

// ACLSize returns about how many bytes a list of rights takes in a request.
func ACLSize(acl []zk.ACL) int {
	const entry = 16
	size := 0
	for _, a := range acl {
		size += entry + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return size
}

// MaxData returns how many bytes of a caller's data fit into one request that creates or sets the node at path; packet
// is the largest request that the servers accept, or 0 for their default. It may be negative.
func MaxData(maxPacket int, path string, acl []zk.ACL) int {
	if maxPacket == 0 {
		maxPacket = packet
	}
	return maxPacket - headroom - 4*len(path) - 4*ACLSize(acl)
}

// Bad returns an error about an argument that wraps zk.BadArguments and says what is wrong, and no more.
func Bad(format string, args ...any) error { return badError(fmt.Sprintf(format, args...)) }

type badError string

func (e badError) Error() string { return string(e) }

func (e badError) Unwrap() error { return zk.BadArguments }
