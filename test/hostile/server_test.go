//go:build linux

package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// process is "turnstile serve" with its default limits.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	// admin is the address of the HTTP commands.
	admin string
	data  string
	log   bytes.Buffer
}

// serve builds the command and starts it. It ends with the test.
func serve(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	exe, users := filepath.Join(dir, "turnstile"), filepath.Join(dir, "users")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", exe,
		"github.com/seed-a3166700/turnstile/cmd/turnstile")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as releases are
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(users, []byte("guest:right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, data: filepath.Join(dir, "data"), admin: peer.FreeAddr(t)}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), exe, "serve",
		"--listen", "127.0.0.1:0", "--data", p.data, "--sasl-users", users, "--words", "*", "--admin", p.admin)
	p.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the server says:\n%s", p.log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, err2 := fmt.Sscanf(line, "serving %s", &p.addr); err != nil || err2 != nil {
		t.Fatalf("the server does not serve: %q %v\n%s", line, err, p.log.String())
	}
	return p
}

// stop ends the server as an operator does.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(unix.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the server has not ended cleanly: %v", err)
	}
}

func (p *process) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), name)
}

// peak returns the most memory that the server has had since the last call, in MiB.
func (p *process) peak() int {
	p.t.Helper()
	text, err := os.ReadFile(p.proc("status"))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, err := strconv.Atoi(number)
	if err != nil {
		p.t.Fatalf("no VmHWM in %s", text)
	}
	if err := os.WriteFile(p.proc("clear_refs"), []byte("5"), 0); err != nil { // forgets it
		p.t.Fatal(err)
	}
	return kb >> 10
}

// descriptors returns how many the server has, without the files of its data, which are as many as there are data.
func (p *process) descriptors() int {
	p.t.Helper()
	entries, err := os.ReadDir(p.proc("fd"))
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(p.proc("fd"), e.Name()))
		if err == nil && !strings.HasPrefix(link, p.data) {
			n++
		}
	}
	return n
}

// hits returns the limits that clients have met, as mntr tells, and how often.
func (p *process) hits() map[string]int {
	p.t.Helper()
	nc, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "mntr"); err != nil {
		p.t.Fatal(err)
	}
	text, err := io.ReadAll(nc)
	if err != nil {
		p.t.Fatal(err)
	}
	hits := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name, isLimit := strings.CutPrefix(key, "zk_limit_")
		if name, isHits := strings.CutSuffix(name, "_hits"); isLimit && isHits {
			n, err := strconv.Atoi(value)
			if err != nil {
				p.t.Fatal(err)
			}
			hits[name] = n
		}
	}
	return hits
}

// attackers starts the attackers of that name. It returns what stops them and tells what they have done.
func (p *process) attackers(name string, seed uint64) (stop func() (connections, megabytes int)) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %s", attackEnv, p.addr, p.admin, seed, name))
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if _, err := said.ReadString('\n'); err != nil { // an attack lasts from its first connection on
		p.t.Fatalf("%s: nobody attacks: %v", name, err)
	}
	return func() (connections, megabytes int) {
		p.t.Helper()
		_ = in.Close()
		var bytes int64
		_, err := fmt.Fscan(said, &connections, &bytes)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
		return connections, int(bytes >> 20)
	}
}

// settled waits until the server has that many descriptors, and returns how many it has if it takes too long: a hang,
// not slowness.
func (p *process) settled(want int) int {
	p.t.Helper()
	for range 1200 {
		if p.descriptors() == want {
			return want
		}
		time.Sleep(100 * time.Millisecond) // nobody tells when another process has closed its files
	}
	return p.descriptors()
}
