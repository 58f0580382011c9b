package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// workerSession is the session timeout of workers, in milliseconds. A killed worker blocks the line for so long. If
// the machine stalls a worker for so long, the referee sees two inside, because most peers do not check the clock.
const workerSession = 12_000

// patientSession is that of workers that are not killed before their test is over. It outlasts every stall: not every
// peer notices that its session has expired.
const patientSession = 40000

// buildLimit is how long a compiler may take on a busy machine.
const buildLimit = 10 * time.Minute

// A contest is a path and its contenders.
type contest struct {
	servers string
	path    string
	session int // the workers' timeout, in milliseconds
	referee *referee
}

// A side is one process of contenders, which can be killed and restarted. Only one goroutine uses it.
type side struct {
	name       string // for the referee
	kind       string // the language and the recipe: "java mutex"
	contenders int    // in the process
	write      bool   // whether readers/writers only write
	run        *running
}

type running struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	done   chan struct{} // closed when the process has ended
	err    error         // why it ended; set before done is closed
}

// start starts the side's process.
//
// Every worker gets the same arguments: the servers, the referee, its party's name, the path, the recipe, the session
// timeout, the number of its contenders, and the number of permits. It exits with status 0 when all its contenders
// were dismissed.
func (s *side) start(t *testing.T, c contest) {
	t.Helper()
	language, what, _ := strings.Cut(s.kind, " ")
	if s.write && strings.HasPrefix(what, "rwlock") {
		what += ":write"
	}
	args := []string{
		c.servers, c.referee.listener.Addr().String(), s.name, c.path, what,
		strconv.Itoa(c.session), strconv.Itoa(s.contenders), strconv.Itoa(c.referee.limit),
	}
	ctx := context.WithoutCancel(t.Context()) // cleanups end it
	var cmd *exec.Cmd
	switch language {
	case "java":
		cmd = exec.CommandContext(ctx, "java", ownArgs(t, "Worker", args...)...)
	case "kazoo":
		cmd = exec.CommandContext(ctx, python, append([]string{"testdata/kazoo_worker.py"}, args...)...)
	case "gozk":
		cmd = exec.CommandContext(ctx, gozk(t), args...)
	default:
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.CommandContext(ctx, self, args...)
		cmd.Env = append(os.Environ(), workerEnv+"=1")
	}
	r := &running{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.output, &r.output
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if s.run == nil {
		t.Cleanup(s.kill)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.done)
		c.referee.set(func() {}) // wake those that wait for a contender of this process
	}()
	s.run = r
}

// kill ends the process as kill -9 does.
func (s *side) kill() {
	_ = s.run.cmd.Process.Kill() // it fails only if the process is gone
	<-s.run.done
}

// finish waits until the process ends by itself, which it does when its contenders were dismissed.
func (s *side) finish(limit <-chan time.Time) error {
	select {
	case <-s.run.done:
		return s.failure()
	case <-limit:
		s.kill()
		return fmt.Errorf("%s does not finish; it printed\n%s", s.name, s.run.output.String())
	}
}

// ended reports whether the process has ended.
func (s *side) ended() bool {
	select {
	case <-s.run.done:
		return true
	default:
		return false
	}
}

// failure returns what went wrong in a process that has ended, or nil.
func (s *side) failure() error {
	if s.run.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; it printed\n%s", s.name, s.run.err, s.run.output.String())
}

var building sync.Mutex // guards the build of go-zookeeper's worker

// gozk builds the worker that uses go-zookeeper. It belongs to the benchmarks' module, so that our users do not
// depend on that project.
func gozk(t *testing.T) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if gozkBinary == "" {
		binary := filepath.Join(suiteDir, "gozk")
		run(t, buildLimit, "go", "-C", "../bench", "build", "-o", binary, "./gozk")
		gozkBinary = binary
	}
	return gozkBinary
}
