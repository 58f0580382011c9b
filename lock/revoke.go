package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// ErrKept is Revoke's answer when a holder kept the lock past the grace and was not to be forced.
var ErrKept = errors.New("lock: the holder has not given the lock up")

// defaultGrace is RevokeOptions.Grace if that is zero.
const defaultGrace = 10 * time.Second

// RevokeOptions say how Revoke asks. The zero value asks every holder, waits for ten seconds and forces nobody.
type RevokeOptions struct {
	Reason string        // why, for the holder and the record; UTF-8 of at most 1,024 bytes
	Label  string        // who asks, beside the host and the process
	Grace  time.Duration // how long holders have to give the lock up; 10s if zero

	// Force deletes the nodes of holders that have not given the lock up within the grace. Then somebody else has it although they may
	// still be at work: tokens and guards tell them apart, and Config.Delay gives them time.
	Force bool

	// Holder says which of the holders to ask, where several hold the lock at a time: readers, permits. It is asked
	// about those that may hold the lock, too (Contender.MayHold). If it is nil, all are asked that do hold it.
	Holder func(Contender) bool

	// Record keeps a record of the revocation beside the path, for Revocations: before anybody is asked, and again when it is over.
	Record bool

	// ACL is that of the record's node, if this is the first revocation at the path that leaves one; open to everybody if it is nil.
	// It must let whoever revokes read and write: the record is written again when the revocation is over.
	ACL []zk.ACL

	_ struct{}
}

// Ending is what became of a holder that was asked to give its lock up.
type Ending string

// The endings.
const (
	EndingReleased Ending = "released" // its node has gone, by its own doing or with its session
	EndingForced   Ending = "forced"   // its node was deleted by Revoke
	EndingKept     Ending = "kept"     // it has the lock still
)

// Revoked is a holder that was asked to give its lock up, and what became of it.
type Revoked struct {
	Holder Contender // as it was before it was asked
	Ending Ending
}

// Revoke asks who holds the lock at path to give it up, waits until they have, for as long as the grace lasts, and then deletes their nodes
// if it is to use force. It returns the holders that it asked, and what became of each; none if nobody holds the lock.
//
// A holder of this package is told by its hold's context, with a *RevokedError that carries the reason, or by
// Config.OnRevoke; of Curator's, those that are revocable hear of it: their nodes, and go-zookeeper's, which have the
// same names, are overwritten with Curator's word for it. All others give way to force alone, and their nodes are
// left as they are: kazoo's, readers and permits of others, simple locks by other clients. What holds several nodes,
// a Set say, ends with any of them. A holder that leaves is never mistaken for the one that comes after it.
//
// It returns ErrKept if a holder has the lock still. If ctx ends first it returns ctx's cause: who was asked stays asked, and nobody is
// forced. What the server refuses comes back as it is: to ask takes the right to write a holder's node, to force that to delete
// children of path. Lost connections and sessions are seen to.
func Revoke(ctx context.Context, client *zk.Client, path string, opts RevokeOptions) ([]Revoked, error) {
	err := cmp.Or(ValidatePath(path), checkReason(opts.Reason), checkReason(opts.Label))
	if err == nil && opts.Grace < 0 {
		err = fmt.Errorf("lock: a grace of %v is negative; leave it zero for %v", opts.Grace, defaultGrace)
	}
	if err != nil {
		return nil, err
	}
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	r := revoker{client: client, path: path, opts: opts}
	r.request = Revocation{By: thisProcess(opts.Label), Reason: opts.Reason, At: time.Now()}
	revoked, err := r.revoke(ctx)
	if err != nil && !errors.Is(err, ErrKept) {
		err = fmt.Errorf("lock: revoke %s: %w", path, line.Explain(client, err))
	}
	return revoked, err
}

// revoker is one call of Revoke.
type revoker struct {
	client  *zk.Client
	path    string
	opts    RevokeOptions
	request Revocation
}

func (r *revoker) revoke(ctx context.Context) (list []Revoked, err error) {
	contenders, err := line.Attempt(ctx, r.client, func(sess *zk.Session) ([]Contender, error) {
		if err := sess.Sync(ctx, r.path); err != nil { // the server that we happen to be connected to may be behind
			return nil, err
		}
		return inspect(ctx, sess, r.path)
	})
	if err != nil {
		return nil, err
	}
	for _, c := range contenders {
		if r.opts.Holder == nil && c.Holder || r.opts.Holder != nil && (c.Holder || c.MayHold) && r.opts.Holder(c) {
			list = append(list, Revoked{c, EndingKept})
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if r.opts.Record {
		entry := newRecord(r.request, r.opts)
		if err := entry.keep(ctx, r.client, r.path, list); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, entry.keep(context.WithoutCancel(ctx), r.client, r.path, list)) }()
	}
	for i := range list {
		if err := r.ask(ctx, &list[i]); err != nil {
			return list, err
		}
	}
	grace, stop := context.WithTimeoutCause(ctx, r.opts.Grace, ErrKept)
	defer stop()
	for i := range list {
		if err := r.await(grace, &list[i]); err != nil && !errors.Is(err, ErrKept) {
			return list, err
		}
	}
	return list, r.enforce(ctx, list)
}

