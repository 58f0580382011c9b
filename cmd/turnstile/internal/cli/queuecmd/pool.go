package queuecmd

// The workers of take and work.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/supervise"
	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// exitRetry is what a command exits with to have its item later: EX_TEMPFAIL of sysexits(3).
const exitRetry = 75

// exitTimeout is what a command counts as that has taken too long: the code of timeout(1).
const exitTimeout = 124

// How often to check whether a queue that is paused or limited has items.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
)

// beforeLook is how long to wait for an item before looking whether the queue is empty.
const beforeLook = 100 * time.Millisecond

// pool is the worker pool of one "take" or "work": it takes items and runs a command for each.
type pool struct {
	consumer *consumer
	app      *command.App
	program  string
	group    *supervise.Group
	slots    chan struct{} // one for each item that is taken or waited for
	stop     context.CancelCauseFunc
	code     atomic.Int32 // of the first command that did not exit with 0

	mu   sync.Mutex         // guards idle
	idle context.CancelFunc // called when no command runs any more; nil if nothing waits for that
}

// runCommands runs the command for one item after the other, until there is nothing more to do, or a signal comes.
func (w *consumer) runCommands(ctx context.Context) error {
	program, err := w.run.Program()
	if err != nil {
		return err
	}
	p := &pool{consumer: w, app: w.run.App, program: program, slots: make(chan struct{}, w.workers)}
	return command.Failed(p.run(ctx))
}

func (p *pool) run(ctx context.Context) error {
	taking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p.stop = stop
	p.group = supervise.NewGroup(p.consumer.onStop.Value == onStopFinish, func(sig os.Signal, running int) {
		stop(supervise.SignalError{Signal: sig})
		if running > 0 {
			p.app.Say("%s: %v: taking no more items, %s running; the next signal kills",
				p.consumer.run.Path, sig, command.Plural(running, "command"))
		}
	})
	defer p.group.Close()
	giveUp := p.consumer.count > 0 // "work" waits for servers that are away
	u := p.consumer.access()
	err := u.open(taking, giveUp, func(taking context.Context, client *zk.Client, q *queue.Queue) error {
		return p.takeAll(ctx, taking, client, q)
	})
	return p.result(err)
}

// result is the error to end with: err is why no more items were taken.
func (p *pool) result(err error) error {
	asked, killed := p.group.Asked()
	_, signal := errors.AsType[supervise.SignalError](err)
	take := p.consumer.count > 0
	switch code := int(p.code.Load()); {
	case err != nil && !signal:
		return err
	case take && code != 0: // take exits as its command did
		exit := &command.Error{Code: code}
		if asked == os.Interrupt && code == command.ExitSignal+int(syscall.SIGINT) {
			exit.Ending.Signal = syscall.SIGINT
		}
		return exit
	case killed:
		return supervise.SignalError{Signal: asked}
	case signal && !take && p.consumer.until.Value == untilSignal:
		return nil // what work waits for
	}
	return err
}

// takeAll takes items and runs commands for them, and returns when these have ended.
func (p *pool) takeAll(ctx, taking context.Context, client *zk.Client, q *queue.Queue) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	w := p.consumer
	if w.onStop.Value == onStopFinish {
		ctx = context.WithoutCancel(ctx)
	}
	sess, err := w.run.Sync(taking, client)
	if err != nil {
		return err
	}
	w.run.WarnOfTimes(sess.Timeout())
	for n := 0; w.count == 0 || n < w.count; n++ {
		select {
		case p.slots <- struct{}{}:
		case <-taking.Done():
			return context.Cause(taking)
		}
		item, err := p.next(taking, client, q, n)
		switch {
		case errors.Is(err, errNothingLeft):
			return nil
		case err != nil:
			return err
		}
		wg.Go(func() {
			defer p.free()
			p.work(ctx, item)
		})
	}
	wg.Wait()
	return p.failure(taking)
}

