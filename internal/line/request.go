package line

// Asking for a contender.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A Request is a contender of ours that was asked for. One goroutine at a time may use it. The caller uses it until Own
// returns a contender or an error that is not ctx's, or calls Cancel; otherwise the nodes stay until the session ends.
//
// Whenever Own returns an error that is not ctx's, and after Cancel, no node is left behind, or its removal goes on in
// the background until it is done or the session has ended: also if the connection breaks before the answer comes
// (CURATOR-79).
type Request struct {
	own      *Own
	lines    []*Line         // one for each contender to make: a line comes once, or for permits several times
	checks   []zk.Op         // with which the transaction begins: it is refused with ErrGone unless they pass
	releases *pendingRelease // whose nodes are deleted by the same transaction; nil if there is none
	names    []name
	creation *attempt.Creation
	listed   []*zk.Future[zk.Children] // of the lines, asked for right behind the creation; nil where there is none
	tries    int
	joining  bool          // it counts among the line's joins
	room     chan struct{} // to be given back; nil if it has none
	resent   bool          // what was asked right behind the first creation was answered before the nodes were made
	made     bool          // the nodes are there
	refused  error         // why the nodes that are there are not to be used
	final    error         // why there are none and will be none
}

// Ask asks for a contender at the end of the line, and does not wait for the answer.
func (l *Line) Ask(sess *zk.Session) *Request { return ask(sess, l) }

// AskInTurn is Ask for callers of which many may come at the same time. It waits while too many are on their way.
func (l *Line) AskInTurn(ctx context.Context, sess *zk.Session) (*Request, error) {
	if err := l.room(ctx, sess); err != nil {
		return nil, err
	}
	r := ask(sess, l)
	r.room = l.joins.rooms
	return r, nil
}

// Enter asks for a contender at the end of each line, all or none, and waits for it. Of two contenders that share
// lines, one is ahead of the other in all of them, so that they never wait for each other.
func Enter(ctx context.Context, sess *zk.Session, lines ...*Line) (*Own, error) {
	return ask(sess, lines...).finish(ctx)
}

func ask(sess *zk.Session, lines ...*Line) *Request {
	r := &Request{own: &Own{sess: sess, watcher: &lines[0].watcher, shared: lines[0].Signed}, lines: lines}
	for _, l := range lines {
		r.own.positions = append(r.own.positions, &position{own: r.own, line: l, ahead: unknown})
	}
	if len(lines) == 1 {
		r.releases = lines[0].merge(sess)
	}
	r.send()
	return r
}

// Session returns the session that the contender belongs to.
func (r *Request) Session() *zk.Session { return r.own.sess }

// Own waits for the contender, until it is known which contenders are ahead. An error is final unless ctx has ended:
// then it is ctx's cause, the request stays, and another call goes on waiting where this one stopped.
func (r *Request) Own(ctx context.Context) (*Own, error) {
	if r.final != nil {
		return nil, r.final
	}
	var err error
	for err == nil && !r.made {
		err = r.make(ctx)
	}
	for i, p := range r.own.positions {
		if err != nil {
			break
		}
		if p.ahead != unknown || r.releases != nil && p.infer(r.releases.own.positions[0]) {
			continue
		}
		p.cancelPrefetch()
		var contenders []Contender
		if contenders, err = p.list(ctx, r.listed[i]); err == nil {
			p.see(contenders)
		}
	}
	for _, l := range r.lines {
		if err == nil {
			err = l.checkACL(ctx, r.own.sess)
		}
	}
	switch {
	case err == nil:
		r.own.lead()
		return r.own, nil
	case ctx.Err() != nil && r.refused == nil:
		return nil, context.Cause(ctx)
	default:
		r.Cancel()
		r.final = err
		return nil, err
	}
}

// finish is Own for a caller that does not call it again.
func (r *Request) finish(ctx context.Context) (*Own, error) {
	own, err := r.Own(ctx)
	if err != nil {
		r.Cancel()
	}
	return own, err
}

// Cancel gives the contender up, whatever has become of it.
func (r *Request) Cancel() {
	switch {
	case r.final != nil:
		return
	case r.made:
		r.own.Release()
	default:
		r.joined()
		r.cancelPrefetch()
		r.creation.Cancel()
	}
	r.final = ErrGone
}

func (r *Request) cancelPrefetch() {
	for _, p := range r.own.positions {
		p.cancelPrefetch()
	}
}

