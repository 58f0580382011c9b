package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// A daemon is a server that runs as a process of its own.
type daemon struct {
	addr string
	pid  int
	took time.Duration // from the start of the process to its first answer
	cmd  *exec.Cmd
	done chan struct{} // closed by the goroutine that waits for the process
}

// startDaemon starts a server, which ends with its host, and returns when ask, repeated, gets an answer from it.
func startDaemon(ctx context.Context, host *peer.Host, dir, addr string, ask func(context.Context, string) error,
	program string, args ...string,
) (*daemon, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	d := &daemon{addr: addr, cmd: exec.CommandContext(ctx, program, args...), done: make(chan struct{})}
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = dir, log, log
	d.cmd.SysProcAttr = dieWithParent()
	start := time.Now()
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that forked it ends, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // ended by stop, as a rule; await finds out if it was not
		}
		close(d.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := d.await(ctx, ask); err != nil {
		d.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	host.Cleanup(d.stop)
	d.took, d.pid = time.Since(start), d.cmd.Process.Pid
	return d, nil
}

func (d *daemon) await(ctx context.Context, ask func(ctx context.Context, addr string) error) error {
	ctx, cancel := context.WithTimeout(ctx, measure.StartLimit)
	defer cancel()
	for {
		err := ask(ctx, d.addr)
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return errors.New("it has ended")
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(time.Millisecond):
		}
	}
}

// stop ends the server, and returns when it has ended.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone already
	select {
	case <-d.done:
		return
	case <-time.After(5 * time.Second):
	}
	_ = d.cmd.Process.Kill()
	<-d.done
}

func freeAddr(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
