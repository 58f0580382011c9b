package barrier

// How a party comes to a double barrier, and finds out whether it has.

import (
	"context"
	"errors"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// An entrant is a party that has come, or is about to.
type entrant struct {
	double  *Double
	sess    *zk.Session
	version int32 // of the barrier's node, without which the entrant's node is not created
	open    int64 // the czxid of the ready node, if the barrier was open before the entrant came; 0 if it was not
	name    nodeName
	czxid   int64            // of its node
	unsure  bool             // a creation without a reply may still make the node
	leader  nodeName         // of a party that comes again: the member that it expects to be the lowest
	news    *news            // of a party that comes again; or nil
	overdue bool             // the barrier should have been opened by another
	pending *look            // asked for in one write with the creation; nil if it was used
	removal *attempt.Removal // of its node, after withdraw; or nil

	changed <-chan struct{} // closed if the connection has changed since the last look
}

func (e *entrant) path() string { return e.double.path + "/" + e.name.String() }

// come creates the entrant's node. If it returns an error there is none, or its removal goes on in the background.
//
// The creation is done only while the barrier's node has the version that it had before. So once any client has written
// to that node, a creation whose reply is lost was done or never will be, however late it arrives, as long as the
// barrier's node is the same. But that is a container: the server may remove it, and others make it anew, with the
// version that it had. So the party comes again under the same name. Whatever arrives late, it never counts twice: of
// two creations of one name one is refused.
func (e *entrant) come(ctx context.Context) error {
	d := e.double
	_, e.changed = e.sess.State()
	b := e.sess.Batch()
	made := b.Multi(zk.CheckOp(d.path, e.version), zk.CreateNodeOp(d.node(e.path(), d.data, zk.Ephemeral)))
	if e.news == nil {
		e.pending = e.look(b)
	}
	b.Send()
	results, err := made.Get(ctx)
	if err == nil {
		e.czxid = results[1].Zxid
		return nil
	}
	if e.pending != nil {
		e.pending.abandon()
		e.pending = nil
	}
	switch {
	case errors.Is(err, zk.NodeExists):
		return e.recognize(ctx)
	case zk.OutcomeOf(err) != zk.Unknown:
		if errors.Is(err, zk.BadVersion) || errors.Is(err, zk.NoNode) {
			return errAgain
		}
		return err
	case e.sess.Err() != nil:
		return e.sess.Err()
	}
	e.unsure = true
	e.czxid, err = e.settle(ctx, e.sess)
	if err == nil && e.czxid == 0 {
		return errAgain
	}
	return err
}

// recognize takes the node that there is already for the entrant's: an earlier creation has made it late. If that
// belongs to an earlier session, the node is removed, and the party comes under a new name.
func (e *entrant) recognize(ctx context.Context) error {
	stat, exists, err := e.sess.Exists(ctx, e.path())
	switch {
	case err != nil:
		return err
	case exists && stat.EphemeralOwner == e.sess.ID():
		e.czxid, e.unsure = stat.Czxid, false
		return nil
	case exists:
		e.withdraw()
	}
	return errAgain
}

// settle finds out whether a creation without a reply was done, and makes sure that it is not done any more if not, for
// as long as the barrier's node is the same and the party may write to it. It asks under the entrant's session or a
// later one. It returns the node's czxid, or 0 if there is none.
func (e *entrant) settle(ctx context.Context, sess *zk.Session) (czxid int64, err error) {
	d := e.double
	return attempt.Ask(ctx, sess, func() (int64, error) {
		b := sess.Batch()
		passed, dir := attempt.Fence(b), b.Get(d.path)
		b.Send()
		if err := passed(ctx); err != nil {
			return 0, err
		}
		now, err := dir.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if now.Stat.Version == e.version {
			_, err := sess.Set(ctx, d.path, now.Data, e.version)
			if err != nil && !changed(err) && !errors.Is(err, zk.NoAuth) {
				return 0, err
			}
		}
		stat, exists, err := sess.Exists(ctx, e.path())
		if !exists || stat.EphemeralOwner != e.sess.ID() {
			return 0, err
		}
		return stat.Czxid, err
	})
}

// settleLater removes the node of a creation without a reply, in the background.
func (e *entrant) settleLater() {
	attempt.RemoveBy(func() error {
		ctx := e.sess.Context()
		czxid, err := e.settle(ctx, e.sess)
		switch {
		case e.sess.Err() != nil:
			return nil //nolint:nilerr // the node ends with its session
		case czxid != 0:
			return attempt.Remove(e.sess, e.path()).Wait(ctx)
		default: // it may be done late
			attempt.RemoveCreated(e.sess, attempt.Name{Dir: e.double.path, Prefix: e.name.String()})
		}
		return err
	})
}

// withdraw removes the entrant's node, in the background.
func (e *entrant) withdraw() { e.removal = attempt.Remove(e.sess, e.path()) }

// takeBack makes sure that an entrant whose party comes again does not count any more, or the party would count twice.
// It returns the name to come again with, if the entrant's node may still be created late. The party may come again
// under another session: the server may keep the first one, with its node, for longer than the client does.
func (e *entrant) takeBack(ctx context.Context, sess *zk.Session) (name nodeName, err error) {
	switch {
	case e.name == nodeName{}: // it has not come
		return name, nil
	case e.removal != nil && e.sess == sess:
		return name, e.removal.Wait(ctx)
	case e.sess == sess: // its node was not created
		return e.name, nil
	}
	if e.czxid == 0 && e.removal == nil {
		czxid, err := e.settle(ctx, sess)
		if err != nil || czxid == 0 {
			return e.name, err
		}
	}
	_, err = attempt.Ask(ctx, sess, func() (none struct{}, err error) {
		if err := sess.Delete(ctx, e.path(), -1); !errors.Is(err, zk.NoNode) {
			return none, err
		}
		return none, nil
	})
	return name, err
}
