package member

// Running a function for each item that is owned.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// asking bounds how many locks are asked for at a time. They leave in few writes; what is more would only wait at the
// server, in front of the session's pings.
const asking = 512

// errExited is how a Run ends whose work leaves by runtime.Goexit, as t.FailNow does.
var errExited = errors.New("member: work has ended its goroutine")

// errEnded is the cause of the contexts of a Run that has failed.
var errEnded = errors.New("the partitioner's run has ended")

// Run joins the members and calls work for each item that this member owns, on a goroutine of its own, once the lock of
// the item is held. The context that work gets carries ctx's values. It ends when the item must go, when it is lost,
// and with ctx. The item passes on when work has returned, not before, so that its next owner finds it at rest. Work on
// items that stay goes on.
//
// Loss of the session is no end: the items are asked for again under the next session, and work is called again for
// those that come back. If work returns nil before its context has ended, the item stays with this member, idle, until
// it must go. If it returns an error then, Run ends with that error; what it returns later is told to Hooks.Lost alone.
// Run also ends with an error if work leaves by runtime.Goexit.
//
// A server that refuses to let the member join ends Run with the refusal. A later one, or one about an item, ends
// nothing: it is told to Hooks.Refused, the item has no owner meanwhile, and Run tries again after pauses.
//
// To end ctx is the way to stop Run: then it returns nil. If the client is closed it returns the client's error. Before
// that it waits until all calls of work have returned; then it gives up the items and leaves. Their nodes are removed
// in the background: a program that exits right after Run closes its client.
func (p *Partitioner) Run(ctx context.Context, work func(ctx context.Context, s *Share) error) error {
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	if work == nil {
		return fmt.Errorf("member: %w: work is nil", zk.BadArguments)
	}
	within, end := context.WithCancelCause(ctx)
	r := &partition{
		p: p, work: work, ctx: within, end: end,
		tasks: make(map[string]context.CancelCauseFunc), slots: make(chan struct{}, asking),
		seen: make(chan []Member), ended: make(chan string),
	}
	membership, err := p.group.Join(ctx, p.id, nil)
	if err != nil {
		end(errEnded)
		return attempt.Stopped(ctx, err)
	}
	r.node = membership.Node()
	var watch sync.WaitGroup
	watch.Go(r.watch)
	r.run() //nolint:contextcheck // it has the context of Run
	end(errEnded)
	membership.Leave()     // already, so that the others can stand in line for what is at work still
	for len(r.tasks) > 0 { // all have been told
		delete(r.tasks, <-r.ended)
	}
	watch.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(within)
}

// partition is one Run. Its fields belong to the goroutine of Run, except for those that say otherwise.
type partition struct {
	p     *Partitioner
	work  func(context.Context, *Share) error
	ctx   context.Context         //nolint:containedctx // ends with Run; for all goroutines
	end   context.CancelCauseFunc // likewise
	node  string                  // of our membership
	slots chan struct{}           // likewise: one for each lock that is asked for
	seen  chan []Member           // from watch
	ended chan string             // from the tasks, each once: its item

	members []Member
	target  map[string]bool                    // the items that are to be ours
	tasks   map[string]context.CancelCauseFunc // the items that are ours, are asked for, or are about to go
}

// watch tells run the members.
func (r *partition) watch() {
	var last error
	for members, err := range r.p.group.Watch(r.ctx) {
		if last = err; err != nil {
			_ = r.pause(r.ctx, "", 0, err)
			continue // a refusal may pass; an error that does not ends the loop
		}
		select {
		case r.seen <- members:
		case <-r.ctx.Done():
			return
		}
	}
	r.end(last)
}

// run follows the members and the items until the context ends.
func (r *partition) run() {
	items, changed := r.p.latest()
	settle := time.NewTimer(0)
	settle.Stop()
	defer settle.Stop()
	var since time.Time // of the first change that is not followed yet
	change := func() {
		if since.IsZero() {
			since = time.Now()
		}
		left := 10*min(r.p.cfg.Settle, math.MaxInt64/10) - time.Since(since)
		settle.Reset(max(min(r.p.cfg.Settle, left), time.Nanosecond))
	}
	for {
		select {
		case r.members = <-r.seen:
			change()
		case <-changed:
			items, changed = r.p.latest()
			change()
		case <-settle.C:
			since = time.Time{}
			r.follow(items)
		case item := <-r.ended:
			delete(r.tasks, item)
			if r.target[item] {
				r.begin(item)
			}
		case <-r.ctx.Done():
			return
		}
	}
}

