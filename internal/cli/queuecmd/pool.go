package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/queue"
	"github.com/seed-a3166700/turnstile/zk"
)

// exitRetry is what a command exits with to have its item later: EX_TEMPFAIL of sysexits(3).
const exitRetry = 75

// How often to look whether the queue is empty, while others have its items.
const (
	lookFirst = 50 * time.Millisecond
	lookMax   = 2 * time.Second
)

// claim is an item that a command works on.
type claim struct{ *queue.Item }

func (c claim) number() int64 { return int64(c.Token()) }

// crew is the commands of one "take" or "work": it gives them items, and them the signals that come.
type crew struct {
	*consumer
	program  string
	signals  *signals
	terminal *terminal // nil without one
	slots    chan struct{}
	gone     chan struct{} // closed when nothing is to be passed on any more

	mu      sync.Mutex           // guards what follows
	running map[*supervisor]bool // whether the command has been started
	idle    context.CancelFunc   // called when no command runs any more; nil if nobody waits for that
	stop    context.CancelCauseFunc
	asked   os.Signal // the first signal that asked us to end
	killed  bool      // the second came
	code    int       // of the first command that did not exit with 0
}

func newCrew(w *consumer, program string) *crew {
	c := &crew{
		consumer: w, program: program, terminal: openTerminal(), slots: make(chan struct{}, w.workers),
		gone: make(chan struct{}), running: make(map[*supervisor]bool),
	}
	c.signals = catchSignals(ending()...)
	c.terminal.catch(c.signals)
	return c
}

func (c *crew) release() {
	c.signals.release()
	c.terminal.close()
}

// run takes items and runs commands until there is nothing more to do, or a signal comes.
func (c *crew) run(ctx context.Context) error {
	taking, stop := context.WithCancelCause(ctx)
	c.stop = stop
	var wg sync.WaitGroup
	wg.Go(c.passOn)
	defer wg.Wait()
	defer close(c.gone)
	defer stop(nil)
	err := c.withItems(taking, func(taking context.Context, client *zk.Client, q *queue.Queue) error {
		return c.takeAll(ctx, taking, client, q)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	_, signal := errors.AsType[signalled](err)
	switch {
	case err != nil && !signal:
		return err
	case c.count > 0 && c.code != 0: // take exits as its command did
		exit := &exitError{code: c.code}
		if c.asked == os.Interrupt && c.code == ExitSignal+int(syscall.SIGINT) {
			exit.signal = syscall.SIGINT
		}
		return exit
	case c.killed:
		return signalled{c.asked}
	case signal && c.count == 0 && c.until.value == untilSignalled:
		return nil // what work waits for
	}
	return err
}

// withItems connects. "Take" gives up when the servers stay away; "work" waits for them.
func (c *crew) withItems(ctx context.Context, f func(context.Context, *zk.Client, *queue.Queue) error) error {
	if c.count > 0 {
		return c.withQueue(ctx, &c.connection, c.path, c.config(), f)
	}
	client, _, err := c.open(ctx, &c.connection)
	if err != nil {
		return err
	}
	defer client.Close() // the session ends by itself if it cannot be closed now
	cfg := c.config()
	cfg.ACL = c.connection.acl.list
	q, err := queue.New(client, c.path, cfg)
	if err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	err = f(ctx, client, q)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconnectWait)
	defer cancel()
	_ = q.Close(closing) // what cannot be given back now goes back when the session ends
	return c.connection.queueError(ctx, err, client.LastError())
}

// takeAll takes items and has commands run, and returns when they have ended.
func (c *crew) takeAll(ctx, taking context.Context, client *zk.Client, q *queue.Queue) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.onStop.value == onStopFinish {
		ctx = context.WithoutCancel(ctx)
	}
	sess, err := c.catchUp(taking, client)
	if err != nil {
		return err
	}
	c.mentionGrace(sess.Timeout())
	for n := 0; c.count == 0 || n < c.count; n++ {
		select {
		case c.slots <- struct{}{}:
		case <-taking.Done():
			return context.Cause(taking)
		}
		item, err := c.next(taking, q, n)
		switch {
		case errors.Is(err, errNothingLeft):
			return nil
		case err != nil && n == 0 && c.count > 0:
			return c.noItem(taking, client, q, err)
		case err != nil:
			return err
		}
		wg.Go(func() {
			defer c.free()
			c.work(ctx, item)
		})
	}
	wg.Wait()
	return c.failure(taking)
}

// failure is why the crew has stopped, if a command could not be started or an item not be acknowledged.
func (c *crew) failure(taking context.Context) error {
	if cause := context.Cause(taking); cause != nil {
		if _, ok := errors.AsType[signalled](cause); !ok {
			return cause
		}
	}
	return nil
}

var errNothingLeft = errors.New("nothing is left to do")

// next takes the next item.
func (c *crew) next(ctx context.Context, q *queue.Queue, n int) (*queue.Item, error) {
	switch {
	case c.count > 0 && n == 0:
		return c.first(ctx, q)
	case c.count > 0:
		item, err := q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			err = errNothingLeft
		}
		return item, err
	case c.until.value == untilSignalled:
		return q.Take(ctx)
	}
	for pause := lookFirst; ; pause = min(2*pause, lookMax) {
		item, err := q.TryTake(ctx)
		if !errors.Is(err, queue.ErrEmpty) {
			return item, err
		}
		if !c.busy() { // what our commands do may bring more
			if over, err := c.over(ctx, q); over || err != nil {
				return nil, cmp.Or(err, errNothingLeft)
			}
		}
		if item, err = c.await(ctx, q, pause); err == nil || ctx.Err() != nil {
			return item, err
		}
	}
}