// failure is why items are no longer taken, if a command could not be started or an item could not be acknowledged.
func (p *pool) failure(taking context.Context) error {
	cause := context.Cause(taking)
	if _, ok := errors.AsType[supervise.SignalError](cause); ok {
		return nil
	}
	return cause
}

var errNothingLeft = errors.New("nothing is left to do")

// next takes the n-th item, from 0.
func (p *pool) next(ctx context.Context, client *zk.Client, q *queue.Queue, n int) (*queue.Item, error) {
	w := p.consumer
	switch {
	case w.count > 0 && n == 0:
		return w.first(ctx, client, q)
	case w.count > 0:
		item, err := q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			err = errNothingLeft
		}
		return item, err
	case w.until.Value == untilSignal:
		return q.Take(ctx)
	case w.until.Value == untilEmpty:
		return p.untilEmpty(ctx, q, n == 0)
	}
	return p.untilIdle(ctx, q)
}

// untilEmpty takes an item, or returns errNothingLeft when there is none in the queue, other consumers' included.
func (p *pool) untilEmpty(ctx context.Context, q *queue.Queue, first bool) (*queue.Item, error) {
	taking, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop(nil)
	watch.Go(func() {
		idle := make(chan struct{})
		if p.whenIdle(func() { close(idle) }) { // our own commands may add items, and theirs are not finished
			select {
			case <-idle:
			case <-taking.Done():
				return
			}
		}
		if !first { // most often there is another item at once
			select {
			case <-time.After(beforeLook):
			case <-taking.Done():
				return
			}
		}
		if err := q.AwaitEmpty(taking); taking.Err() == nil {
			stop(cmp.Or(err, errNothingLeft))
		}
	})
	return take(taking, q)
}

// take takes an item. If ctx ends first it returns ctx's cause, without the queue's words around it.
func take(ctx context.Context, q *queue.Queue) (*queue.Item, error) {
	item, err := q.Take(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return item, err
}

// untilIdle takes an item, or returns errNothingLeft when there is none to take and no command of ours runs, which may
// add some.
func (p *pool) untilIdle(ctx context.Context, q *queue.Queue) (*queue.Item, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		if !p.busy() {
			item, err := q.TryTake(ctx)
			if !errors.Is(err, queue.ErrEmpty) {
				return item, err
			}
			if over, err := p.over(ctx, q, err); over || err != nil {
				return nil, cmp.Or(err, errNothingLeft)
			}
		}
		if item, err := p.takeFor(ctx, q, pause); err == nil || ctx.Err() != nil {
			return item, err
		}
	}
}

// takeFor takes an item, or gives up: when our own commands have ended, or after pause if none runs.
func (p *pool) takeFor(ctx context.Context, q *queue.Queue, pause time.Duration) (*queue.Item, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !p.whenIdle(cancel) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, pause)
		defer stop()
	}
	return take(ctx, q)
}

// over reports whether there is nothing to take: not only because of a pause, or of a rate, which will be over. No item
// could be taken, for the given reason.
func (p *pool) over(ctx context.Context, q *queue.Queue, reason error) (bool, error) {
	if !errors.Is(reason, queue.ErrPaused) && !errors.Is(reason, queue.ErrLimited) {
		return true, nil
	}
	n, err := q.Len(ctx)
	return n.Ready == 0, err
}

// busy reports whether commands run. One slot is that of the next item.
func (p *pool) busy() bool { return len(p.slots) > 1 }

// whenIdle makes f be called when no command runs any more. It returns false if none runs.
func (p *pool) whenIdle(f context.CancelFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle = f; !p.busy() {
		p.idle = nil
	}
	return p.idle != nil
}

// free makes room for the next item.
func (p *pool) free() {
	<-p.slots
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil && !p.busy() {
		p.idle()
		p.idle = nil
	}
}

