package lock

// Simple.

import (
	"context"
	"encoding/json"
	"fmt"
	stdpath "path"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Simple is the simplest form of lock, which many programs use: one ephemeral node, at the lock's own path. The
// client that creates it has the lock, and the others watch it. Use it to share paths with such programs; otherwise
// use a Mutex.
//
// It is not fair: when the lock is free, all waiters try to create the node, and any of them may win, also a
// newcomer. And it wakes a herd: with n processes waiting, one Unlock sends n events, answered by n attempts to
// write, of which one succeeds. A Mutex sends one event; test/herd/herd.md has figures. Goroutines of one process try
// for themselves, too, though those with the same session share its one watch.
//
// In all else it keeps the promises of a Mutex: its holds end with their sessions, before the server lets another
// client in; their tokens grow; lost replies and canceled calls leave no node. Inspect shows the holder, not the
// waiters; Revoke asks it and may take the lock by force. Because all its nodes have the same name, two things are
// weaker. A guard cannot tell the hold's node from one that was created after a client deleted the first by hand. And
// an Unlock, or a Revoke with Force, can hit such a later node in the moment in which it deletes, or when a partition
// between servers delays its request and delivers it after a retry. Tokens can tell.
type Simple struct {
	base
	node line.NodeLock
}

// NewSimple returns the simple lock at path, which is the path of its node and must have nothing below it. It does
// not contact the server: missing parents are created when they are needed and removed when they are not. It returns
// an error if the path or the configuration is invalid.
func NewSimple(client *zk.Client, path string, config SimpleConfig) (*Simple, error) {
	cfg, err := checkNew(client, path, config.config())
	if err != nil {
		return nil, err
	}
	owner := Owner(line.ThisProcess(cfg.Label))
	s := &Simple{base: base{client: client, name: path, cfg: cfg}, node: line.NodeLock{
		Line: &line.Line{Dir: stdpath.Dir(path), ACL: cfg.ACL, AnyACL: cfg.AnyACL, Above: true},
		Path: path,
		Data: func(guid string) []byte {
			o := signed{owner, guid}
			o.Since = time.Now()
			b, _ := json.Marshal(o) // every field marshals
			return b
		},
		Ours: func(data []byte, guid string) bool {
			var o signed
			return json.Unmarshal(data, &o) == nil && o.ID == guid
		},
	}}
	if err := s.node.CheckSize(); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return s, nil
}

// signed is an owner record that tells attempts of one session apart.
type signed struct {
	Owner
	ID string `json:"id,omitempty"`
}

// Path returns the lock's path, which is that of its node.
func (s *Simple) Path() string { return s.name }

// Lock waits until it has created the node, and returns the hold. Waiters are served in no particular order. Its
// errors are those of Mutex.Lock.
func (s *Simple) Lock(ctx context.Context) (*Hold, error) {
	return s.lock(ctx, func(ctx context.Context, sess *zk.Session, queued func(*line.Own)) (*line.Own, error) {
		return s.node.Take(ctx, sess, func() error {
			queued(nil)
			return nil
		})
	})
}

// TryLock returns the hold if the lock is free, and ErrHeld at once if its node exists. A try that fails costs one
// read, or an attempt to write if another client is quicker.
func (s *Simple) TryLock(ctx context.Context) (*Hold, error) {
	return s.lock(ctx, func(ctx context.Context, sess *zk.Session, _ func(*line.Own)) (*line.Own, error) {
		own, err := s.node.TryTake(ctx, sess)
		if own == nil && err == nil {
			err = ErrHeld
		}
		return own, err
	})
}

// lock locks as take does, which calls queued when it has to wait.
func (s *Simple) lock(ctx context.Context, take contend) (*Hold, error) {
	return s.acquire(ctx, s, Exclusive, func(ctx context.Context, r *report) (*Hold, error) {
		return s.alone(ctx, r, take)
	})
}
