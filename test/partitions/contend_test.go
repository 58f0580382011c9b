//go:build unix

package partitions_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// pollEvery is how often a party checks every hold's context, besides waiting for its end.
	pollEvery = 2 * time.Millisecond

	// standstill is the distance of two checks from which on the process counts as one that has stood still between
	// them. It could use nothing that it held in that time.
	standstill = 25 * pollEvery
)

// A contest is a party of ours, as it sees itself.
type contest struct {
	ctx context.Context //nolint:containedctx // of the process
	wg  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	out     io.Writer
	clients map[string]*gate
	holding map[string]*contender
}

// A gate is a client that uses some servers until it has acquired something, and others from then on.
type gate struct {
	*zk.Client
	first []string
	then  string // the servers to move to after the acquisition; "" if one of the first is among them
	free  atomic.Bool
}

type contender struct {
	held
	name  string
	told  sync.Once
	leave sync.Once
	given atomic.Int64 // when it was asked to release what it still held; 0 if it was not
	alive atomic.Int64 // when its context was last seen alive
}

// contend executes the commands of in until it ends. See the package comment.
func contend(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &contest{ctx: ctx, out: out, clients: make(map[string]*gate), holding: make(map[string]*contender)}
	c.wg.Go(c.poll)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 8 && words[0] == "join":
			client, err := c.client(words[2], words[4], words[5], words[7])
			if err != nil {
				return err
			}
			c.wg.Go(func() { c.join(words[1], client, acquires[words[3]], words[6]) })
		case len(words) == 2 && words[0] == "leave":
			c.wg.Go(func() { c.leave(words[1]) })
		default:
			return fmt.Errorf("unknown command %q", lines.Text())
		}
	}
	cancel()
	c.mu.Lock()
	clients := c.clients
	c.mu.Unlock()
	for _, client := range clients {
		_ = client.Close() // what it holds ends with its session
	}
	c.wg.Wait()
	return lines.Err()
}

func (c *contest) report(name, event string, at int64, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, name, event, at, strings.ReplaceAll(why, "\n", "; "))
}

func (c *contest) client(name, first, then, ms string) (*gate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.clients[name]; g != nil {
		return g, nil
	}
	timeout, err := strconv.Atoi(ms)
	if err != nil {
		return nil, err
	}
	g, servers := &gate{first: strings.Split(first, ",")}, then
	if !slices.ContainsFunc(g.first, func(address string) bool { return strings.Contains(then, address) }) {
		servers, g.then = first, then
	}
	g.Client, err = zk.Open(c.ctx,
		zk.Config{Servers: servers, Timeout: time.Duration(timeout) * time.Millisecond, Dial: g.dial})
	c.clients[name] = g
	return g, err
}

var errNotYet = errors.New("not to be used before the acquisition")

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !g.free.Load() && !slices.Contains(g.first, address) {
		return nil, errNotYet
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (c *contest) join(name string, client *gate, acquire acquire, path string) {
	h, err := acquire(c.ctx, client.Client, path)
	at := clock()
	if err != nil {
		c.report(name, "failed", at, err.Error())
		return
	}
	k := &contender{name: name, held: h}
	k.alive.Store(at)
	c.mu.Lock()
	c.holding[name] = k // before the report: "leave" may answer it at once
	c.mu.Unlock()
	c.report(name, "acquired", at, "")
	if client.free.Store(true); client.then != "" {
		if err := client.SetServers(client.then); err != nil {
			c.report(name, "failed", clock(), err.Error())
			return
		}
	}
	<-h.ctx.Done()
	c.told(k, clock())
	c.left(k)
}

// poll detects the end of contexts as a program that does not wait for it.
func (c *contest) poll() {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		var over []*contender
		for _, k := range c.holding {
			if looked := clock(); k.ctx.Err() == nil {
				k.alive.Store(looked)
			} else {
				over = append(over, k)
			}
		}
		c.mu.Unlock()
		now := clock()
		for _, k := range over {
			c.told(k, now)
		}
	}
}

// told reports when the context ended: at the time of the first detection, or when the contender gave up what it held.
// That ends the context before others are admitted, but they may be quicker than a detection. A process that has stood
// still for a while before the detection, on a busy machine, was late to look, not late to be told: it reports when it
// last saw the context alive.
func (c *contest) told(k *contender, at int64) {
	k.told.Do(func() {
		why, given, alive := context.Cause(k.ctx).Error(), k.given.Load(), k.alive.Load()
		switch stood := time.Duration(at - alive); {
		case given != 0:
			at = given
		case stood > standstill:
			at, why = alive, fmt.Sprintf("%s, seen after a standstill of %v", why, stood)
		}
		c.mu.Lock()
		delete(c.holding, k.name)
		c.mu.Unlock()
		c.report(k.name, "told", at, why)
	})
}

func (c *contest) leave(name string) {
	c.mu.Lock()
	k := c.holding[name]
	c.mu.Unlock()
	if k != nil { // otherwise it has been told, and leaves by itself
		c.left(k)
	}
}

// left releases once: on command, or when the hold is over.
func (c *contest) left(k *contender) {
	k.leave.Do(func() {
		leave := k.held.leave
		switch {
		case k.ctx.Err() == nil:
			k.given.Store(clock())
		case k.late != nil:
			leave = k.late
		}
		result := "ok"
		if err := leave(context.WithoutCancel(c.ctx)); err != nil {
			result = err.Error()
		}
		if k.session.Err() == nil { // so it is not the session's end that admits another contender
			c.report(k.name, "released", clock(), "")
		}
		c.report(k.name, "left", clock(), result)
	})
}
