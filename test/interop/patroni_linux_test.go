package interop_test

// Programs that are made of other projects' clients, on turnstile serve: Patroni, tooz, and the C client's shell.

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/server"
)

// Promise: 11
func TestToozFindsMembersAndLeaders(t *testing.T) {
	t.Parallel()
	peer.Need(t, python, "/usr/lib/python3/dist-packages/tooz/__init__.py")
	h := ours(t, server.Config{Data: t.TempDir()})
	if out := run(t, time.Minute, python, "testdata/tooz_groups.py", h.addr); !strings.HasSuffix(out, "done\n") {
		t.Errorf("got %q", out)
	}
}

// Promise: 11
func TestShellOfTheCClientWorks(t *testing.T) {
	t.Parallel()
	const shell = "/usr/lib/zookeeper/bin/cli_mt"
	peer.Need(t, shell)
	h := ours(t, server.Config{Data: t.TempDir()})
	run(t, time.Minute, shell, "-h", h.addr, "-c", "create /c")
	run(t, time.Minute, shell, "-h", h.addr, "-c", "set /c text")
	if out := run(t, time.Minute, shell, "-h", h.addr, "-c", "get /c"); !strings.Contains(out, "text") {
		t.Errorf("got %q", out)
	}
}

// patroniConfig is Patroni's, with its shortest times. The arguments are name, port of its REST interface, address of
// the server, directory, and port of PostgreSQL.
const patroniConfig = `scope: demo
name: %[1]s
restapi: {listen: "127.0.0.1:%[2]d", connect_address: "127.0.0.1:%[2]d"}
zookeeper: {hosts: ["%[3]s"]}
bootstrap:
  dcs: {ttl: 20, loop_wait: 1, retry_timeout: 3}
  initdb: [{encoding: UTF8}, {auth: trust}, no-sync]
  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication all 127.0.0.1/32 trust]
postgresql:
  listen: 127.0.0.1:%[5]d
  connect_address: 127.0.0.1:%[5]d
  data_dir: %[4]s/data
  bin_dir: /usr/lib/postgresql/15/bin
  pgpass: %[4]s/pgpass
  authentication: {superuser: {username: postgres}, replication: {username: replicator}}
  parameters: {unix_socket_directories: %[4]s, fsync: "off", shared_buffers: 16MB, max_connections: 20}
`

// A patroniNode is one PostgreSQL server and the Patroni that runs it.
type patroniNode struct {
	t        *testing.T
	dir      string
	rest, pg int
	cmd      *exec.Cmd
}

// startPatroni starts a node as the user postgres: PostgreSQL refuses to run as root.
func startPatroni(t *testing.T, name, server string) *patroniNode {
	t.Helper()
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(owner.Gid)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "patroni-") //nolint:usetesting // short enough for a socket, and open to postgres
	if err != nil {
		t.Fatal(err)
	}
	n := &patroniNode{t: t, dir: dir, rest: freePort(t), pg: freePort(t)}
	config := filepath.Join(dir, "patroni.yml")
	text := fmt.Sprintf(patroniConfig, name, n.rest, server, dir, n.pg)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), "patroni", config)
	n.cmd.Stdout, n.cmd.Stderr, n.cmd.Dir = log, log, dir
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("log of %s:\n%s", name, text)
		}
		_ = os.RemoveAll(dir)
	})
	return n
}

func freePort(t *testing.T) int {
	t.Helper()
	_, text, err := net.SplitHostPort(peer.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// kill ends Patroni and its PostgreSQL as a power failure would.
func (n *patroniNode) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	text, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if pid, err := strconv.Atoi(line); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// await waits until the node says that it is in a role: leader or replica.
func (n *patroniNode) await(role string) {
	n.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); {
		url := fmt.Sprintf("http://127.0.0.1:%d/%s", n.rest, role)
		req, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			n.t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(100 * time.Millisecond) // real: Patroni is another process
	}
	n.t.Fatalf("the node is no %s", role)
}

func (n *patroniNode) sql(query string) string {
	n.t.Helper()
	return run(n.t, time.Minute, "psql", "-h", "127.0.0.1", "-p", strconv.Itoa(n.pg), "-U", "postgres", "-Atc", query)
}

// PostgreSQL's leader dies, and Patroni makes the replica the leader, by the nodes that it keeps at the server. Only in
// make soak: the leader's session lives for 20 s.
//
// Promise: 11
func TestPatroniFailsOver(t *testing.T) {
	t.Parallel()
	if !soak.All() {
		return
	}
	peer.Need(t, "patroni", "/usr/lib/postgresql/15/bin/postgres")
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can run PostgreSQL as another user")
	}
	h := ours(t, server.Config{Data: t.TempDir()})
	first := startPatroni(t, "first", h.addr)
	first.await("leader")
	second := startPatroni(t, "second", h.addr)
	second.await("replica")
	first.sql("create table t (x int)")
	first.sql("insert into t values (7)")
	lsn := strings.TrimSpace(first.sql("select pg_current_wal_lsn()"))
	for second.sql(fmt.Sprintf("select pg_last_wal_replay_lsn() >= '%s'", lsn)) != "t\n" {
		time.Sleep(50 * time.Millisecond) // real: replication is asynchronous
	}
	first.kill()
	second.await("leader")
	second.sql("insert into t values (8)")
	if got := second.sql("select string_agg(x::text, ' ' order by x) from t"); got != "7 8\n" {
		t.Errorf("got rows %q, want 7 and 8", got)
	}
}