// send sends the creation of the nodes under new names, and the lists of the lines in the same write.
func (r *Request) send() {
	sess := r.own.sess
	r.names = nil
	var nodes []zk.Node
	for _, l := range r.lines {
		names := l.names(attempt.NewGUID())
		r.names = append(r.names, names...)
		nodes = append(nodes, l.creations(names, l.mode(), l.Data())...)
	}
	list := r.join()
	b := sess.Batch()
	r.listed = make([]*zk.Future[zk.Children], len(r.lines))
	if r.releases != nil {
		r.creation, r.listed[0] = r.releases.replace(b, r.own.positions[0], r.names, nodes)
	} else {
		r.creation, _ = attempt.NewCreation(b, sess, r.names, r.checks, nodes)
		for i, l := range r.lines {
			if list && (i == 0 || r.own.positions != nil) { // permits all come to one path
				r.listed[i] = b.Children(l.Dir)
			}
		}
	}
	b.Send()
}

// join counts the contender among those that are joining, and reports whether a list may be asked for with it.
func (r *Request) join() bool {
	again := r.joining
	r.joining = true
	return r.lines[0].joins.join(again)
}

// joined says that the contender is there, or will not be.
func (r *Request) joined() {
	if r.joining {
		r.joining = false
		r.lines[0].joins.joined()
	}
	if r.room != nil {
		<-r.room
		r.room = nil
	}
}

// make waits for the answer to the last creation, and sends another one if needed.
func (r *Request) make(ctx context.Context) error {
	sess := r.own.sess
	nodes, err := r.creation.Resolve(ctx)
	failed, _ := errors.AsType[*zk.MultiError](err)
	switch {
	case err == nil:
		if _, lost := r.creation.Answer(ctx); lost != nil { // and so is what was asked behind it
			r.releases = nil
			r.cancelPrefetch()
		}
		return r.adopt(nodes)
	case ctx.Err() != nil || sess.Err() != nil || errors.Is(err, ErrGone):
		return err
	case errors.Is(err, attempt.ErrLost):
	case r.releases != nil:
		// It was refused, most likely because another client has deleted the old node. The release goes on by itself,
		// and the new node is made the ordinary way.
	case failed != nil && failed.Index < len(r.checks) && (failed.Err == zk.NoNode || failed.Err == zk.BadVersion):
		return ErrGone
	case errors.Is(err, zk.NoNode) && r.lines[0].There:
		return ErrGone
	case errors.Is(err, zk.NoNode):
		if r.tries++; r.tries > attempt.MaxRemakes*len(r.names) {
			return attempt.Vanishes(r.lines[0].Dir, err)
		}
		if err := r.lines[0].makeParents(ctx, sess, r.dirs()...); err != nil {
			return err
		}
	default: // nothing was made
		if err := attempt.Again(ctx, sess, err); err != nil {
			return err
		}
	}
	r.releases, r.resent = nil, true
	r.cancelPrefetch()
	r.send()
	return nil
}

// dirs are the paths of the lines, each once. They make their parents alike.
func (r *Request) dirs() []string {
	dirs := make([]string, len(r.lines))
	for i, l := range r.lines {
		dirs[i] = l.Dir
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// adopt makes the nodes ours.
func (r *Request) adopt(nodes []zk.Created) error {
	r.made = true
	r.joined()
	r.own.made(nodes)
	for _, n := range nodes {
		// A node that a server finds for us is ours only if it belongs to the live session. One of an older session is
		// about to vanish, and a client that took it for its own would hold nothing (CURATOR-498, CURATOR-604).
		if n.Stat.EphemeralOwner != r.own.sess.ID() {
			r.refused = ErrGone
		}
	}
	for _, p := range r.own.positions {
		if err := p.identify(); err != nil {
			r.refused = err
		}
	}
	return r.refused
}

// TryEnter enters all of the lines if no contender that would block it stands in any. It returns nil if one does: as a
// rule after one read, and otherwise after another contender was quicker, without leaving a node behind.
func TryEnter(ctx context.Context, sess *zk.Session, lines ...*Line) (*Own, error) {
	free, err := Empty(ctx, sess, lines...)
	if err != nil || !free {
		return nil, err
	}
	own, err := Enter(ctx, sess, lines...)
	if err == nil && !own.First() {
		own.Release()
		return nil, nil
	}
	return own, err
}
