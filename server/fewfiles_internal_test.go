//go:build linux

package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// fewFilesEnv makes TestServerWithFewDescriptorsOutlivesAFlood the server, with a data directory.
const fewFilesEnv = "TURNSTILE_SERVER_FEW_FILES"

func TestServerWithFewDescriptorsOutlivesAFlood(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(fewFilesEnv); dir != "" {
		serveWithFewFiles(t, dir)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), fewFilesEnv+"="+filepath.Join(t.TempDir(), "data"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	var addr, admin string
	if _, err := fmt.Fscan(said, &addr, &admin); err != nil {
		t.Fatal(err)
	}
	open := func(addr string) net.Conn {
		nc, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return nc
	}
	ask := appendFrame(nil, &wire.ConnectRequest{SessionID: 99, Timeout: 4000, Password: make([]byte, 16)})
	for range 400 { // peers that do not close after their last reply, and idle ones at the other port
		_, _ = open(addr).Write(ask)
		open(admin)
	}
	_ = in.Close()
	rest, _ := io.ReadAll(said)
	if err := cmd.Wait(); err != nil || !strings.Contains(string(rest), "PASS") {
		t.Errorf("the server: %v\n%s", err, rest)
	}
}

// serveWithFewFiles is a server that may open few files. When the flood is over it writes enough for new logs and
// tables.
func serveWithFewFiles(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 200, Max: 200}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, Config{Data: dir, AdminListen: "127.0.0.1:0", MaxClientConns: Unlimited}, disk{memory: 256 << 10})
	fmt.Println(s.Addrs()[0], s.AdminAddr())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		if err := s.doDurably(func(o *owner) {
			r := o.tree.Write(o.nextZxid(), 1, nil, wire.OpCreate, &wire.CreateRequest{
				Path: fmt.Sprintf("/n%d", i), Data: make([]byte, 100_000), ACL: openACL,
			})
			o.record(&r)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Err(), s.Close()); err != nil {
		t.Errorf("got %v, want a server that has gone on", err)
	}
}
