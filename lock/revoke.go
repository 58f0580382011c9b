package lock

// Asking a holder to release a lock.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// ErrKept is what Revoke returns when a holder kept the lock past the grace and was not to be forced.
var ErrKept = errors.New("the holder has not released the lock")

// defaultGrace is RevokeOptions.Grace if that is zero.
const defaultGrace = 10 * time.Second

// RevokeOptions say how Revoke asks. The zero value asks every holder, waits for ten seconds and forces no holder.
type RevokeOptions struct {
	Reason string        // for the holder and the record; UTF-8 of at most 1,024 bytes
	Label  string        // of the client that asks, next to its host and process
	Grace  time.Duration // how long holders have to release the lock; 10s if zero

	// Force deletes the nodes of holders that have not released the lock within the grace. Another contender gets it
	// then although they may still be working: tokens and guards tell them apart, and Config.Delay gives them time.
	Force bool

	// Holder selects the holders to ask, of a lock with several (readers, permits). It is also called with contenders
	// that may hold the lock (Contender.MayHold). If it is nil, all holders are asked.
	Holder func(Contender) bool

	// Record keeps a record of the revocation next to the path, for Revocations: before the holders are asked, and
	// again at the end.
	Record bool

	// ACL is that of the record's node, if this is the path's first revocation with a record; open to everyone if
	// nil. It must let the revoking clients read and write, because they write the record twice.
	ACL []zk.ACL

	_ struct{}
}

// Ending is what became of a holder that was asked to release its lock.
type Ending string

// The endings.
const (
	EndingReleased Ending = "released" // it released the lock, or its session ended
	EndingForced   Ending = "forced"   // Revoke deleted its node
	EndingKept     Ending = "kept"     // it still has the lock
)

// Revoked is a holder that was asked to release its lock, and what became of it.
type Revoked struct {
	Holder Contender // as it was before
	Ending Ending
}

// Revoke asks the holders of the lock at path to release it, waits for the grace, and then deletes the nodes of those
// that still hold it if Force is set. It returns the holders that it asked and what became of each, or none if the
// lock is free.
//
// A holder of this package learns of the request through its hold's context, with a *RevokedError, or through
// Config.OnRevoke; Curator's holders learn of it if they are revocable. Revoke writes Curator's request into the
// nodes of Curator's InterProcessMutex and of go-zookeeper's Lock, which have the same names, and leaves other
// programs' nodes as they are. All but revocable ones give way to force alone: kazoo's, go-zookeeper's, other
// programs' readers, permits and simple locks. What holds several nodes, such as a Set, ends with any of them. A
// holder that leaves is never mistaken for the next one, and one that is upgraded or downgraded meanwhile is followed
// to its new node, and asked again there.
//
// Revoke returns ErrKept if a holder still has the lock. If ctx ends first, it returns ctx's cause: holders that were
// asked stay asked, and none is forced. It returns the server's error if access is denied: asking takes the right to
// write a holder's node, force the right to delete children of path. Lost connections and sessions are retried.
func Revoke(ctx context.Context, client *zk.Client, path string, opts RevokeOptions) ([]Revoked, error) {
	err := cmp.Or(attempt.Args("lock", client, path, nil), checkReason(opts.Reason), checkReason(opts.Label))
	if err == nil && opts.Grace < 0 {
		err = attempt.Bad("lock: Grace must not be negative: %v", opts.Grace)
	}
	if err != nil {
		return nil, err
	}
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	r := revoker{client: client, path: path, opts: opts}
	r.request = Revocation{By: Owner(line.ThisProcess(opts.Label)), Reason: opts.Reason, At: time.Now()}
	revoked, err := r.revoke(ctx)
	if err != nil && !errors.Is(err, ErrKept) {
		err = fmt.Errorf("lock: revoke %s: %w", path, attempt.Explain(client, err))
	}
	return revoked, err
}

