package member

// What a keeper does when its Node is closed: it removes the node.

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// leftover reports whether a node may be there that the end of the Node is to remove.
func (k *keeper) leftover() bool {
	n := k.node
	n.mu.Lock()
	stays := n.stays
	n.mu.Unlock()
	return !stays && n.cfg.TTL == 0 && (k.have || k.unsure || k.guess != "")
}

// leave removes the node, unless another Node of the client keeps it.
func (k *keeper) leave(sess *zk.Session) {
	n := k.node
	if !k.leftover() {
		n.report(0, ErrClosed)
		return
	}
	err := n.shared.remove(func() error { return k.clear(sess) })
	if err != nil {
		n.report(0, err)
		return
	}
	n.report(0, ErrClosed)
	k.left = true
	if k.unsure && n.cfg.Mode != Persistent {
		n.shared.retain()
		go func() {
			defer n.shared.release()
			k.sweep(sess)
		}()
	}
}

// clear removes the node under the session, and a lasting one under the next if need be. It repeats that until it is
// done, the node has ended with the session, or the server refuses.
func (k *keeper) clear(sess *zk.Session) error {
	for {
		err := k.remove(sess)
		switch {
		case err == nil:
			return nil
		case sess.Context().Err() != nil:
			if !k.node.cfg.Mode.lasting() {
				return nil // it went with the session
			}
			if sess, err = k.node.client.Session(context.Background()); err != nil {
				return err
			}
		case zk.Temporary(err), zk.OutcomeOf(err) == zk.Unknown:
			_ = attempt.Again(sess.Context(), sess, err)
		default:
			return err
		}
	}
}

// remove deletes the node if it is ours. It looks behind a barrier: a creation that was on its way is over by then.
func (k *keeper) remove(sess *zk.Session) error {
	ctx := sess.Context()
	if k.guess != "" {
		found, err := findNumbered(ctx, sess, k.guess)
		if err != nil {
			return err
		}
		if found == "" {
			k.forget(sess)
			return nil
		}
		k.node.named(found)
		k.named, k.guess = true, ""
	}
	p := k.node.Path()
	b := sess.Batch()
	passed := attempt.Fence(b)
	look := b.Get(p)
	b.Send()
	if err := passed(ctx); err != nil {
		look.Abandon()
		return err
	}
	seen, err := look.Get(ctx)
	others := k.left || k.node.cfg.Mode == Persistent // may be here, made by any program or by the same session
	if err == nil && k.ours(sess, seen.Stat) && (!others || k.made(seen)) {
		err = attempt.DeleteSecured(ctx, sess, p, seen.Stat.Version)
	}
	switch {
	case errors.Is(err, zk.NoNode):
		return nil
	case errors.Is(err, zk.BadVersion): // set meanwhile
		return k.remove(sess)
	}
	return err
}

// made reports whether a node is the one that was kept, or that a creation of unknown outcome has made.
func (k *keeper) made(seen zk.Data) bool {
	if k.have && seen.Stat.Czxid == k.stat.Czxid {
		return true
	}
	return k.unsure && seen.Stat.Version == 0 && bytes.Equal(seen.Data, k.written)
}

// sweep removes a node that a lost creation makes after its Node was closed. That takes a partition; see sweep in
// internal/line, which does the same for nodes whose names are used once. The node of a session that has ended is gone
// with it; a lasting node is looked for by the client's next session, too.
func (k *keeper) sweep(sess *zk.Session) {
	for wait := sess.Timeout(); wait <= 8*sess.Timeout(); wait *= 2 {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sess.Context().Done():
			timer.Stop()
			if !k.node.cfg.Mode.lasting() {
				return
			}
			var err error
			if sess, err = k.node.client.Session(context.Background()); err != nil {
				return // the client is closed
			}
		}
		_ = k.node.shared.remove(func() error { return k.clear(sess) }) // the next look tries again
	}
}
