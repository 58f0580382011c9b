// Package barrier lets processes wait for each other at paths of ZooKeeper.
//
// A Barrier holds all who wait until it is removed. A Double lets its parties in when enough of them have come, and out
// when all are ready to leave. Rounds is a barrier for work in rounds: no party goes on to the next round before all
// have finished this one, and all parties learn the same of each round, even if some die.
//
// Barrier and Double work on the nodes of Apache Curator and kazoo, beside their programs; see docs/interop.md.
//
//	d, err := barrier.NewDouble(client, "/app/start", 3, barrier.Config{})
//	...
//	m, err := d.Enter(ctx) // returns when three have come
//	...
//	err = m.Leave(ctx) // returns when all have left
//
// A barrier is no lock. What a party may do alone, or at most once, needs one.
package barrier

// The plain barrier, and what all barriers share.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Config says how a barrier behaves. The zero Config is ready to use.
type Config struct {
	Label string   // what other programs see in our nodes; the host's name if empty
	ACL   []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	_      struct{}
}

// maxLabel bounds a label, in bytes.
const maxLabel = 1 << 10

// base is what all barriers have.
type base struct {
	client *zk.Client
	path   string
	data   []byte // of our nodes
	access *attempt.Access
}

func newBase(client *zk.Client, path, label string, acl []zk.ACL, anyACL bool) (base, error) {
	if err := attempt.Args("barrier", client, path, acl); err != nil {
		return base{}, err
	}
	if len(label) > maxLabel {
		return base{}, attempt.Bad("barrier: label of %d bytes; use at most %d", len(label), maxLabel)
	}
	if label == "" {
		label, _ = os.Hostname() // it only informs people
	}
	return base{client: client, path: path, data: []byte(label), access: &attempt.Access{ACL: acl, AnyACL: anyACL}}, nil
}

// Path returns the barrier's path.
func (b *base) Path() string { return b.path }

// failed adds the barrier's path to err, and, if there was no server to ask, the reason.
func (b *base) failed(err error) error {
	return fmt.Errorf("barrier: %s: %w", b.path, attempt.Explain(b.client, err))
}

// dirs says how the directories of the barrier's nodes are made.
func (b *base) dirs(keep attempt.Keep) attempt.Dirs {
	return attempt.Dirs{Keep: keep, ACL: b.access.ACL, AnyACL: b.access.AnyACL}
}

// run is attempt.Run for what uses the barrier's node, unless that or one above it grants more than it is to.
func run[T any](ctx context.Context, b *base, try func(*zk.Session) (T, error)) (T, error) {
	return attempt.Run(ctx, b.client, func(sess *zk.Session) (got T, err error) {
		if err = b.access.Check(ctx, sess, b.path); err != nil {
			return got, err
		}
		return try(sess)
	})
}

// node is a node of ours.
func (b *base) node(path string, data []byte, mode zk.Mode) zk.Node {
	return zk.Node{Path: path, Data: data, Mode: mode, ACL: b.access.ACL}
}

// exist asks which of the named nodes are there, with their metadata.
func exist(
	ctx context.Context, sess *zk.Session, names []string, path func(name string) string,
) ([]zk.Existence, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = path(name)
	}
	return attempt.Ask(ctx, sess, func() ([]zk.Existence, error) {
		there := make([]zk.Existence, 0, len(paths))
		for _, look := range attempt.Each(sess, paths, (*zk.Batch).Exists) {
			e, err := look.Get(ctx)
			if err != nil {
				return nil, err
			}
			there = append(there, e)
		}
		return there, nil
	})
}

// Barrier is a node that is there while the barrier is up. Any number of processes may set it, remove it and wait for
// its removal, among them programs that use Curator's DistributedBarrier or kazoo's Barrier. Its methods may be called
// from any goroutine.
type Barrier struct{ base }

// NewBarrier returns the barrier at path, which no other recipe may use. It does not contact the server. It returns an
// error if the path or the configuration is invalid.
func NewBarrier(client *zk.Client, path string, cfg Config) (*Barrier, error) {
	base, err := newBase(client, path, cfg.Label, cfg.ACL, cfg.AnyACL)
	if err != nil {
		return nil, err
	}
	return &Barrier{base}, nil
}

// Set puts the barrier up. It is no error if it is up already. The barrier belongs to no session: it stays up until
// Remove is called, even if the caller dies. If Set returns an error, the barrier may or may not be up.
//
// Set changes nothing if the node is another recipe's: it returns zk.NotEmpty if the node has children, and
// zk.NodeExists if it is ephemeral, such as a held lock.Simple.
//
// If there is an empty node that may be another recipe's directory, which servers remove when nothing is below it, Set
// gives it a child, __keep__. Remove deletes that, too; kazoo and Curator cannot.
func (b *Barrier) Set(ctx context.Context) error {
	_, err := run(ctx, &b.base, func(sess *zk.Session) (none struct{}, err error) {
		_, err = sess.CreateNode(ctx, b.node(b.path, b.data, zk.Persistent))
		switch {
		case errors.Is(err, zk.NodeExists):
			err = b.secure(ctx, sess)
		case errors.Is(err, zk.NoNode):
			if err = b.makeParents(ctx, sess); err == nil {
				err = attempt.ErrNotDone
			}
		}
		return none, err
	})
	return b.done(err)
}

