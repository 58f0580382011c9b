package queuecmd

// The writes that turnstile queue put does together with the item.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// write is one write, as a flag asks for it.
type write struct {
	flag    *writeFlag
	path    string
	data    []byte
	version int32
}

// writes are in the order of the command line.
type writes []write

// writeFlag is a flag that adds a write.
type writeFlag struct {
	list   *writes
	syntax string // of its value
	does   string // what it asks for, in the message when that is refused
	parse  func(w *write, value string, given bool) error
	op     func(w write, acl []zk.ACL) zk.Op
}

func (f *writeFlag) Type() string   { return f.syntax }
func (f *writeFlag) String() string { return "" }

func (f *writeFlag) Set(s string) error {
	path, value, given := strings.Cut(s, "=")
	w := write{flag: f, path: path, version: -1}
	if !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q must begin with a slash; it takes %s", path, f.syntax)
	}
	if err := zk.ValidatePath(path); err != nil {
		return err
	}
	if err := f.parse(&w, value, given); err != nil {
		return fmt.Errorf("%w; it takes %s", err, f.syntax)
	}
	*f.list = append(*f.list, w)
	return nil
}

// flags adds the flags. In their values the first = ends the path.
func (l *writes) flags(flags *pflag.FlagSet) {
	add := func(name, usage string, f writeFlag) {
		f.list = l
		flags.Var(&f, name, usage+" (repeatable)")
	}
	add("with-create", "create a node in the same transaction", writeFlag{
		syntax: "path[=data]", does: "create",
		parse: func(w *write, value string, _ bool) error {
			w.data = []byte(value)
			return nil
		},
		op: func(w write, acl []zk.ACL) zk.Op {
			return zk.CreateNodeOp(zk.Node{Path: w.path, Data: w.data, ACL: acl})
		},
	})
	add("with-set", "set a node's data in the same transaction", writeFlag{
		syntax: "path=data", does: "set",
		parse: func(w *write, value string, given bool) error {
			if w.data = []byte(value); !given {
				return errors.New("=data is missing")
			}
			return nil
		},
		op: func(w write, _ []zk.ACL) zk.Op { return zk.SetOp(w.path, w.data, w.version) },
	})
	add("with-delete", "delete a node in the same transaction", writeFlag{
		syntax: "path[=version]", does: "delete", parse: parseVersion,
		op: func(w write, _ []zk.ACL) zk.Op { return zk.DeleteOp(w.path, w.version) },
	})
	add("with-check", "put only if a node exists, in this version if one is given", writeFlag{
		syntax: "path[=version]", does: "check", parse: parseVersion,
		op: func(w write, _ []zk.ACL) zk.Op { return zk.CheckOp(w.path, w.version) },
	})
}

// parseVersion reads the version of a node's data.
func parseVersion(w *write, value string, given bool) error {
	if !given {
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a version, which turnstile stat shows", value)
	}
	w.version = int32(n)
	return nil
}

// ops returns the writes' operations.
func (l writes) ops(acl []zk.ACL) []zk.Op {
	ops := make([]zk.Op, len(l))
	for i, w := range l {
		ops[i] = w.flag.op(w, acl)
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
	if failed.Err == zk.NoNode && w.flag.does == "create" {
		why = "its parent does not exist"
	}
	if why == "" {
		return err
	}
	return &command.Error{
		Code: command.ExitMissing, Err: fmt.Errorf("cannot %s %s: %s", w.flag.does, w.path, why),
		Hint: "nothing was done",
	}
}

// single returns an error if there are writes and the command puts many items.
func (l writes) single(cmd *cobra.Command, lines bool) error {
	if lines && len(l) > 0 {
		return command.Usagef(cmd, "--with-%s is for one item: leave --lines out", l[0].flag.does)
	}
	return nil
}
