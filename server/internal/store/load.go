package store

// Building the tree from the store.

import (
	"encoding/binary"
	"fmt"

	"github.com/seed-a3166700/turnstile/server/internal/tree"
)

// Load builds the tree from the store; from a new store, the tree of a new server. It deletes ephemeral nodes whose
// session is gone, which takes a zxid, and makes that durable before it returns.
func (s *Store) Load(cfg tree.Config) (*tree.Tree, error) {
	t, loaded, err := s.load(cfg)
	if err == nil && len(loaded.changes) > 0 {
		err = s.applyChanges(t.Zxid(), loaded.changes)
	}
	if err != nil {
		return nil, err
	}
	s.zxid = t.Zxid()
	return t, nil
}

// loaded is what was seen while a tree was loaded.
type loaded struct {
	nodes   int64         // in the store
	changes []tree.Change // that delete ephemeral nodes whose session is gone
}

// load builds the tree.
func (s *Store) load(cfg tree.Config) (*tree.Tree, loaded, error) {
	var seen loaded
	l := tree.NewLoader(cfg)
	err := s.scan(prefixSession, func(key, value []byte) error {
		if len(key) != 8 || len(value) != 4 {
			return fmt.Errorf("store: damaged session record: key of %d bytes and value of %d, want 8 and 4",
				len(key), len(value))
		}
		l.Session(int64(binary.BigEndian.Uint64(key)), int32(binary.BigEndian.Uint32(value)))
		return nil
	})
	if err == nil {
		err = s.scan(prefixNode, func(key, value []byte) error {
			seen.nodes++
			return l.Node(string(key), value)
		})
	}
	if err == nil {
		err = s.scan(prefixData, func(key, value []byte) error { return l.Data(string(key), value) })
	}
	if err != nil {
		return nil, seen, fmt.Errorf("store: cannot load %s: %w", s.dir, err)
	}
	t, changes, err := l.Tree(s.zxid)
	if err != nil {
		return nil, seen, fmt.Errorf("store: cannot load %s: %w", s.dir, err)
	}
	seen.changes = changes
	return t, seen, nil
}

// applyChanges makes changes durable that were made while the tree was loaded.
func (s *Store) applyChanges(zxid int64, changes []tree.Change) error {
	b := s.NewBatch()
	b.Add(changes)
	if err := b.Apply(zxid); err != nil {
		return err
	}
	_, err := b.Wait()
	return err
}

func (s *Store) scan(prefix byte, record func(key, value []byte) error) (err error) {
	it, err := s.db.NewIter(bounds(prefix))
	if err != nil {
		return err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := record(it.Key()[1:], value); err != nil {
			return err
		}
	}
	return it.Error()
}