// revoker is one call of Revoke.
type revoker struct {
	client  *zk.Client
	path    string
	opts    RevokeOptions
	request Revocation
	synced  *zk.Session // whose server shows at least what the holders were found by
}

func (r *revoker) revoke(ctx context.Context) (list []Revoked, err error) {
	contenders, err := attempt.Run(ctx, r.client, func(sess *zk.Session) ([]Contender, error) {
		if err := r.sync(ctx, sess); err != nil {
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
		defer func() {
			ctx, cancel := longer(ctx, defaultGrace) // it tells others what was done
			defer cancel()
			err = errors.Join(err, entry.keep(ctx, r.client, r.path, list))
		}()
	}
	holders := make([]*holder, len(list))
	for i := range list {
		holders[i] = &holder{Revoked: &list[i], now: list[i].Holder}
		if err := r.each(ctx, holders[i], func(*zk.Session) (bool, error) { return false, nil }); err != nil {
			return list, err
		}
	}
	grace, stop := context.WithTimeoutCause(ctx, r.opts.Grace, ErrKept)
	defer stop()
	for _, h := range holders {
		if err := r.await(grace, h); err != nil && !errors.Is(err, ErrKept) {
			return list, err
		}
	}
	kept := error(nil)
	for _, h := range holders {
		if h.Ending != EndingKept {
			continue
		}
		if err := r.finish(ctx, h); err != nil {
			return list, err
		}
		if h.Ending == EndingKept {
			kept = ErrKept
		}
	}
	return list, kept
}

// sync has the session's server catch up, once. The server of a new session may be behind, and what it does not show
// yet would be taken for gone.
func (r *revoker) sync(ctx context.Context, sess *zk.Session) error {
	if sess == r.synced {
		return nil
	}
	err := sess.Sync(ctx, r.path)
	if err == nil {
		r.synced = sess
	}
	return err
}

// holder is a holder that is asked, wherever its lock goes on.
type holder struct {
	*Revoked
	now   Contender // its node is another one after an upgrade or a downgrade
	asked bool      // at that node
}

// each asks the holder, unless that was done, and runs try, under the live session, until there is an answer. If the
// holder's node has gone, each follows it to the next one, and begins there. Everything that Revoke does to a node can
// be done twice.
func (r *revoker) each(ctx context.Context, h *holder, try func(*zk.Session) (gone bool, err error)) error {
	gone, err := attempt.Run(ctx, r.client, func(sess *zk.Session) (bool, error) {
		if err := r.sync(ctx, sess); err != nil {
			return false, err
		}
		for {
			gone, err := false, error(nil)
			if !h.asked {
				gone, err = r.ask(ctx, sess, h)
			}
			if !gone && err == nil {
				gone, err = try(sess)
			}
			if errors.Is(err, zk.NoNode) {
				gone, err = true, nil
			}
			if err != nil || !gone {
				return false, err
			}
			if moved, err := r.follow(ctx, sess, h); err != nil || !moved {
				return err == nil, err
			}
		}
	})
	if gone && h.Ending == EndingKept {
		h.Ending = EndingReleased
	}
	return err
}

// follow finds the node to which a holder of an RWMutex has gone on, by Upgrade or Downgrade: that has the number of
// the one that is gone, and the session. No other contender has both, as long as the path's node is the one that
// counted them. The new node is there before the old one goes.
func (r *revoker) follow(ctx context.Context, sess *zk.Session, h *holder) (moved bool, err error) {
	was, ok := line.ParseContender(stdpath.Base(h.now.Path), line.Locks)
	if !ok || !unsteady(was) || h.now.Kind == Permit {
		return false, nil
	}
	children, stat, err := sess.Children(ctx, r.path)
	if err != nil || stat.Czxid > h.now.czxid {
		return false, ignoreNoNode(err) // the path may have gone, too
	}
	var names []string
	list, second := line.Fold(line.Contenders(children, line.Locks))
	for _, c := range list {
		if c.Seq == was.Seq {
			names = append(names, c.Name)
			if two, ok := second[c.Name]; ok {
				names = append(names, two)
			}
		}
	}
	found, err := describe(ctx, sess, r.path, names, line.Locks)
	for _, c := range found {
		if c.Session == h.now.Session && c.czxid != h.now.czxid {
			h.now, h.asked, h.Ending = c, false, EndingKept
			return true, nil
		}
	}
	return false, err
}

// another reports whether a node with the holder's name is another contender's: kazoo's names can come again, when the
// numbers of a directory begin anew.
func (h *holder) another(s zk.Stat) bool { return s.Czxid != h.now.czxid }

// ask writes the request into the node of a holder that may look for it.
func (r *revoker) ask(ctx context.Context, sess *zk.Session, h *holder) (gone bool, err error) {
	for h.now.hears() {
		data, stat, err := sess.Get(ctx, h.now.Path)
		if err != nil || h.another(stat) {
			return err == nil, err
		}
		request := withRequest(data, &r.request, &h.now)
		if len(request) > attempt.MaxData(0, h.now.Path, nil) {
			break // it cannot be told: others have written its data
		}
		_, err = sess.Set(ctx, h.now.Path, request, stat.Version)
		if err == nil {
			break
		}
		if !errors.Is(err, zk.BadVersion) { // another client asked as well, or only our answer was lost
			return false, err
		}
	}
	h.asked = true
	return false, nil
}

// nodes are the paths of the holder's nodes. Those of one that has two were made by one transaction.
func (h *holder) nodes() []string {
	if h.now.Second == "" {
		return []string{h.now.Path}
	}
	return []string{h.now.Path, h.now.Second}
}

// await waits until the holder's nodes have gone.
func (r *revoker) await(ctx context.Context, h *holder) error {
	if h.Ending != EndingKept || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.each(ctx, h, func(sess *zk.Session) (bool, error) {
		for _, node := range h.nodes() {
			if err := h.awaitNode(ctx, sess, node); err != nil && !errors.Is(err, zk.NoNode) {
				return false, err
			}
		}
		return true, nil
	})
}

// awaitNode waits until a node of the holder's has gone. It may return zk.NoNode then.
func (h *holder) awaitNode(ctx context.Context, sess *zk.Session, node string) error {
	for {
		_, stat, watch, err := sess.GetW(ctx, node)
		if err != nil {
			return err
		}
		if h.another(stat) {
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

// finish looks for the nodes of a holder that was waited for, and deletes those that are there, in one transaction, if
// Force is set.
func (r *revoker) finish(ctx context.Context, h *holder) error {
	return r.each(ctx, h, func(sess *zk.Session) (bool, error) {
		for {
			ops, err := h.deletions(ctx, sess)
			if err != nil || len(ops) == 0 || !r.opts.Force {
				return err == nil && len(ops) == 0, err
			}
			h.Ending = EndingForced // also if the answer is lost
			_, err = sess.Multi(ctx, ops...)
			if err == nil || zk.OutcomeOf(err) != zk.Refused {
				return err == nil, err
			}
			h.Ending = EndingKept // nothing was deleted
			if !errors.Is(err, zk.NoNode) && !errors.Is(err, zk.BadVersion) {
				return false, err
			}
			// Another client has deleted or written a node since we looked.
		}
	})
}

// deletions returns the operations that delete the holder's nodes, as they are now.
func (h *holder) deletions(ctx context.Context, sess *zk.Session) ([]zk.Op, error) {
	var ops []zk.Op
	for _, node := range h.nodes() {
		stat, exists, err := sess.Exists(ctx, node)
		if err != nil {
			return nil, err
		}
		if exists && !h.another(stat) {
			ops = append(ops, zk.DeleteOp(node, stat.Version))
		}
	}
	return ops, nil
}

// longer returns a context that ends some time after ctx.
func longer(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return after, func() {
		stop()
		cancel()
	}
}