// work runs the command for an item, and finishes the item.
func (p *pool) work(ctx context.Context, item *queue.Item) {
	detached := context.WithoutCancel(ctx)
	c := p.consumer.run.Command(p.program, item, itemEnvironment(item)...)
	c.Stdin = bytes.NewReader(item.Body())
	claimLost := c.Lost
	c.Lost = func(cause error, grace time.Duration) {
		if !errors.Is(cause, queue.ErrTimeout) {
			claimLost(cause, grace)
			return
		}
		p.app.Detail("%s: item %s: the time limit of %v is over, the command has %v to end",
			p.consumer.run.Path, item.ID(), item.Timeout(), grace.Round(time.Millisecond))
	}
	begin := time.Now()
	result, err := p.group.Run(ctx, c, command.Under(item))
	if err != nil {
		if !errors.Is(err, supervise.ErrStopping) {
			p.stop(command.CannotRun(err)) // before the item goes back: we are not to take it again
		}
		_ = item.Return(detached, 0) // if it fails, the item goes back when the session ends
		return
	}
	if errors.Is(result.Lost, queue.ErrTimeout) {
		result.Code = exitTimeout // however it has ended: many programs exit with 0 when they get SIGTERM
	} else if result.Lost != nil {
		_ = item.Return(detached, 0) // the claim may hold after all; if not, the item goes back anyway
		p.lost(item, fmt.Errorf("%w: %w", queue.ErrClaimLost, result.Lost))
		return
	}
	err = p.finish(detached, item, result, time.Since(begin))
	if errors.Is(err, queue.ErrClaimLost) {
		p.lost(item, err)
	} else if err != nil {
		p.stop(err)
	}
}

// lost tells of an item whose claim was lost.
func (p *pool) lost(item *queue.Item, err error) {
	p.code.CompareAndSwap(0, command.ExitLost)
	p.app.Say("%s: item %s: its claim was lost, so it is delivered again: %v", p.consumer.run.Path, item.ID(), err)
}

// finish does with an item what the end of its command says.
func (p *pool) finish(ctx context.Context, item *queue.Item, result supervise.Result, took time.Duration) error {
	w, say, detail := p.consumer, p.app.Say, p.app.Detail
	path, id, code := w.run.Path, item.ID(), result.Code
	took = took.Round(time.Millisecond)
	if code == 0 {
		if err := item.Done(ctx); err != nil {
			return err
		}
		detail("%s: item %s: done after %v", path, id, took)
		return nil
	}
	p.code.CompareAndSwap(0, int32(code))
	switch {
	case result.Lost == nil && p.app.ReaderGone(): // it may have failed for that alone, and all commands to come would
		p.stop(p.app.OutputError(syscall.EPIPE)) // before the item goes back: we are not to take it again
		return item.Return(ctx, 0)
	case result.Interrupted && result.Lost == nil:
		detail("%s: item %s: interrupted after %v, given back", path, id, took)
		return item.Return(ctx, 0)
	case code == exitRetry:
		detail("%s: item %s: not now, again in %v", path, id, time.Duration(w.retryDelay))
		return item.Return(ctx, time.Duration(w.retryDelay))
	}
	reason := fmt.Errorf("%s: exit code %d", w.run.Name(), code)
	switch {
	case result.Lost != nil:
		reason = fmt.Errorf("%s: ended after its time limit of %v", w.run.Name(), item.Timeout())
	case code > command.ExitSignal:
		reason = fmt.Errorf("%w (signal %d)", reason, code-command.ExitSignal)
	}
	switch {
	case w.attempts == 0:
		say("%s: item %s: %v, attempt %d", path, id, reason, item.Attempt())
	case item.Attempt() < w.attempts:
		say("%s: item %s: %v, attempt %d of %d", path, id, reason, item.Attempt(), w.attempts)
	default:
		say("%s: item %s: %v, attempt %d of %d: a dead letter now", path, id, reason, item.Attempt(), w.attempts)
	}
	return item.Fail(ctx, reason)
}
