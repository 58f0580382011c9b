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

// A trial is what it takes to get the node: one attempt after the other to make it, all with one identifier, so that whichever of them has
// made it, it is ours.
type trial struct {
	*Spot
	sess  *zk.Session
	guid  string
	made  *zk.Future[zk.Created] // the last attempt; nil if none was sent
	doubt bool                   // nobody knows of an attempt before that whether it was done, or still will be
}

// Take makes the node, and waits until it can. Full is called whenever somebody else has it, and ends the attempt with its error if it
// returns one.
//
// If Take returns an error, no node of ours is left behind, or its removal goes on in the background until it is done or the session has
// ended: also if ctx ends or the connection breaks before the answer came, when nobody knows whether the node was made.
func (s *Spot) Take(ctx context.Context, sess *zk.Session, full func() error) (post *Post, err error) {
	a := &trial{Spot: s, sess: sess, guid: NewGUID()}
	defer func() { //nolint:contextcheck // a withdrawal goes on until it is done
		if err != nil && a.made != nil {
			go a.withdraw()
		}
	}()
	for tries := 0; ; {
		b := sess.Batch()
		a.made = b.CreateNode(zk.Node{Path: s.Path, Data: s.Data(a.guid), Mode: zk.Ephemeral, ACL: s.Line.ACL})
		b.Send()
		node, err := a.made.Get(ctx)
		switch {
		case err == nil:
			return a.post(node)
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
			a.doubt = true
		case !errors.Is(err, zk.NodeExists):
			if err := Settle(ctx, a.sess, err); err != nil {
				return nil, err
			}
			continue
		}
		// Somebody has it: it may be us, if an answer was lost.
		node, found, err := a.await(ctx, full)
		if err != nil {
			return nil, err
		}
		if found {
			return a.post(node)
		}
	}
}

// post makes node ours. One that a server gives us is ours only if it belongs to the live session (CURATOR-498, CURATOR-604).
func (a *trial) post(node zk.Created) (*Post, error) {
	if node.Stat.EphemeralOwner != a.sess.ID() {
		return nil, ErrGone
	}
	return &Post{OwnBundle(a.sess, node), a}, nil
}

// await waits until nobody has the node, or finds that we have it.
func (a *trial) await(ctx context.Context, full func() error) (node zk.Created, found bool, err error) {
	for {
		// With getData, which leaves no watch where there is no node (CURATOR-217).
		data, stat, watch, err := a.sess.GetW(ctx, a.Path)
		switch {
		case errors.Is(err, zk.NoNode):
			return node, false, nil
		case err != nil:
			if err := Settle(ctx, a.sess, err); err != nil {
				return node, false, err
			}
			continue
		case stat.EphemeralOwner == a.sess.ID() && a.Ours(data, a.guid):
			watch.Close()
			return zk.Created{Path: a.Path, Stat: stat}, true, nil
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

// withdraw removes what a creation that nobody waits for any more has made, or may have made, or makes later.
func (a *trial) withdraw() {
	if _, err := a.made.Get(context.Background()); err != nil && zk.OutcomeOf(err) == zk.Unknown {
		a.doubt = true
	}
	// Also a creation before the last one may have made it. Who looks behind a barrier sees it, whichever it was.
	_ = a.remove(true, a.carries)
	if a.doubt {
		a.sweep()
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
func (a *trial) carries(d zk.Data) bool { return a.Ours(d.Data, a.guid) }

// sweep removes a node that an attempt of unknown outcome makes after the trial has ended (see lookLater).
func (a *trial) sweep() {
	lookLater(a.sess, func() bool {
		_ = a.remove(true, a.carries)
		return false // there may have been several such attempts
	})
}

// remove removes the node if it is ours. It looks before each attempt, because the answer to a removal may be lost, and the node may be
// the next one's by then. If there is doubt what has become of an earlier request of ours, it looks behind a barrier: a removal that
// was on its way when the connection broke is not applied after that, but for one that a partition holds up as lookLater tells. That one,
// and one that others delete by hand, and others make again, between the look and the removal, may remove the next one's node.
func (a *trial) remove(doubt bool, ours func(zk.Data) bool) error {
	for {
		b := a.sess.Batch()
		passed := func(context.Context) error { return nil }
		if doubt {
			passed = Barrier(b, a.Path)
		}
		seen := b.Get(a.Path)
		b.Send()
		err := passed(context.Background())
		node, seenErr := seen.Get(context.Background())
		switch {
		case a.sess.Err() != nil:
			return nil //nolint:nilerr // an ephemeral node ends with its session
		case err == nil && errors.Is(seenErr, zk.NoNode):
			return nil
		case err == nil && seenErr == nil:
			if node.Stat.EphemeralOwner != a.sess.ID() || !ours(node) {
				return nil
			}
			err = a.sess.Delete(context.Background(), a.Path, node.Stat.Version)
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
			_ = pause(context.Background(), a.sess)
		}
		doubt = true
	}
}
