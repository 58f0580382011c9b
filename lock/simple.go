package lock

import (
	"context"
	"encoding/json"
	"fmt"
	stdpath "path"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Simple is a lock in the form of many texts and clients: one ephemeral node, at the lock's own path. Whoever makes it has the lock, and
// everybody else watches it. It is here for those who share paths with such clients; among our own, use a Mutex.
//
// It is not fair: when the lock is free all who wait try to make the node, and any of them may win, also who has just come. And it wakes
// a herd: with n processes waiting one Unlock sends n events, answered by n attempts to write, of which one succeeds, so that n
// hand-overs cost in the order of n² messages. docs/herd.md has figures; a Mutex sends one event. Goroutines
// of one process try for themselves, too, though those that share a session share its one watch at the server.
//
// For the rest it keeps what a Mutex promises: its holds end with their sessions, before the server lets anybody else in; their tokens
// grow; lost replies and callers that leave leave no node. Inspect shows the holder, not who waits; Revoke asks it and may take the lock by
// force. Two things this form cannot give, because all its nodes have the same name: a guard is refused when the hold's session is gone,
// and when there is no node, but it cannot tell the hold's node from another's that was made after somebody deleted the first by hand;
// and neither can an Unlock, or a Revoke with Force, in the moment in which it deletes, or when a partition between
// servers holds its request up and delivers it after a retry. Tokens can.
type Simple struct {
	client *zk.Client
	path   string
	cfg    Config
	spot   line.Spot
}

// NewSimple returns the simple lock at path, which is the path of its node: nothing may be below it. Nothing is asked of the server yet;
// missing parents are made when they are needed and go away when they are not. It returns an error if the path or the
// configuration is invalid.
func NewSimple(client *zk.Client, path string, config SimpleConfig) (*Simple, error) {
	cfg, err := checkNew(client, path, config.config())
	if err != nil {
		return nil, err
	}
	owner := thisProcess(cfg.Label)
	s := &Simple{client: client, path: path, cfg: cfg, spot: line.Spot{
		Line: &line.Line{Dir: stdpath.Dir(path), ACL: cfg.ACL},
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
	if err := s.spot.CheckSize(); err != nil {
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
func (s *Simple) Path() string { return s.path }

// Lock waits until it has made the node, and returns the hold. Who comes first is not served first.
//
// If ctx ends first, it returns ctx's cause. If the session ends while it waits, it goes on under the next one; a client that is closed, or
// whose credentials are refused, ends the wait with the client's error. Whenever it returns an error, it has left no node behind, or is
// still removing it in the background.
func (s *Simple) Lock(ctx context.Context) (*Hold, error) {
	queued := s.cfg.Hooks.enqueuedOnce(ctx, s.path)
	return s.acquire(ctx, func(sess *zk.Session) (*line.Post, error) {
		return s.spot.Take(ctx, sess, func() error {
			queued()
			return nil
		})
	})
}

// TryLock returns the hold if the lock is free, and ErrHeld at once if there is a node, whoever has made it. A try that fails costs one
// read, or an attempt to write if somebody else is quicker.
func (s *Simple) TryLock(ctx context.Context) (*Hold, error) {
	return s.acquire(ctx, func(sess *zk.Session) (*line.Post, error) {
		switch _, exists, err := sess.Exists(ctx, s.path); {
		case err != nil:
			return nil, err
		case exists:
			return nil, ErrHeld
		}
		return s.spot.Take(ctx, sess, func() error { return ErrHeld })
	})
}

func (s *Simple) acquire(ctx context.Context, take func(*zk.Session) (*line.Post, error)) (*Hold, error) {
	return takeAlone(ctx, &s.cfg, s.client, s, s.path, take)
}
