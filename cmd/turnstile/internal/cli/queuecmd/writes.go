package queuecmd

// The writes that turnstile queue put does together with the item.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// The writes that there are. Each has a flag, whose name ends in it.
const (
	writeCreate = "create"
	writeSet    = "set"
	writeDelete = "delete"
	writeCheck  = "check"
)

// write is one write, as a flag asks for it.
type write struct {
	kind    string
	path    string
	data    []byte
	version int32 // of the node's data; -1 is any
}

// writes are in the order of the command line.
type writes []write

// Values of the flags. The first = ends the path.
const (
	takesData     = "path=data"
	takesSomeData = "path[=data]"
	takesVersion  = "path[=version]"
)

// writeFlag is a flag that adds a write.
type writeFlag struct {
	list   *writes
	kind   string
	syntax string
}

func (f *writeFlag) Type() string   { return f.syntax }
func (f *writeFlag) String() string { return "" }

func (f *writeFlag) Set(s string) error {
	path, value, given := strings.Cut(s, "=")
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q must begin with a slash; it takes %s", path, f.syntax)
	}
	if err := zk.ValidatePath(path); err != nil {
		return err
	}
	w := write{kind: f.kind, path: path, version: -1}
	switch {
	case f.syntax == takesData && !given:
		return fmt.Errorf("=data is missing; it takes %s", f.syntax)
	case f.syntax != takesVersion:
		w.data = []byte(value)
	case given:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a version, which turnstile stat shows; it takes %s", value, f.syntax)
		}
		w.version = int32(n)
	}
	*f.list = append(*f.list, w)
	return nil
}

// flags adds the flags.
func (l *writes) flags(flags *pflag.FlagSet) {
	add := func(kind, syntax, usage string) {
		flags.Var(&writeFlag{l, kind, syntax}, "with-"+kind, usage+" (repeatable)")
	}
	add(writeCreate, takesSomeData, "create a node in the same transaction")
	add(writeSet, takesData, "set a node's data in the same transaction")
	add(writeDelete, takesVersion, "delete a node in the same transaction")
	add(writeCheck, takesVersion, "put only if a node exists, in this version if one is given")
}

// op returns the write's operation.
func (w *write) op(acl []zk.ACL) zk.Op {
	switch w.kind {
	case writeCreate:
		return zk.CreateNodeOp(zk.Node{Path: w.path, Data: w.data, ACL: acl})
	case writeSet:
		return zk.SetOp(w.path, w.data, w.version)
	case writeDelete:
		return zk.DeleteOp(w.path, w.version)
	default:
		return zk.CheckOp(w.path, w.version)
	}
}

// ops returns the writes' operations.
func (l writes) ops(acl []zk.ACL) []zk.Op {
	ops := make([]zk.Op, len(l))
	for i := range l {
		ops[i] = l[i].op(acl)
	}
	return ops
}

// refused turns the error of a put into one that names the write that the servers refused, if they refused one.
func (l writes) refused(err error) error {
	failed, ok := errors.AsType[*zk.MultiError](err)
	if !ok || failed.Index >= len(l) || l[failed.Index].path != failed.Path {
		return err
	}
	why := map[zk.Code]string{
		zk.NodeExists: "it exists", zk.NoNode: "there is no such node", zk.BadVersion: "it has another version",
		zk.NotEmpty: "it has children", zk.NoChildrenForEphemerals: "its parent is an ephemeral node",
	}[failed.Err]
	w := l[failed.Index]
	if failed.Err == zk.NoNode && w.kind == writeCreate {
		why = "its parent does not exist"
	}
	if why == "" {
		return err
	}
	return &command.Error{
		Code: command.ExitMissing, Err: fmt.Errorf("cannot %s %s: %s", w.kind, w.path, why),
		Hint: "nothing was done",
	}
}
