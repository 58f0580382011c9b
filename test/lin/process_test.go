//go:build unix

package lin_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// process is a worker process, as the test sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string        // the file with its error output
	calm  chan struct{} // closed when it holds nothing any more, or has ended
	ended chan struct{} // closed when its output has ended
	wait  func() error  // for its end; any number of times
}

// errRace is the failure of a worker in which the race detector has found something.
var errRace = errors.New("it has a data race")

// startProcess starts exe as a worker that reports to j.
func startProcess(exe string, o orders, j journal, dir string) (*process, error) {
	encoded, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd: exec.Command(exe), calm: make(chan struct{}), ended: make(chan struct{}),
		log: filepath.Join(dir, fmt.Sprintf("worker-%d.log", o.First)),
	}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(encoded))
	// A process group whose parent dies becomes orphaned, and the kernel then wakes and ends the stopped processes in
	// it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.wait = sync.OnceValue(p.cmd.Wait)
	go p.read(out, j)
	return p, nil
}

func (p *process) read(out io.Reader, j journal) {
	defer close(p.ended)
	calm := false
	defer func() {
		if !calm {
			close(p.calm)
		}
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r report
		switch {
		case json.Unmarshal(lines.Bytes(), &r) != nil: // the last line of a killed worker may be incomplete
		case r.Place != "":
			j.note(r)
		case !calm:
			calm = true
			close(p.calm)
		}
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it fails only if the process has ended

// calmDown makes the worker finish: every goroutine acquires every lock once more and then stops.
func (p *process) calmDown() { _, _ = fmt.Fprintln(p.stdin, "calm") }

// awaitCalm waits until the worker holds nothing.
func (p *process) awaitCalm(within time.Duration) error {
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case <-p.calm:
	case <-limit.C:
		return fmt.Errorf("not all were served within %v after the faults; what they waited for is in %s", within,
			p.log)
	}
	select {
	case <-p.ended:
		return fmt.Errorf("worker ended by itself (%w); see %s", p.wait(), p.log)
	default:
		return nil
	}
}

// dump ends the worker and makes it print its goroutines.
func (p *process) dump() {
	p.signal(syscall.SIGQUIT)
	<-p.ended
	_ = p.wait()
}

// end makes the worker close its sessions, and waits for it. It returns an error if the worker has failed.
func (p *process) end() error {
	_ = p.stdin.Close()
	<-p.ended
	if err := errors.Join(p.wait(), p.race()); err != nil {
		return fmt.Errorf("worker failed: %w; see %s", err, p.log)
	}
	return nil
}

// kill ends the worker as kill -9 does. It returns an error if the worker had ended by itself, or had failed before.
func (p *process) kill() error {
	_ = p.cmd.Process.Kill() // it fails only if the process has ended
	<-p.ended
	err := p.wait()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		err = nil
	} else if err == nil {
		err = errors.New("it had ended")
	}
	if err := errors.Join(err, p.race()); err != nil {
		return fmt.Errorf("worker failed before it was killed: %w; see %s", err, p.log)
	}
	return nil
}

// race returns an error if the race detector has reported a data race. The worker's status tells only of those that
// end by themselves.
func (p *process) race() error {
	log, err := os.ReadFile(p.log)
	if err == nil && bytes.Contains(log, []byte("WARNING: DATA RACE")) {
		err = errRace
	}
	return err
}
