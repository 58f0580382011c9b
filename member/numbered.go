package member

// The first creation of a node whose name the server completes with a number.

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// createNumbered creates the node for the first time, under a name with a number. The name begins with a random
// identifier, by which the node is found after a lost reply. Curator recognises the form as its own (CURATOR-190).
func (k *keeper) createNumbered(sess *zk.Session) error {
	n := k.node
	if k.guess != "" {
		if done, err := k.resolve(sess); done || err != nil {
			return err
		}
	}
	if err := n.access.Check(n.ctx, sess, n.Path()); err != nil {
		return err
	}
	want, number := n.latest()
	dir, base := path.Split(n.Path())
	prefix := dir + "_c_" + attempt.NewGUID() + "-" + base
	mode := zk.EphemeralSequential
	if n.cfg.Mode.lasting() {
		mode = zk.PersistentSequential
	}
	created, err := sess.CreateNode(n.ctx, zk.Node{Path: prefix, Data: want, Mode: mode, ACL: n.cfg.ACL})
	switch {
	case err == nil:
		n.named(created.Path)
		k.named, k.have, k.stat, k.set = true, true, created.Stat, number
		return nil
	case errors.Is(err, zk.NoNode):
		return n.makeParents(sess)
	case zk.OutcomeOf(err) == zk.Unknown:
		k.guess = prefix
	}
	return err
}

// resolve finds out what became of a creation of unknown outcome. It returns true if that has made the node, whose name
// is known from then on. If not, another identifier is for the next attempt, and what a partition delivers after that
// is removed in the background.
func (k *keeper) resolve(sess *zk.Session) (bool, error) {
	n := k.node
	found, err := findNumbered(n.ctx, sess, k.guess)
	switch {
	case err != nil:
		return false, err
	case found == "":
		k.forget(sess)
		return false, nil
	}
	n.named(found)
	k.named, k.guess = true, ""
	return true, nil
}

// forget has a node removed that a creation of unknown outcome makes from now on.
func (k *keeper) forget(sess *zk.Session) {
	prefix := k.guess
	k.guess = ""
	if !k.node.cfg.Mode.lasting() {
		attempt.RemoveCreated(sess, attempt.Name{Dir: path.Dir(prefix), Prefix: path.Base(prefix)})
		return
	}
	k.node.shared.retain()
	go func() {
		defer k.node.shared.release()
		sweepNumbered(k.node.client, sess.Timeout(), prefix)
	}()
}

// findNumbered returns the path of the node whose name begins with prefix, which one creation only has used, or "". It
// looks behind a barrier: a creation of the session that was on its way is over by then.
func findNumbered(ctx context.Context, sess *zk.Session, prefix string) (string, error) {
	dir, base := path.Split(prefix)
	b := sess.Batch()
	passed := attempt.Fence(b)
	listed := b.Children(path.Clean(dir))
	b.Send()
	if err := passed(ctx); err != nil {
		listed.Abandon()
		return "", err
	}
	children, err := listed.Get(ctx)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return "", err
	}
	for _, child := range children.Names {
		if strings.HasPrefix(child, base) {
			return dir + child, nil
		}
	}
	return "", nil
}

// sweepNumbered removes a persistent node that a lost creation makes late; see sweep. The session that has asked for it
// may have ended, so the client's next ones look, too.
func sweepNumbered(client *zk.Client, timeout time.Duration, prefix string) {
	for wait := timeout; wait <= 8*timeout; wait *= 2 {
		sess, err := client.Session(context.Background())
		if err != nil {
			return // the client is closed
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-sess.Context().Done(): // the next session looks at once
			timer.Stop()
			if sess, err = client.Session(context.Background()); err != nil {
				return
			}
		}
		if removeNumbered(sess, prefix) {
			return
		}
	}
}

// removeNumbered removes the node whose name begins with prefix, and returns whether there was one. If the session ends
// first it returns false.
func removeNumbered(sess *zk.Session, prefix string) bool {
	for {
		found, err := findNumbered(sess.Context(), sess, prefix)
		if err == nil && found != "" {
			err = attempt.DeleteSecured(sess.Context(), sess, found, -1)
		}
		if err == nil || errors.Is(err, zk.NoNode) {
			return found != ""
		}
		if attempt.Again(sess.Context(), sess, err) != nil {
			return false
		}
	}
}
