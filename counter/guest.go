package counter

// A process that has others make its calls.

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/receipt"
	"github.com/seed-a3166700/turnstile/zk"
)

// guest decides when a process asks others instead of writing. It belongs to the serving goroutine.
type guest struct {
	losses     int       // since the last write that was done, or the last request without an answer
	skip       int       // so many losses are no reason to ask: hosts did not answer
	answeredAt time.Time // when a host answered last
}

const (
	minLosses = 2  // that make a process ask
	maxSkip   = 64 // bounds guest.skip

	maxPatience = 2 * time.Second
)

// asks reports whether the next calls are to be asked for. There is a host as long as one answers.
func (g *guest) asks() bool {
	return time.Since(g.answeredAt) < keepKnown || g.losses >= minLosses && g.losses > g.skip
}

func (g *guest) answered() { *g = guest{answeredAt: time.Now()} }

// unanswered makes it take longer until the next request: perhaps the others are Curator's, or wrote just once.
func (g *guest) unanswered() { *g = guest{skip: min(max(minLosses, 2*g.skip), maxSkip)} }

// patience returns how long a guest waits. A host looks for requests every now and then, and answers with the write
// behind that.
func (c *combiner) patience() time.Duration {
	d := min(2*lookEvery+4*c.took, maxPatience)
	return d + rand.N(d) // when the host has gone, not all become hosts at once
}

// ask has another process make the calls, which are on their way with the receipt. They have their answers then, or
// wait again because nothing was done.
func (c *combiner) ask(
	ctx context.Context, sess *zk.Session, rec *receipt.Receipt, calls []*call, req *request,
) error {
	q := c.reg.ask(sess, rec, req)
	a, recreated, err := q.outcome(ctx, c.patience())
	if err == nil {
		c.guest.answered()
		v := a.before
		for _, x := range calls {
			v, _ = x.apply(c.layout, v, nil)
		}
		c.answer(calls, recreated)
		return nil
	}
	if errors.Is(err, ErrUnresolved) {
		c.answer(calls, err)
		return nil
	}
	c.requeue(calls)
	if errors.Is(err, errParents) {
		dir := line.Line{Dir: c.reg.requestsDir(), ACL: c.reg.acl}
		if dir.MakeDir(ctx, sess) == nil {
			return nil
		}
	}
	c.guest.unanswered()
	return nil
}

// asked is a request that was sent.
type asked struct {
	*written
	req     *request
	created *zk.Future[zk.Created]
	watched *zk.Future[zk.WatchedData] // the receipt
}

// ask sends a request.
func (r *register) ask(sess *zk.Session, rec *receipt.Receipt, req *request) *asked {
	q := &asked{written: &written{reg: r, sess: sess, rec: rec, stamp: req.stamp}, req: req}
	b := sess.Batch()
	q.created = b.CreateNode(zk.Node{Path: r.requestsDir() + "/" + req.name, Mode: zk.Ephemeral, ACL: r.acl})
	q.watched = b.GetW(rec.Path)
	b.Send()
	return q
}

// outcome waits for the answer until the host's time is up or ctx ends. An error is ErrUnresolved, or the calls were
// not made and will never be: then it is errParents if the directory of requests is missing. Recreated is ErrRecreated
// if the host wrote to another node than it had read. It gives the receipt back as written.outcome does.
func (q *asked) outcome(ctx context.Context, patience time.Duration) (a answer, recreated, err error) {
	_, created := q.created.Get(ctx)
	if created != nil && zk.OutcomeOf(created) != zk.Unknown {
		q.watched.Abandon()
		q.reg.receipts.Put(q.rec)
		if errors.Is(created, zk.NoNode) {
			return a, nil, errParents
		}
		return a, nil, errLost
	}
	receiptIs, node, answered := q.await(ctx, patience)
	if answered {
		if a, answered = parseAnswer(receiptIs.Data, q.stamp); answered {
			q.rec.Done()
			q.reg.receipts.Put(q.rec)
			return a, a.recreated(node, receiptIs.Stat.Mzxid), nil
		}
	}
	q.remove(created)
	stat, err := q.resolve(ctx)
	if err != nil {
		return a, nil, err
	}
	if a, answered = parseAnswer(q.rec.Data(), q.stamp); !answered {
		return a, nil, ErrUnresolved // the receipt was written to by an operator
	}
	if sess, err := q.reg.client.Session(ctx); err == nil {
		node.Stat, node.Exists, err = sess.Exists(ctx, q.reg.path)
		node.Exists = node.Exists && err == nil
	}
	return a, a.recreated(node, stat.Mzxid), nil
}

// remove removes the request, given what its creation returned, so that no host tries. It goes on in the background
// until there is no node, and none can come of a creation whose reply was lost.
func (q *asked) remove(created error) {
	if created != nil {
		line.RemoveCreated(q.sess, q.reg.requestsDir(), q.req.name)
		return
	}
	line.Remove(q.sess, q.reg.requestsDir()+"/"+q.req.name)
}

// await waits until the receipt changes, and returns what it holds then, together with what is known of the node. It
// returns false if that takes too long or ctx ends.
func (q *asked) await(ctx context.Context, patience time.Duration) (zk.Data, zk.Existence, bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := q.watched.Get(ctx)
	if err != nil {
		q.watched.Abandon()
		return zk.Data{}, zk.Existence{}, false
	}
	defer before.Watch.Close()
	b := q.sess.Batch()
	data, node := b.Get(q.rec.Path), b.Exists(q.reg.path)
	if before.Stat.Version == q.req.version {
		defer b.SendOn(before.Watch)()
	} else {
		b.Send() // the host was quicker than the watch
	}
	d, err := data.Get(ctx)
	if err != nil {
		return zk.Data{}, zk.Existence{}, false
	}
	e, err := node.Get(ctx)
	return d, e, err == nil
}

// recreated returns ErrRecreated if a node that exists is neither the one that the host wrote to nor a later one, given
// the transaction of the host's write.
func (a answer) recreated(node zk.Existence, mzxid int64) error {
	if node.Exists && a.czxid != 0 && node.Stat.Czxid != a.czxid && node.Stat.Czxid <= mzxid {
		return ErrRecreated
	}
	return nil
}
