package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

const parent = "github.com/seed-a3166700/turnstile"

// Servers are the two that loads run against. Both write every change to the disk before they answer.
type servers struct {
	zookeeper *peer.Cluster
	ours      *serve
}

// zookeeperOptions configure ZooKeeper as its own start script and its documentation do for production.
var zookeeperOptions = peer.Options{
	Tick: 2 * time.Second,
	Heap: "1000m",
	Fast: true,
}

func startServers(ctx context.Context, h *host, o options) (*servers, error) {
	s := &servers{}
	binary := o.binary
	if binary == "" {
		var err error
		if binary, err = build(ctx, o.dir); err != nil {
			return nil, err
		}
	}
	var err error
	if s.ours, err = startServe(ctx, binary, h.TempDir()); err != nil {
		return nil, err
	}
	h.Cleanup(s.ours.stop)
	s.zookeeper = peer.ZooKeeper(h, zookeeperOptions) //nolint:contextcheck // a peer ends with its host
	return s, nil
}

// facts tell how everybody was configured.
func (s *servers) facts() []fact {
	return []fact{
		{"Apache ZooKeeper 3.8.0", "Debian's package, standalone, durable (forceSync, every request is on the disk before its answer), tickTime 2000, -Xmx1000m, one log device"},
		{"turnstile serve", "the embedded server in a process of its own, durable (one synchronous commit for all requests that wait), default configuration"},
		{"Turnstile", "packages `zk` and `lock` of this repository, one client, default configuration; a lock cycle is `Lock` and `Unlock`"},
		{"go-zookeeper", "github.com/go-zookeeper/zk v1.0.4, one connection, `NewLock` with `Lock` and `Unlock`"},
	}
}

// build compiles the turnstile binary of this repository.
func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", parent).Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	binary := filepath.Join(dir, "turnstile")
	out, err := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(root)), "-o", binary, "./cmd/turnstile").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build ./cmd/turnstile: %w\n%s", err, out)
	}
	return binary, nil
}

// A serve is a running `turnstile serve`.
type serve struct {
	addr string
	cmd  *exec.Cmd
	took time.Duration // from the start of the process to its first answer
}

// startServe starts the binary as a server on a free port and returns when it answers.
func startServe(ctx context.Context, binary, dir string) (*serve, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &serve{addr: addr, cmd: exec.CommandContext(ctx, binary, "serve", "--listen", addr, "--data", filepath.Join(dir, "data"))}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	start := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := awaitAnswer(ctx, addr); err != nil {
		s.stop()
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("turnstile serve: %w\n%s", err, text)
	}
	s.took = time.Since(start)
	return s, nil
}

func (s *serve) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
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

// awaitAnswer returns when the server at addr says which mode it serves in.
func awaitAnswer(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := serves(ctx, addr)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(time.Millisecond):
		}
	}
}

func serves(ctx context.Context, addr string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Mode: ") {
			return nil
		}
	}
	return errors.New("no answer to srvr")
}
