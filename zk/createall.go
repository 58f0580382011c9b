package zk

// The creation of a node together with its parents.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
)

// Parents says how CreateAll makes parents that are missing. The zero value makes persistent ones with OpenACL.
type Parents struct {
	Mode Mode  // Persistent or Container
	ACL  []ACL // OpenACL if nil

	_ struct{}
}

// maxParentTries bounds how often CreateAll makes parents that vanish again.
const maxParentTries = 10

// CreateAll creates a node as CreateNode does, and its parents if they are missing. It is no error if other clients
// create or delete parents at the same time, or if servers collect those that are containers. It looks for parents from
// the node upwards, so it needs no right to those that exist. If it fails, parents that it has made may stay.
//
// If a reply is lost, CreateAll finds out whether the node is its own: created since the call began, with the same
// data, not changed since. Another client that created the same node with the same data at that time cannot be told
// from it; a caller to whom it matters puts something of its own into the data. If there is no node, CreateAll asks
// again, provided that no child of its parent was created or deleted since: otherwise the node may have been made, and
// deleted by another client. The outcome is Unknown in that case, if the node was changed meanwhile, if the mode is
// sequential, if the server then refuses the request for good, if the request is larger than servers accept by default,
// or if ctx or the session has ended.
func (s *Session) CreateAll(ctx context.Context, n Node, parents Parents) (Created, error) {
	if parents.Mode != Persistent && parents.Mode != Container {
		err := fmt.Errorf("%w: mode of parents must be Persistent or Container", BadArguments)
		return Created{}, refuse(n.Mode.op(), n.Path, err)
	}
	// An ephemeral node is its session's, whose last reply shows what was there before. Of others the ensemble knows.
	fresh := !n.Mode.sequential() && n.Mode != Ephemeral
	var first int64   // a transaction from before the first try whose reply was lost
	var unknown error // of that try: a partition may still deliver it
	vanished := 0
	for tries := 0; ; tries++ {
		seen, err := s.seen(ctx, fresh && tries == 0)
		if err != nil {
			return Created{}, n.failed(unknown, refuse(n.Mode.op(), n.Path, err))
		}
		made, err := s.CreateNode(ctx, n)
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, NoNode):
			if vanished++; vanished > maxParentTries {
				err = fmt.Errorf("%w, although its parents were created %d times", err, maxParentTries)
				return Created{}, n.failed(unknown, err)
			}
			if err := s.createParents(ctx, n, parents); err != nil {
				return Created{}, n.failed(unknown, err)
			}
		case errors.Is(err, NodeExists) && unknown != nil:
			return s.ownNode(ctx, n, first)
		case n.Mode.sequential() && !passes(err) || !s.again(ctx, err, tries):
			return Created{}, n.failed(unknown, err)
		case !passes(err):
			if unknown == nil {
				first, unknown = seen, err
			}
			if made, err = s.resolve(ctx, n, seen, first); !errors.Is(err, errNotDone) {
				return made, err
			}
		}
	}
}

// failed returns the error of a creation that failed with err, after an earlier try that failed with unknown, if not
// nil.
func (n *Node) failed(unknown, err error) error {
	if unknown == nil {
		return err
	}
	if e, ok := errors.AsType[*Error](err); ok {
		err = e.Err
	}
	err = fmt.Errorf("%w; then %w", ErrConnectionLost, err)
	return &Error{Op: opName(n.Mode.op()), Path: n.Path, Err: err, Outcome: Unknown}
}

// errNotDone is resolve's answer if the creation was not done so far.
var errNotDone = errors.New("the node was not created")

