//go:build unix

package partitions_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// A project has locks that its programs hold and contend for.
type project struct {
	name      string
	kinds     []kind
	variants  int  // 1: holders are pinned to their server; 2: other holders are free to leave it
	processes bool // the holders of each session timeout have a process of their own, which can be stopped
	start     func(t *testing.T, tell *journal) *party
	clean     func(t *testing.T, root string) // checks that nothing is left below root; nil for other projects
}

// ours is this project: each party is the test binary.
var ours = project{
	name: "Turnstile", kinds: kinds, variants: 2, processes: true,
	start: func(t *testing.T, tell *journal) *party {
		t.Helper()
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), partyEnv+"=1")
		return startParty(t, cmd, tell)
	},
}

// A party is a process with contenders.
type party struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer // readable after done is closed
	done   chan struct{}
}

// startParty starts a program that follows the package comment. It ends with the test.
func startParty(t *testing.T, cmd *exec.Cmd, tell *journal) *party {
	t.Helper()
	p := &party{cmd: cmd, done: make(chan struct{})}
	// A process group whose parent dies becomes orphaned, and the kernel then wakes and ends the stopped processes in
	// it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			tell.note(lines.Text())
		}
		if err := cmd.Wait(); err != nil {
			tell.note(fmt.Sprintf("party failed 0 %v: %s", err, p.stderr.String()))
		}
	}()
	t.Cleanup(func() {
		_ = p.stdin.Close()
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	return p
}

func (p *party) say(t *testing.T, words ...string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.stdin, strings.Join(words, " ")); err != nil {
		t.Fatalf("party ended: %v", err)
	}
}

func (p *party) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// clock is the clock of reports.
var clock = peer.Clock

// An event is a report of a party.
type event struct {
	at  int64
	why string
}

// A journal has the reports of a run's parties.
type journal struct {
	mu      sync.Mutex // guards the fields below
	events  map[string]event
	failed  []string
	changed chan struct{}
}

func newJournal() *journal {
	return &journal{events: make(map[string]event), changed: make(chan struct{})}
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	words := strings.SplitN(line, " ", 4)
	at, err := int64(0), error(nil)
	if len(words) > 2 {
		at, err = strconv.ParseInt(words[2], 10, 64)
	}
	switch {
	case len(words) < 3 || err != nil:
		j.failed = append(j.failed, "unexpected report: "+line)
	case words[1] == "failed":
		j.failed = append(j.failed, line)
	default:
		e := event{at: at}
		if len(words) == 4 {
			e.why = words[3]
		}
		if key := words[0] + " " + words[1]; j.events[key] == (event{}) {
			j.events[key] = e
		}
	}
	close(j.changed)
	j.changed = make(chan struct{})
}

// get returns a contender's first report of what: acquired, told, lost or left.
func (j *journal) get(name, what string) (event, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.events[name+" "+what]
	return e, ok
}

// await waits until all contenders have reported what, or have failed. It returns those that have not when the time
// is over.
func (j *journal) await(names []string, what string, limit time.Duration) (missing []string, failed error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	for over := false; ; {
		j.mu.Lock()
		missing = missing[:0]
		for _, name := range names {
			if _, ok := j.events[name+" "+what]; !ok {
				missing = append(missing, name)
			}
		}
		changed := j.changed
		if len(j.failed) > 0 {
			failed = fmt.Errorf("%s", strings.Join(j.failed, "\n"))
		}
		j.mu.Unlock()
		if len(missing) == 0 || failed != nil || over {
			return missing, failed
		}
		select {
		case <-changed:
		case <-end.C:
			over = true
		}
	}
}