// await takes an item, or gives up: when our commands have ended, or after a while if none runs.
func (c *crew) await(ctx context.Context, q *queue.Queue, pause time.Duration) (*queue.Item, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.whenIdle(cancel) {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, pause)
		defer stop()
	}
	item, err := q.Take(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return item, err
}

// over reports whether there is nothing left that --until waits for, now that no item is ready and no command runs.
func (c *crew) over(ctx context.Context, q *queue.Queue) (bool, error) {
	if c.until.value == untilIdle {
		return true, nil
	}
	for range 2 { // an item may move from one state to the other behind the back of one look
		n, err := q.Len(ctx)
		if err != nil || n.Ready+n.Delayed+n.Claimed > 0 {
			return false, err
		}
	}
	return true, nil
}

// busy reports whether commands run, beside the place that the next item has.
func (c *crew) busy() bool { return len(c.slots) > 1 }

// whenIdle has f called when no command runs any more. It returns false if none runs.
func (c *crew) whenIdle(f context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle = f; !c.busy() {
		c.idle = nil
	}
	return c.idle != nil
}

// free makes room for the next item.
func (c *crew) free() {
	<-c.slots
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil && !c.busy() {
		c.idle()
		c.idle = nil
	}
}

// work runs the command for an item, and does with the item what the command's end says.
func (c *crew) work(ctx context.Context, item *queue.Item) {
	values := context.WithoutCancel(ctx)
	s := &supervisor{
		runner: &c.runner, hold: claim{item}, input: bytes.NewReader(item.Body()), apart: true, more: itemEnvironment(item),
		signals: &signals{ch: make(chan os.Signal, 64)}, began: c.begin,
	}
	begin := time.Now()
	if !c.enter(s) {
		_ = item.Return(values, 0) // goes back when the session ends otherwise
		return
	}
	err := s.command(ctx, c.program)
	c.end(s)
	if err != nil {
		_ = item.Return(values, 0) // goes back when the session ends otherwise
		c.stop(err)
		return
	}
	err = c.settle(values, item, s, time.Since(begin))
	if errors.Is(err, queue.ErrClaimLost) {
		s.lost, err = err, nil
		c.exits(ExitLost)
		c.say("%s: item %s: its claim was lost, and it is delivered again: %v", c.path, item.ID(), s.lost)
	}
	if err != nil {
		c.stop(err)
	}
}

// settle does with an item what the end of its command says.
func (c *crew) settle(ctx context.Context, item *queue.Item, s *supervisor, took time.Duration) error {
	code := s.child.code
	switch {
	case s.lost != nil:
		_ = item.Return(ctx, 0) // the claim may hold after all; if not, the item goes back anyway
		return fmt.Errorf("%w: %w", queue.ErrClaimLost, s.lost)
	case code == 0:
		if err := item.Done(ctx); err != nil {
			return err
		}
		c.detail("%s: item %s: done after %v", c.path, item.ID(), took.Round(time.Millisecond))
		return nil
	}
	c.exits(code)
	switch {
	case s.called || c.interrupting():
		c.detail("%s: item %s: interrupted after %v, given back", c.path, item.ID(), took.Round(time.Millisecond))
		return item.Return(ctx, 0)
	case code == exitRetry:
		c.detail("%s: item %s: not now, again in %v", c.path, item.ID(), time.Duration(c.retryDelay))
		return item.Return(ctx, time.Duration(c.retryDelay))
	}
	reason := fmt.Errorf("%s: exit code %d", c.name(), code)
	if code > ExitSignal {
		reason = fmt.Errorf("%w (signal %d)", reason, code-ExitSignal)
	}
	switch {
	case c.attempts == 0:
		c.say("%s: item %s: %v, attempt %d", c.path, item.ID(), reason, item.Attempt())
	case item.Attempt() < c.attempts:
		c.say("%s: item %s: %v, attempt %d of %d", c.path, item.ID(), reason, item.Attempt(), c.attempts)
	default:
		c.say("%s: item %s: %v, attempt %d of %d: a dead letter now", c.path, item.ID(), reason, item.Attempt(), c.attempts)
	}
	return item.Fail(ctx, reason)
}

// exits remembers what a command has exited with.
func (c *crew) exits(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.code == 0 {
		c.code = code
	}
}

// enter has a command get the signals that come from now on, which wait until it was started. It returns false if we are to end.
func (c *crew) enter(s *supervisor) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked != nil {
		return false
	}
	c.running[s] = false
	return true
}

// interrupting reports whether signals have been passed on that end commands.
func (c *crew) interrupting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked != nil && c.onStop.value == onStopSignal || c.killed
}

// begin says that a command was started.
func (c *crew) begin(s *supervisor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[s] = true
}

func (c *crew) end(s *supervisor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, s)
}

// passOn does what signals say.
func (c *crew) passOn() {
	for {
		select {
		case <-c.gone:
			return
		case sig := <-c.signals.ch:
			c.heed(sig)
		}
	}
}

func (c *crew) heed(sig os.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stops := callsOff(sig) || sig == syscall.SIGHUP
	switch {
	case stops && c.asked == nil:
		c.asked = sig
		c.stop(signalled{sig})
		if n := len(c.running); n > 0 {
			c.say("%s: %v: no more items, %s at work; the next signal kills", c.path, sig, plural(n, "command"))
		}
		if c.onStop.value == onStopFinish {
			return
		}
	case stops:
		c.killed = true
		sig = os.Kill
	case c.terminal.suspends(sig):
		c.terminal.suspendAll(c.signals, c.running)
		return
	}
	for s := range c.running {
		select {
		case s.signals.ch <- sig:
		default: // it has not looked at the last 64
		}
	}
}