// resolve finds out what a creation has done whose reply was lost. Seen is a transaction from before it, and first one
// from before the first of its tries. It returns the node, NodeExists, errNotDone, or an error with outcome Unknown.
//
// It looks behind a write: what was on its way when the connection broke has been done by then, or never will be,
// unless a partition holds it up. That there is no node does not mean that it was not made: unless nothing was created
// or deleted in the lowest of its parents that is there.
func (s *Session) resolve(ctx context.Context, n Node, seen, first int64) (Created, error) {
	for tries := 0; ; tries++ {
		b := s.Batch()
		passed := b.Delete("/__fence-"+rand.Text()+"__/none", -1) // no client makes that node or its parent
		node := b.Exists(n.Path)
		var above []*Future[Existence]
		for dir := parentOf(n.Path); dir != ""; dir = parentOf(dir) {
			above = append(above, b.Exists(dir))
			if dir == "/" {
				break
			}
		}
		b.Send()
		_, err := passed.Get(ctx)
		if errors.Is(err, NoNode) {
			_, err = node.Get(ctx)
		}
		if err == nil {
			var untouched bool
			if e, _ := node.Get(ctx); e.Exists {
				return s.ownNode(ctx, n, first)
			}
			if untouched, err = lowestIsUntouched(ctx, above, seen); err == nil && untouched {
				return Created{}, errNotDone
			}
		}
		switch {
		case err == nil:
			err = errors.New("there is no node, but its directory has been changed")
		case s.again(ctx, err, tries):
			continue
		}
		return Created{}, n.failed(ErrConnectionLost, err)
	}
}

// lowestIsUntouched reports whether the first directory that exists has had no child created or deleted after seen.
func lowestIsUntouched(ctx context.Context, dirs []*Future[Existence], seen int64) (bool, error) {
	for _, f := range dirs {
		dir, err := f.Get(ctx)
		if err != nil || dir.Exists {
			return err == nil && dir.Stat.Pzxid <= seen, err
		}
	}
	return false, nil
}

// canRepeat reports whether a request failed because its connection broke, or was refused for now, while the session
// goes on. A request that is too large breaks each connection.
func (s *Session) canRepeat(ctx context.Context, err error) bool {
	return (brokenOff(err) || passes(err)) && ctx.Err() == nil && s.Err() == nil
}

// again is canRepeat. After a refusal it pauses, the longer the more tries there were before.
func (s *Session) again(ctx context.Context, err error, tries int) bool {
	if passes(err) {
		s.pause(ctx, tries)
	}
	return s.canRepeat(ctx, err)
}

// pause waits before something is asked again that was refused tries times before.
func (s *Session) pause(ctx context.Context, tries int) {
	sleepIn(ctx, s.ctx, jitter(min(firstBackoff<<min(tries, 10), maxBackoff)))
}

// brokenOff reports whether a request failed because its connection broke, but most likely not because of the request
// or its reply.
func brokenOff(err error) bool {
	return errors.Is(err, ErrConnectionLost) && !errors.Is(err, ErrProtocol) && !errors.Is(err, errFrame) &&
		!errors.Is(err, errTooLarge)
}

// seen returns a transaction that the ensemble has done already: if fresh, the last one.
func (s *Session) seen(ctx context.Context, fresh bool) (int64, error) {
	last := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.lastZxid
	}
	if zxid := last(); zxid > 0 && !fresh { // a new session has had no reply yet
		return zxid, nil
	}
	for tries := 0; ; tries++ {
		if err := s.Sync(ctx, "/"); err == nil { // which takes no right
			return last(), nil
		} else if !s.again(ctx, err, tries) {
			return 0, err
		}
	}
}

// errNoChroot is the answer if the node is missing that all paths of the client begin with.
var errNoChroot = fmt.Errorf("%w: the chroot of Config.Servers does not exist", NoNode)

// CreateChroot creates the node that all paths of the client begin with (see Config.Servers), and what is missing above
// it, as persistent nodes with the given list of rights, OpenACL if nil. It is no error if they exist, or if there is
// no chroot.
func (s *Session) CreateChroot(ctx context.Context, acl []ACL) error {
	if s.client.cfg.root == "" {
		return nil
	}
	err := s.createChroot(ctx, string(s.client.cfg.root), acl)
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Outcome == Refused {
		// The caller knows this node as "/", which no one would think to be missing.
		named := *refusal
		named.Err = fmt.Errorf("%w: the chroot %s cannot be created", refusal.Err, s.client.cfg.root)
		return &named
	}
	return err
}

