package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The session timeouts of queue users. ZooKeeper's own queue fails with its connection, so only victims have a short
// one.
const (
	queueSession  = 30 * time.Second
	victimSession = 12 * time.Second // a killed consumer keeps its items locked for this long
)

const queuePatience = 2 * time.Minute

// A queuePeer is a process with another project's queues. It reads one command a line and answers each with one line:
//
//	open NAME KIND PATH LOCKS    open a queue and call it NAME; LOCKS is - without a lock path
//	put NAME ARG BODY…           ARG is the priority, the time in milliseconds or the id, or - without any
//	consume NAME                 from now on print "got NAME BODY" for each item, between the answers
//	stop NAME                    stop consuming
//
// Queues have some of these commands, too, whose answer is "ok" if none is given:
//
//	peek NAME, poll NAME         "item BODY", or "none"
//	element NAME, remove NAME    "item BODY", or "empty"
//	take NAME                    "item BODY", when there is an item
//	pollfor NAME                 the same
//	pollbriefly NAME             the same, but "none" after a moment
//	len NAME                     the number of items
//	remove NAME ID               "removed COUNT"
//	get NAME                     "item BODY", when there is an item, which is now in progress
//	holds NAME                   whether the peer still has the item in progress: "yes", or "no"
//	done NAME                    finish it
//	release NAME                 give it back, to its old place
//	requeue NAME                 fail and put it again: Curator's ErrorMode.REQUEUE
//	drop NAME                    fail and drop it: Curator's ErrorMode.DELETE
type queuePeer struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers chan string
	ended   chan struct{} // closed when the process has ended its output

	mu  sync.Mutex // guards got
	got map[string]chan string
}

func javaQueues(t *testing.T, h *host, session time.Duration) *queuePeer {
	t.Helper()
	return startQueuePeer(t, "java", ownArgs(t, "QueuePeer", h.addr, millis(session))...)
}

func kazooQueues(t *testing.T, h *host, session time.Duration) *queuePeer {
	t.Helper()
	return startQueuePeer(t, python, "testdata/queue_peer.py", h.addr, millis(session))
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func startQueuePeer(t *testing.T, program string, args ...string) *queuePeer {
	t.Helper()
	p := &queuePeer{answers: make(chan string), ended: make(chan struct{}), got: map[string]chan string{}}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	p.cmd.WaitDelay = time.Second
	p.cmd.Stderr = t.Output()
	var err error
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.answers)
		defer close(p.ended)
		p.read(out)
	}()
	t.Cleanup(func() {
		p.kill()
		for range p.answers { // so that the reader ends
		}
		_ = p.cmd.Wait() // it was killed
	})
	return p
}

func (p *queuePeer) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		rest, item := strings.CutPrefix(lines.Text(), "got ")
		if !item {
			p.answers <- lines.Text()
			continue
		}
		name, body, _ := strings.Cut(rest, " ")
		p.items(name) <- body
	}
}

// items returns the channel of a consumed queue's items.
func (p *queuePeer) items(name string) chan string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.got[name] == nil {
		p.got[name] = make(chan string, 1<<16)
	}
	return p.got[name]
}

// kill ends the process as kill -9 does.
func (p *queuePeer) kill() { _ = p.cmd.Process.Kill() } // it fails only if the process is gone

// order sends a command on behalf of t and returns the answer.
func (p *queuePeer) order(t *testing.T, format string, args ...any) string {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(p.orders, line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	select {
	case answer, ok := <-p.answers:
		if !ok {
			t.Fatalf("%s: the peer's process has ended", line)
		}
		if strings.HasPrefix(answer, "failed") {
			t.Fatalf("%s: %s", line, answer)
		}
		return answer
	case <-time.After(queuePatience):
		t.Fatalf("%s: got no answer", line)
		return ""
	}
}

// next returns the next item that the peer has consumed from a queue.
func (p *queuePeer) next(t *testing.T, name string) string {
	t.Helper()
	select {
	case body := <-p.items(name):
		return body
	case <-p.ended:
		t.Fatalf("%s: the peer's process has ended", name)
	case <-time.After(queuePatience):
		t.Fatalf("%s: got no item from the peer", name)
	}
	return ""
}
