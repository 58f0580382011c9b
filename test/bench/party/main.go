//go:build unix

// Command party holds and contends for go-zookeeper's Lock, or etcd's concurrency.Mutex, as told on standard input. The
// package comment of partitions has the commands. It is in this module so that the main one does not depend on those
// projects.
//
// usage: party go-zookeeper|etcd
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A holder is a client with one lock.
type holder interface {
	// Lock acquires, and has told and lost called when it hears that the hold may be over, and that it is.
	lock(ctx context.Context, path string, told, lost func(why string)) error
	unlock(ctx context.Context) error
}

// open connects to servers with a session of so long, or takes the connection of the same name.
type open func(ctx context.Context, name string, servers []string, timeout time.Duration) (holder, error)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "party:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	opens := map[string]open{"go-zookeeper": newGoZooKeeper().open, "etcd": newEtcd().open}
	if len(args) != 1 || opens[args[0]] == nil {
		return errors.New("usage: party go-zookeeper|etcd")
	}
	p := &party{leaving: make(map[string]chan struct{})}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 2 && words[0] == "leave" && p.leaving[words[1]] != nil:
			close(p.leaving[words[1]])
		case len(words) == 8 && words[0] == "join":
			ms, err := strconv.Atoi(words[7])
			if err != nil {
				return err
			}
			h, err := opens[args[0]](ctx, words[2], strings.Split(words[4], ","), time.Duration(ms)*time.Millisecond)
			if err != nil {
				return err
			}
			leave := make(chan struct{})
			p.leaving[words[1]] = leave
			go p.join(ctx, words[1], h, words[6], leave)
		default:
			return fmt.Errorf("no such command: %q", lines.Text())
		}
	}
	return lines.Err() // the sessions end by themselves
}

type party struct {
	leaving map[string]chan struct{} // to be closed by who asks to leave
	mu      sync.Mutex               // guards standard output
}

func (p *party) join(ctx context.Context, name string, h holder, path string, leave <-chan struct{}) {
	event := func(what string) func(string) { return func(why string) { p.report(name, what, why) } }
	if err := h.lock(ctx, path, event("told"), event("lost")); err != nil {
		p.report(name, "gone", err.Error())
		return
	}
	p.report(name, "acquired", "")
	<-leave
	p.report(name, "told", "released")
	if err := h.unlock(ctx); err != nil {
		p.report(name, "gone", err.Error())
		return
	}
	p.report(name, "left", "ok")
}

func (p *party) report(name, what, why string) {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Unix has it
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Println(name, what, now.Nano(), why)
}