// follow tells the items that are to go, and begins those that are to come.
func (r *partition) follow(items []string) {
	members, self := keys(r.members, r.node)
	if self < 0 {
		return // our node is gone and comes back; what is lost with it ends by itself
	}
	mine := r.p.cfg.Split.share(items, members, self)
	r.target = make(map[string]bool, len(mine))
	for _, item := range mine {
		r.target[item] = true
	}
	for item, cancel := range r.tasks {
		if !r.target[item] {
			cancel(ErrMoved)
		}
	}
	var more []string
	for _, item := range mine {
		if r.tasks[item] == nil {
			more = append(more, item)
		}
	}
	r.makeDirs(more)
	for _, item := range more {
		r.begin(item)
	}
}

// makeDirs makes the parents of the items' locks, if there are many, in few writes. Otherwise, and should that fail,
// each lock makes its own.
func (r *partition) makeDirs(items []string) {
	const many = 16
	if len(items) < many {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	sess, err := r.p.client.Session(ctx)
	if err != nil {
		return
	}
	l := r.p.line(items[0])
	if l.MakeDir(ctx, sess) != nil {
		return
	}
	there, _, err := sess.Children(ctx, r.p.locks())
	if err != nil {
		return
	}
	known := make(map[string]bool, len(there))
	for _, name := range there {
		known[name] = true
	}
	var missing []string
	for _, item := range items {
		if !known[item] {
			missing = append(missing, r.p.line(item).Dir)
		}
	}
	d := attempt.Dirs{ACL: l.ACL, AnyACL: true} // each lock checks the lists on its way itself
	if l.Lasting {
		d.Keep = attempt.Forever
	}
	_ = d.Make(ctx, sess, missing...)
}

// begin starts the goroutine of an item.
func (r *partition) begin(item string) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	r.tasks[item] = cancel
	go func() { // Run waits for what it sends last
		err := errExited
		defer func() {
			attempt.Repanic(recover())
			cancel(nil)
			if err != nil {
				r.end(err)
			}
			r.ended <- item
		}()
		err = r.keep(ctx, item)
	}()
}

// keep owns the item until ctx ends, again and again if it is lost.
func (r *partition) keep(ctx context.Context, item string) error {
	l := r.p.line(item)
	tries := 0
	for ctx.Err() == nil {
		own, err := line.Policy{}.Acquire(ctx, r.p.client, func(sess *zk.Session) (*line.Own, error) {
			return r.stand(ctx, sess, l)
		})
		switch {
		case ctx.Err() != nil && own == nil:
			return nil
		case err != nil:
			if err := r.pause(ctx, item, tries, err); err != nil {
				return err
			}
			tries++
			continue
		}
		ownership, err := line.Begin(own, ErrDeleted, nil)
		if err != nil { // the line has had too many contenders: see docs/limits.md
			if err := r.pause(ctx, item, tries, err); err != nil {
				return err
			}
			tries++
			continue
		}
		tries = 0
		if err := r.call(ctx, item, ownership); err != nil {
			return err
		}
	}
	return nil
}

// pause tells of a refusal, and waits before the same is asked again. It returns an error if the client has ended.
func (r *partition) pause(ctx context.Context, item string, tries int, refusal error) error {
	sess, err := r.p.client.Session(ctx)
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the caller sees that it has ended
	case err != nil:
		return r.p.failed(err)
	}
	if told := r.p.cfg.Hooks.Refused; told != nil {
		told(item, r.p.failed(refusal))
	}
	_ = attempt.Pause(ctx, sess, tries) // the next round sees why it was cut short
	return nil
}

// stand makes a contender first in the item's line.
func (r *partition) stand(ctx context.Context, sess *zk.Session, l *itemLine) (*line.Own, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	own, err := line.Enter(ctx, sess, &l.Line)
	<-r.slots
	if err != nil {
		return nil, err
	}
	if err := own.Await(ctx); err != nil {
		own.Release()
		return nil, err
	}
	return own, nil
}

// call calls work for one share. It returns an error that ends Run.
func (r *partition) call(ctx context.Context, item string, ownership *line.Ownership) error {
	owned, _ := ownership.NewContext() // ends with the ownership
	within, stop := line.Within(owned, ctx)
	defer stop()
	s := &Share{item: item, ownership: ownership, ctx: within}
	hooks := r.p.cfg.Hooks
	if within.Err() != nil {
		ownership.Release(context.Cause(within))
		return nil
	}
	r.p.own(s)
	cause, fnErr := errExited, errExited
	defer func() { // also when work leaves by Goexit
		attempt.Repanic(recover())
		r.p.disown(s)
		ownership.Release(cause)
		if hooks.Lost != nil {
			hooks.Lost(item, cause, fnErr)
		}
	}()
	if hooks.Gained != nil {
		hooks.Gained(s)
	}
	fnErr = r.work(within, s)
	cause = fnErr
	if fnErr == nil || within.Err() != nil {
		<-within.Done() // the item stays, idle
		cause = context.Cause(within)
		return nil
	}
	return fnErr
}

func (p *Partitioner) own(s *Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned[s.item] = s
}

func (p *Partitioner) disown(s *Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.owned, s.item)
}