// secure makes sure that a barrier which was up already stays up. One that holds data and has never had a child is left
// alone: it was set, perhaps by a Curator program, which cannot remove it if it has a child. Directories hold none.
func (b *Barrier) secure(ctx context.Context, sess *zk.Session) error {
	if err := b.access.Check(ctx, sess, b.path); err != nil {
		return err
	}
	data, stat, err := sess.Get(ctx, b.path)
	if err == nil {
		err = attempt.Lasting(b.path, stat)
	}
	if err == nil && stat.NumChildren > 0 {
		err = b.foreign(ctx, sess)
	}
	if err == nil && (stat.Cversion != 0 || len(data) == 0) {
		err = attempt.Secure(ctx, sess, b.path, b.access.ACL)
	}
	if errors.Is(err, zk.NoNode) {
		return attempt.ErrNotDone // it was removed meanwhile
	}
	return err
}

// foreign returns an error if the node has children other than the one that Set may have given it: Remove could not
// delete it, and should not.
func (b *Barrier) foreign(ctx context.Context, sess *zk.Session) error {
	children, _, err := sess.Children(ctx, b.path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(children, func(name string) bool { return !attempt.IsKeeper(name) }) {
		return foreignChildren(zk.NotEmpty)
	}
	return nil
}

// foreignChildren adds to err what to do about a node that has others' children.
func foreignChildren(err error) error {
	return fmt.Errorf("%w: they are not a barrier's; use a path of its own", err)
}

// makeParents makes what is missing above the barrier.
func (b *Barrier) makeParents(ctx context.Context, sess *zk.Session) error {
	d := b.dirs(attempt.WhileUsed)
	d.Above = true
	return d.Make(ctx, sess, parent(b.path))
}

// Remove takes the barrier down and so lets all who wait go on. It is no error if it is down already. If Remove returns
// an error, the barrier may or may not be up: it is, and nothing was changed, with zk.NotEmpty, if others have made
// nodes below it. It leaves an ephemeral node, as Set does.
func (b *Barrier) Remove(ctx context.Context) error {
	_, err := run(ctx, &b.base, func(sess *zk.Session) (none struct{}, err error) {
		stat, _, err := sess.Exists(ctx, b.path)
		if err == nil {
			err = attempt.Lasting(b.path, stat)
		}
		if err != nil {
			return none, err
		}
		switch err = attempt.DeleteSecured(ctx, sess, b.path, -1); { // a server that lags behind may not know the node
		case errors.Is(err, zk.NoNode):
			err = nil
		case errors.Is(err, zk.NotEmpty):
			err = foreignChildren(err)
		}
		return none, err
	})
	return b.done(err)
}

func (b *Barrier) done(err error) error {
	if err != nil {
		return b.failed(err)
	}
	return nil
}

// Wait waits until the barrier is down, which may be at once. It goes on through lost connections and new sessions. If
// ctx ends first it returns ctx's cause; it returns the client's error if the client is closed or its credentials are
// refused.
//
// A barrier that is removed and set again soon may let some who wait through, and not others.
func (b *Barrier) Wait(ctx context.Context) error {
	_, err := run(ctx, &b.base, func(sess *zk.Session) (none struct{}, err error) {
		seen, err := b.watch(ctx, sess)
		for err == nil && seen.Exists {
			var event zk.Event
			event, err = seen.Watch.Next(ctx)
			seen.Watch.Close()
			if err != nil || event.Type == zk.EventDeleted {
				return none, err
			}
			_, seen.Exists, seen.Watch, err = sess.ExistsW(ctx, b.path)
		}
		if err == nil {
			seen.Watch.Close()
		}
		return none, err
	})
	return b.done(err)
}

// watch tells whether the barrier is up, and watches it. It sees at least what was committed before the call. A sync
// would not do: a leader that was replaced without noticing answers it for its clients. A write gets no answer from it.
func (b *Barrier) watch(ctx context.Context, sess *zk.Session) (zk.WatchedExistence, error) {
	batch := sess.Batch()
	passed, seen := attempt.Fence(batch), batch.ExistsW(b.path)
	batch.Send()
	if err := passed(ctx); err != nil {
		seen.Abandon()
		return zk.WatchedExistence{}, err
	}
	got, err := seen.Get(ctx)
	if err != nil {
		seen.Abandon()
	}
	return got, err
}

// parent returns the path above.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