// enforce sees to those who kept the lock.
func (r *revoker) enforce(ctx context.Context, list []Revoked) error {
	var kept error
	for i := range list {
		who := &list[i]
		if who.Ending != EndingKept {
			continue
		}
		if !r.opts.Force {
			kept = ErrKept
			continue
		}
		if err := r.force(ctx, who); err != nil {
			return err
		}
	}
	return kept
}

// each runs try under the live session until it has an answer, for one holder. Everything that Revoke does to a node can be done twice.
func (r *revoker) each(ctx context.Context, who *Revoked, try func(*zk.Session) (gone bool, err error)) error {
	gone, err := line.Attempt(ctx, r.client, try)
	if errors.Is(err, zk.NoNode) {
		gone, err = true, nil
	}
	if gone && who.Ending == EndingKept {
		who.Ending = EndingReleased
	}
	return err
}

// another reports whether a node of the holder's name is that of somebody else: names of kazoo's can come again, when the numbers of a
// directory begin anew.
func (who *Revoked) another(s zk.Stat) bool { return s.Czxid != who.Holder.czxid() }

// ask writes the request into the node of a holder that may look for it.
func (r *revoker) ask(ctx context.Context, who *Revoked) error {
	if !who.Holder.hears() {
		return nil
	}
	return r.each(ctx, who, func(sess *zk.Session) (bool, error) {
		for {
			data, stat, err := sess.Get(ctx, who.Holder.Path)
			if err != nil || who.another(stat) {
				return err == nil, err
			}
			_, err = sess.Set(ctx, who.Holder.Path, r.request.request(data, &who.Holder), stat.Version)
			if !errors.Is(err, zk.BadVersion) { // by others, who ask as well, or by us, if only the answer was lost
				return false, err
			}
		}
	})
}

// nodes are the paths of the holder's nodes. Those of one that has two were made by one transaction.
func (who *Revoked) nodes() []string {
	if who.Holder.Second == "" {
		return []string{who.Holder.Path}
	}
	return []string{who.Holder.Path, who.Holder.Second}
}

// await waits until the holder's nodes have gone.
func (r *revoker) await(ctx context.Context, who *Revoked) error {
	if who.Ending != EndingKept || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.each(ctx, who, func(sess *zk.Session) (bool, error) {
		for _, node := range who.nodes() {
			if err := who.awaitNode(ctx, sess, node); err != nil && !errors.Is(err, zk.NoNode) {
				return false, err
			}
		}
		return true, nil
	})
}

// awaitNode waits until a node of the holder's has gone. It may return zk.NoNode then.
func (who *Revoked) awaitNode(ctx context.Context, sess *zk.Session, node string) error {
	for {
		_, stat, watch, err := sess.GetW(ctx, node)
		if err != nil {
			return err
		}
		if who.another(stat) {
			watch.Close()
			return nil
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return err
		}
	}
}

// force deletes the holder's nodes that are there, in one transaction.
func (r *revoker) force(ctx context.Context, who *Revoked) error {
	return r.each(ctx, who, func(sess *zk.Session) (bool, error) {
		for {
			ops, err := who.deletions(ctx, sess)
			if err != nil || len(ops) == 0 {
				return err == nil, err
			}
			who.Ending = EndingForced // also if the answer is lost
			_, err = sess.Multi(ctx, ops...)
			if err == nil || zk.OutcomeOf(err) != zk.Refused {
				return err == nil, err
			}
			who.Ending = EndingKept // nothing was deleted
			if !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.BadVersion) {
				return false, err
			}
			// Somebody has deleted or written a node since we looked.
		}
	})
}

// deletions returns the operations that delete the holder's nodes, as they are now.
func (who *Revoked) deletions(ctx context.Context, sess *zk.Session) ([]zk.Op, error) {
	var ops []zk.Op
	for _, node := range who.nodes() {
		stat, exists, err := sess.Exists(ctx, node)
		if err != nil {
			return nil, err
		}
		if exists && !who.another(stat) {
			ops = append(ops, zk.DeleteOp(node, stat.Version))
		}
	}
	return ops, nil
}
