package lock

// The contenders of each kind of lock.

import (
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

func anyone(line.Contender) bool { return true }

func isReader(s line.Contender) bool { return s.Marker.IsReader() }

func isWriter(s line.Contender) bool { return !isReader(s) }

// unsteady reports whether a contender may change its kind and keep its number. Readers and writers of a read/write
// lock may. In kazoo's layout, a writer's name is that of a mutex's contender.
func unsteady(s line.Contender) bool { return s.Marker != line.CuratorLock }

// checkNew checks what every lock is made of.
func checkNew(client *zk.Client, path string, cfg Config) (Config, error) {
	if err := attempt.Args("lock", client, path, cfg.ACL); err != nil {
		return cfg, err
	}
	return cfg.withDefaults()
}

// ValidatePath returns an error, which wraps zk.BadArguments, unless path can be that of a lock: it is a node's, and
// neither the server's own nor one that recipes make for themselves.
func ValidatePath(path string) error { return attempt.PathArgs("lock", path, nil) }

// contenderLine makes l a line in which we stand with nodes of the given names.
func contenderLine(l *line.Line, dir string, cfg Config, names prefixes, blocks func(line.Contender) bool) {
	*l = line.Line{
		Dir:     dir,
		Markers: line.Locks, // a Mutex, a Set and an RWMutex with one path exclude each other
		Blocks:  blocks,
		Data:    ownerData(cfg.Label, nil),
		ACL:     cfg.ACL,
		AnyACL:  cfg.AnyACL,
		Change:  unsteady,
	}
	if cfg.Hooks.Stranger != nil {
		l.Strangers = &line.Strangers{Tell: func(name string) {
			cfg.Hooks.Stranger(Event{Path: dir, Node: attempt.Join(dir, name)})
		}}
	}
	if cfg.Hooks.Stray != nil {
		l.Stray = func(name string) { cfg.Hooks.Stray(Event{Path: dir, Node: attempt.Join(dir, name)}) }
	}
	cfg.Layout.apply(l, names)
}

// checkSize returns an error if one request cannot take a contender's nodes in the lines.
func checkSize(lines ...*line.Line) error {
	if err := line.CheckSize(lines...); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}
