package elect

// Hooks.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/both"
	"github.com/seed-a3166700/turnstile/internal/line"
)

// Hooks are called about a candidate's campaigns, for logs and metrics. Nil fields cost nothing. Hooks may use the
// candidate, and must not block for long: campaigns and Resign wait for them. If Elected panics, the candidate may lead
// until the session ends.
//
// Each campaign, by Campaign, TryCampaign or Run, calls Campaign and then either Elected or Failed, once each. Each
// Elected is followed by either Resigned or Lost, once. Event.ID tells which calls belong together.
type Hooks struct {
	// Campaign is called by the goroutine that campaigns, before it does anything else.
	Campaign func(ctx context.Context, e Event)
	// Elected is called by the goroutine that campaigns, before Campaign and TryCampaign return the leadership, and
	// before Run calls its function.
	Elected func(ctx context.Context, e Event)
	// Failed is called by the goroutine that campaigns, before that ends with an error: because ctx has ended, because
	// another candidate leads (ErrLed), or because a server refuses. Run fails once when it is stopped while it
	// campaigns.
	Failed func(ctx context.Context, e Event)
	// Resigned is called by the goroutine that calls Resign, after that, or by Run when its function has returned. The
	// next leader's Elected may come first.
	Resigned func(e Event)
	// Lost is called when a leadership has ended before it was resigned, after Elected has returned, by a goroutine of
	// its own or by the one that calls Resign, whichever is first. The function of Run may still be running.
	Lost func(e Event)
	// Returned is called by Run when its function has returned after the leadership was lost or revoked. Run does not
	// return the function's error then, which is the event's, but campaigns again after the call. It comes after
	// Resigned, and may come before Lost.
	Returned func(e Event)
	// Deadlock is called, with a *lock.DeadlockError in Event.Err, for each campaign that is part of a deadlock, once
	// the deadlock is certain. The campaign that gives way (lock.FailWait) fails, so Failed follows for that. It is
	// called by a goroutine of its own, which looks for no further deadlock meanwhile.
	Deadlock func(e Event)
	// Stranger is called when a contender stands at the path whose program does not look for our candidates, as far as
	// its node's name tells, by the goroutine that campaigns, once for each that this Candidate sees when it lists its
	// line: both may lead at the same time. See Layout.
	Stranger func(node string)
	// Stray is called when a candidate waits for a node with a contender's name that belongs to no session, such as a
	// copy of a tree leaves: it waits until the node is deleted by hand. It is called for each wait for it, by the
	// goroutine that campaigns.
	Stray func(node string)
}

// And returns hooks that call those of k and then those of more: a program's own, and for example those of package
// metrics.
func (k Hooks) And(more Hooks) Hooks {
	return Hooks{
		Campaign: both.Two(k.Campaign, more.Campaign),
		Elected:  both.Two(k.Elected, more.Elected),
		Failed:   both.Two(k.Failed, more.Failed),
		Resigned: both.One(k.Resigned, more.Resigned),
		Lost:     both.One(k.Lost, more.Lost),
		Returned: both.One(k.Returned, more.Returned),
		Deadlock: both.One(k.Deadlock, more.Deadlock),
		Stranger: both.One(k.Stranger, more.Stranger),
		Stray:    both.One(k.Stray, more.Stray),
	}
}

// Event is the argument of the Hooks.
type Event struct {
	ID    uint64        // of the campaign, with which all calls of hooks about it come; unique in this process
	Path  string        // of the election
	Node  string        // the leader's node; "" for Campaign, Failed and Deadlock
	Token Token         // the leader's; 0 for Campaign, Failed and Deadlock
	Took  time.Duration // Resigned, Lost, Returned: since the campaign was won; else since it began
	// Stopping is, for Resigned with an Err, how long before that the leadership's context had ended.
	Stopping time.Duration
	// Err is the error that the campaign ends with, for Failed; that Resign returns, for Lost; and that the function of
	// Run has returned, for Returned. For Resigned it is a *RevokedError if another client had asked for the leadership
	// before, and otherwise nil.
	Err error
}

// report tells the hooks of one campaign, and of the leadership that it wins. It is nil if no hook wants to know, and
// its methods then do nothing.
type report struct {
	hooks *Hooks
	event Event
	since time.Time
	stop  func() bool // ends the wait for the ownership's end; nil if no hook wants to know
	ended atomic.Bool
}

// reports counts the campaigns of this process that hooks are told of.
var reports atomic.Uint64 //nolint:gochecknoglobals // makes numbers that are unique in the process

// report begins the report of a campaign.
func (c *Candidate) report(ctx context.Context) *report {
	k := &c.cfg.Hooks
	if k.Campaign == nil && k.Elected == nil && k.Failed == nil && k.Resigned == nil && k.Lost == nil &&
		k.Returned == nil && k.Deadlock == nil {
		return nil
	}
	r := &report{hooks: k, event: Event{ID: reports.Add(1), Path: c.path}, since: time.Now()}
	if k.Campaign != nil {
		k.Campaign(ctx, r.event)
	}
	return r
}

// failed reports that the campaign has failed.
func (r *report) failed(ctx context.Context, err error) {
	if r != nil && r.hooks.Failed != nil {
		r.hooks.Failed(ctx, r.now(err))
	}
}

// now returns the event with the time since the campaign or the leadership began.
func (r *report) now(err error) Event {
	e := r.event
	e.Took, e.Err = time.Since(r.since), err
	return e
}

// elected reports that the campaign was won, and arranges that the end of the leadership is reported. No other
// goroutine knows l yet.
func (r *report) elected(ctx context.Context, l *Leadership) {
	if r == nil {
		return
	}
	r.event.Node, r.event.Token = l.Path(), l.token
	e := r.now(nil)
	if r.hooks.Elected != nil {
		r.hooks.Elected(ctx, e)
	}
	r.since = r.since.Add(e.Took)
	l.report = r
	if r.hooks.Lost != nil {
		//nolint:contextcheck // lasts as long as the ownership
		r.stop = context.AfterFunc(l.ownership.Context(), func() { r.lost(l.ownership.Err()) })
	}
}

// lost reports that the leadership was lost, unless its end was reported.
func (r *report) lost(cause error) {
	if r.ended.CompareAndSwap(false, true) {
		r.hooks.Lost(r.now(cause))
	}
}

// end ends the report of a leadership that is about to be resigned, and returns what tells the hook of it. Lost is why
// it was lost before, nil if it was not.
func (r *report) end(o *line.Ownership, lost error) (tell func()) {
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return func() {}
	}
	if r.stop != nil {
		r.stop()
	}
	hook, e := r.hooks.Lost, r.now(lost)
	if lost == nil {
		hook = r.hooks.Resigned
		if stopped := o.Stopped(); errors.Is(stopped, ErrRevoked) {
			e.Err, e.Stopping = stopped, o.StoppedFor()
		}
	}
	return func() {
		if hook != nil {
			hook(e)
		}
	}
}

// returned reports that the function of Run has returned err after its leadership was lost or revoked.
func (r *report) returned(err error) {
	if r != nil && r.hooks.Returned != nil {
		r.hooks.Returned(r.now(err))
	}
}

// watchLine has the hooks told of what else stands in the line.
func (k *Hooks) watchLine(l *line.Line) {
	dir := l.Dir
	if tell := k.Stranger; tell != nil {
		l.Strangers = &line.Strangers{Tell: func(name string) { tell(attempt.Join(dir, name)) }}
	}
	if tell := k.Stray; tell != nil {
		l.Stray = func(name string) { tell(attempt.Join(dir, name)) }
	}
}