func (s *Session) createChroot(ctx context.Context, path string, acl []ACL) error {
	create := func() error {
		n := Node{Path: path, ACL: acl}
		c := s.newCall(n.Mode.op(), "/")
		c.req.create = n.request("")
		err := s.do(ctx, c, createBody(n.Mode.op(), &c.req.create))
		if err == nil {
			c.free()
		}
		if errors.Is(err, NodeExists) {
			return nil
		}
		return err
	}
	err := create()
	if above := parentOf(path); errors.Is(err, NoNode) && above != "/" && above != "" {
		if err = s.createChroot(ctx, above, acl); err == nil {
			err = create()
		}
	}
	return err
}

// createParents creates those of the node's parents that are missing.
func (s *Session) createParents(ctx context.Context, n Node, parents Parents) error {
	dir := Node{Path: parentOf(n.Path), Mode: parents.Mode, ACL: parents.ACL}
	var missing []string
	for ; ; dir.Path = parentOf(dir.Path) {
		if dir.Path == "/" || dir.Path == "" {
			return &Error{Op: opName(n.Mode.op()), Path: n.Path, Err: errNoChroot, Outcome: Refused}
		}
		_, err := s.CreateNode(ctx, dir)
		for tries := 0; passes(err) && s.again(ctx, err, tries); tries++ {
			_, err = s.CreateNode(ctx, dir)
		}
		if err == nil || errors.Is(err, NodeExists) {
			break
		}
		if repeat := s.canRepeat(ctx, err); repeat || errors.Is(err, NoNode) {
			missing = append(missing, dir.Path)
			if repeat {
				break // if those above are missing, too, the next try finds out
			}
			continue
		}
		if _, exists, _ := s.Exists(ctx, dir.Path); exists {
			break // another client has made it meanwhile
		}
		return n.withoutParent(err)
	}
	b := s.Batch()
	var made []*Future[Created]
	refused := false
	for _, path := range slices.Backward(missing) {
		dir.Path = path
		made = append(made, b.CreateNode(dir))
	}
	b.Send()
	for _, parent := range made {
		_, err := parent.Get(ctx)
		if err != nil && !errors.Is(err, NodeExists) && !errors.Is(err, NoNode) && !s.canRepeat(ctx, err) {
			return n.withoutParent(err)
		}
		refused = refused || passes(err)
	}
	if refused {
		s.pause(ctx, maxParentTries)
		return s.createParents(ctx, n, parents)
	}
	return nil
}

// withoutParent returns the error of a creation whose parent could not be created.
func (n *Node) withoutParent(err error) error {
	if OutcomeOf(err) == Refused {
		return err
	}
	return refuse(n.Mode.op(), n.Path, err)
}

// ownNode returns the node if the creation whose reply is lost has made it. Otherwise it returns NodeExists, or an
// error with outcome Unknown, also if it is gone again. Seen is a transaction from before the creation.
func (s *Session) ownNode(ctx context.Context, n Node, seen int64) (Created, error) {
	data, stat, err := s.Get(ctx, n.Path)
	for tries := 0; s.again(ctx, err, tries); tries++ {
		data, stat, err = s.Get(ctx, n.Path)
	}
	fail := func(err error, o Outcome) (Created, error) {
		return Created{}, &Error{Op: opName(n.Mode.op()), Path: n.Path, Err: err, Outcome: o}
	}
	var owner int64
	if n.Mode == Ephemeral {
		owner = s.ID()
	}
	switch {
	case errors.Is(err, NoNode):
		return fail(fmt.Errorf("%w; the node existed, and is gone", ErrConnectionLost), Unknown)
	case err != nil:
		return fail(fmt.Errorf("%w; the node exists, but cannot be read: %w", ErrConnectionLost, err), Unknown)
	case stat.Czxid <= seen || stat.EphemeralOwner != owner:
		return fail(NodeExists, Refused)
	case stat.Version != 0:
		return fail(fmt.Errorf("%w; the node exists, and has been changed", ErrConnectionLost), Unknown)
	case !bytes.Equal(data, n.Data):
		return fail(NodeExists, Refused)
	default:
		return Created{Path: n.Path, Stat: stat}, nil
	}
}
