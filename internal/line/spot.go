package line

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Spot is one node that all who want it try to make, and all watch: there is no line, and whoever is quickest has it.
//
// All its nodes have one name, so that neither a name nor a number tells whose the node is. What tells it is the random identifier in its
// data together with the session that it belongs to, and after that the transaction that has made it.
type Spot struct {
	Line *Line                               // the parent's; for its parents and ACL
	Path string                              // of the node
	Data func(guid string) []byte            // what a new node carries
	Ours func(data []byte, guid string) bool // whether it carries that identifier
}

// A Post is our node at a Spot. It is what a Bundle of one node is, but for its removal.
type Post struct {
	*Bundle
	trial *trial
}

// A trial is what it takes to get the node: one attempt after the other to make it, all with one identifier, so that
// the node is ours whichever of them has made it.
type trial struct {
	*Spot
	sess  *zk.Session
	guid  string
	made  *zk.Future[zk.Created] // the last attempt; nil if none was sent
	doubt bool                   // an attempt may have been done, or be done later, without an answer to us
}

// Take makes the node, and waits until it can. Full is called whenever somebody else has it, and ends the attempt with its error if it
// returns one.
//
// If Take returns an error, no node of ours is left behind, or its removal goes on in the background until it is done or the session has
// ended: also if ctx ends or the connection breaks before the answer came, when nobody knows whether the node was made.
func (s *Spot) Take(ctx context.Context, sess *zk.Session, full func() error) (post *Post, err error) {
	t := &trial{Spot: s, sess: sess, guid: NewGUID()}
	defer func() { //nolint:contextcheck // a withdrawal goes on until it is done
		if err != nil && t.made != nil {
			go t.withdraw()
		}
	}()
	for tries := 0; ; {
		b := sess.Batch()
		t.made = b.CreateNode(zk.Node{Path: s.Path, Data: s.Data(t.guid), Mode: zk.Ephemeral, ACL: s.Line.ACL})
		b.Send()
		node, err := t.made.Get(ctx)
		switch {
		case err == nil:
			return t.post(node)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case sess.Err() != nil:
			return nil, sess.Err()
		case errors.Is(err, zk.NoNode):
			if tries++; tries > maxTries {
				return nil, fmt.Errorf("line: the parents of %s vanish as often as they are made: %w", s.Path, err)
			}
			if err := s.Line.MakeDir(ctx, sess); err != nil {
				return nil, err
			}
			continue
		case zk.OutcomeOf(err) == zk.Unknown:
			t.doubt = true
		case !errors.Is(err, zk.NodeExists):
			if err := Settle(ctx, t.sess, err); err != nil {
				return nil, err
			}
			continue
		}
		// Somebody has it: it may be us, if an answer was lost.
		node, found, err := t.await(ctx, full)
		if err != nil {
			return nil, err
		}
		if found {
			return t.post(node)
		}
	}
}

// post makes node ours. One that a server gives us is ours only if it belongs to the live session (CURATOR-498, CURATOR-604).
func (t *trial) post(node zk.Created) (*Post, error) {
	if node.Stat.EphemeralOwner != t.sess.ID() {
		return nil, ErrGone
	}
	return &Post{OwnBundle(t.sess, node), t}, nil
}

// await waits until nobody has the node, or finds that we have it.
func (t *trial) await(ctx context.Context, full func() error) (node zk.Created, found bool, err error) {
	for {
		// With getData, which leaves no watch where there is no node (CURATOR-217).
		data, stat, watch, err := t.sess.GetW(ctx, t.Path)
		switch {
		case errors.Is(err, zk.NoNode):
			return node, false, nil
		case err != nil:
			if err := Settle(ctx, t.sess, err); err != nil {
				return node, false, err
			}
			continue
		case stat.EphemeralOwner == t.sess.ID() && t.Ours(data, t.guid):
			watch.Close()
			return zk.Created{Path: t.Path, Stat: stat}, true, nil
		}
		if err := full(); err != nil {
			watch.Close()
			return node, false, err
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return node, false, err
		}
	}
}

// withdraw ends a trial that has failed: it removes what the attempts have made, may have made, or make later.
func (t *trial) withdraw() {
	if _, err := t.made.Get(context.Background()); err != nil && zk.OutcomeOf(err) == zk.Unknown {
		t.doubt = true
	}
	// Also a creation before the last one may have made it. Who looks behind a barrier sees it, whichever it was.
	_ = t.remove(true, t.carries)
	if t.doubt {
		t.sweep()
	}
}

// Leave removes our node, in the background, until it is done or the session has ended.
func (p *Post) Leave() *Removal {
	p.Retire()
	czxid := p.Stat().Czxid
	r := RemoveBy(func() error {
		return p.trial.remove(false, func(d zk.Data) bool { return d.Stat.Czxid == czxid })
	})
	if p.trial.doubt {
		go func() {
			_ = r.Wait(context.Background())
			p.trial.sweep()
		}()
	}
	return r
}

// carries reports whether the node is by an attempt of this trial.
func (t *trial) carries(d zk.Data) bool { return t.Ours(d.Data, t.guid) }

// sweep removes a node that an attempt of unknown outcome makes after the trial has ended (see lookLater).
func (t *trial) sweep() {
	lookLater(t.sess, func() bool {
		_ = t.remove(true, t.carries)
		return false // there may have been several such attempts
	})
}

// remove removes the node if it is ours. It looks before each attempt, because the answer to a removal may be lost, and the node may be
// the next one's by then. If there is doubt what has become of an earlier request of ours, it looks behind a barrier: a removal that
// was on its way when the connection broke is not applied after that, unless a partition holds it up as lookLater tells.
// A removal that is held up may remove the next holder's node. So may one that comes after others have deleted the node
// by hand, between the look and the removal, and the next holder has made it again.
func (t *trial) remove(doubt bool, ours func(zk.Data) bool) error {
	for {
		b := t.sess.Batch()
		passed := func(context.Context) error { return nil }
		if doubt {
			passed = Barrier(b, t.Path)
		}
		seen := b.Get(t.Path)
		b.Send()
		err := passed(context.Background())
		node, seenErr := seen.Get(context.Background())
		switch {
		case t.sess.Err() != nil:
			return nil //nolint:nilerr // an ephemeral node ends with its session
		case err == nil && errors.Is(seenErr, zk.NoNode):
			return nil
		case err == nil && seenErr == nil:
			if node.Stat.EphemeralOwner != t.sess.ID() || !ours(node) {
				return nil
			}
			err = t.sess.Delete(context.Background(), t.Path, node.Stat.Version)
			if err == nil || errors.Is(err, zk.NoNode) {
				return nil
			}
		case err == nil:
			err = seenErr
		}
		switch {
		case errors.Is(err, zk.NoAuth), errors.Is(err, zk.BadArguments):
			return err
		case zk.OutcomeOf(err) == zk.Refused && !errors.Is(err, zk.BadVersion):
			_ = pause(context.Background(), t.sess)
		}
		doubt = true
	}
}
