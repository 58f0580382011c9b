package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/measure"
	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
)

const parent = "github.com/seed-a3166700/turnstile"

// The servers that loads run against. Hosted is ours in a process that tells its live memory and its counters.
const (
	onZooKeeper = "ZooKeeper 3.8.0"
	onEnsemble  = "three servers of ZooKeeper 3.8.0"
	onServe     = "turnstile serve"
	onHosted    = "the embedded server"
	onEtcd      = "etcd"
	onRedis     = "Redis, volatile"
	onRedisAOF  = "Redis, appendfsync always"
)

// A backend is a server that runs.
type backend struct {
	host   *peer.Host // that it ends with
	addr   string
	pid    int
	others []int                                               // the processes of an ensemble's other servers
	line   func(ctx context.Context, path string) (int, error) // the contenders at path; nil if it cannot count them
	memory func(ctx context.Context) (float64, error)          // its live bytes; nil if it does not tell
	weight func(ctx context.Context) (float64, error)          // the same, good enough to weigh 100,000 items
	words  bool                                                // it answers mntr
	asked  int                                                 // how often mntr was asked
}

// servers starts servers when they are needed.
type servers struct {
	dir     string // of everything
	log     io.Writer
	binary  string // turnstile
	running map[string]*backend
}

// missing says what a server needs that is not installed; empty if nothing is missing.
func missing(server string) string {
	switch server {
	case onZooKeeper, onEnsemble:
		return peer.Missing("java", "/usr/share/java/zookeeper.jar")
	case onEtcd:
		return peer.Missing("etcd")
	case onRedis, onRedisAOF:
		return peer.Missing("redis-server")
	default:
		return ""
	}
}

// get returns the server of that name, which it starts if it does not run.
func (s *servers) get(ctx context.Context, name string) (*backend, error) {
	if b := s.running[name]; b != nil {
		return b, nil
	}
	b, err := s.start(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.running[name] = b
	return b, nil
}

func (s *servers) start(ctx context.Context, name string) (b *backend, err error) {
	host, err := peer.NewHost(s.dir, s.log)
	if err != nil {
		return nil, err
	}
	b = &backend{host: host}
	defer func() {
		if err != nil {
			host.Close()
		}
	}()
	defer host.Recover(&err)
	switch name {
	case onZooKeeper:
		return b, s.zookeeper(ctx, b)
	case onEnsemble:
		z := peer.Ensemble(b.host, 3, zookeeperOptions) //nolint:contextcheck // a peer ends with its host
		b.addr, b.pid, b.others = z.ConnectString(), z.PID(0), []int{z.PID(1), z.PID(2)}
		return b, nil
	case onServe:
		return b, s.serve(ctx, b)
	case onHosted:
		return b, s.hosted(ctx, b)
	case onEtcd:
		return b, s.etcd(ctx, b)
	case onRedis:
		return b, s.redis(ctx, b, "--appendonly", "no")
	case onRedisAOF:
		return b, s.redis(ctx, b, "--appendonly", "yes", "--appendfsync", "always")
	default:
		return nil, errors.New("there is no such server")
	}
}

// end ends all servers that run. After that, get starts new ones, with nothing on them.
func (s *servers) end() {
	for name, b := range s.running {
		b.host.Close()
		delete(s.running, name)
	}
}

// zookeeperOptions configure ZooKeeper as its own start script and its documentation do for production.
var zookeeperOptions = peer.Options{
	Tick: 2 * time.Second,
	Heap: "1000m",
	Fast: true,
}

func (s *servers) zookeeper(ctx context.Context, b *backend) error {
	z := peer.ZooKeeper(b.host, zookeeperOptions) //nolint:contextcheck // a peer ends with its host
	b.addr, b.pid, b.words = z.Addr(0), z.PID(0), true
	if err := b.countLine(ctx); err != nil || peer.Missing("jcmd") != "" {
		return err
	}
	client, sess, err := connect(ctx, b.addr)
	if err != nil {
		return err
	}
	b.host.Cleanup(func() { _ = client.Close() })
	b.weight = func(ctx context.Context) (float64, error) {
		if err := wash(ctx, sess); err != nil {
			return 0, err
		}
		return liveHeap(ctx, b.pid)
	}
	return nil
}

// wash makes small transactions, which replace the last 500 that ZooKeeper keeps in case a follower asks for them.
func wash(ctx context.Context, sess *zk.Session) error {
	const path, transactions = "/bench-wash", 600
	if _, err := sess.Create(ctx, path, nil, zk.Persistent); err != nil && !errors.Is(err, zk.NodeExists) {
		return err
	}
	b := sess.Batch()
	var last *zk.Future[zk.Stat]
	for range transactions {
		last = b.Set(path, nil, -1)
	}
	b.Send()
	_, err := last.Get(ctx)
	return err
}

// countLine lets a backend that speaks ZooKeeper's protocol count the contenders in a line.
func (b *backend) countLine(ctx context.Context) error {
	client, sess, err := connect(ctx, b.addr)
	if err != nil {
		return err
	}
	b.host.Cleanup(func() { _ = client.Close() })
	b.line = func(ctx context.Context, path string) (int, error) {
		children, _, err := sess.Children(ctx, path)
		if errors.Is(err, zk.NoNode) {
			return 0, nil
		}
		return len(children), err
	}
	return nil
}

func (s *servers) serve(ctx context.Context, b *backend) error {
	d, err := s.startServe(ctx, b.host)
	if err != nil {
		return err
	}
	b.addr, b.pid = d.addr, d.pid
	return b.countLine(ctx)
}

// startServe starts a `turnstile serve`.
func (s *servers) startServe(ctx context.Context, host *peer.Host) (*daemon, error) {
	binary, err := s.turnstile(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	dir := host.TempDir()
	data := filepath.Join(dir, "data")
	return startDaemon(ctx, host, dir, addr, asksZooKeeper, binary, "serve", "--listen", addr, "--data", data)
}

// turnstile returns the path of the turnstile binary of this repository, which it compiles once.
func (s *servers) turnstile(ctx context.Context) (string, error) {
	if s.binary == "" {
		var err error
		if s.binary, err = build(ctx, s.dir); err != nil {
			return "", err
		}
	}
	return s.binary, nil
}

// build compiles the turnstile binary of this repository.
func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", parent).Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	binary := filepath.Join(dir, "turnstile")
	dir = strings.TrimSpace(string(root))
	out, err := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", binary, "./cmd/turnstile").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build ./cmd/turnstile: %w\n%s", err, out)
	}
	return binary, nil
}

func (s *servers) hosted(ctx context.Context, b *backend) error {
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	p := plan{addr: addr, root: filepath.Join(b.host.TempDir(), "data")}
	cmd, err := ourWorker(ctx, kindServer, &p)
	if err != nil {
		return err
	}
	worker, err := measure.Start(onHosted, cmd)
	if err != nil {
		return err
	}
	b.host.Cleanup(measure.Processes{worker}.Close)
	if err := worker.Ready(); err != nil {
		return err
	}
	b.addr, b.pid, b.words = addr, cmd.Process.Pid, true
	b.memory = func(context.Context) (float64, error) {
		a, err := worker.Order("memory")
		if err != nil {
			return 0, err
		}
		return float64(a.Figures[0]), nil
	}
	b.weight = b.memory
	return b.countLine(ctx)
}

func (s *servers) etcd(ctx context.Context, b *backend) error {
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	among, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	dir := b.host.TempDir()
	client, member := "http://"+addr, "http://"+among
	d, err := startDaemon(ctx, b.host, dir, addr, func(ctx context.Context, addr string) error {
		return asks(ctx, addr, "GET /health HTTP/1.0\r\n\r\n", `"health":"true"`)
	}, "etcd", "--name", "bench", "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", member, "--initial-advertise-peer-urls", member, "--initial-cluster", "bench="+member)
	if err != nil {
		return err
	}
	b.addr, b.pid = addr, d.pid
	line, end, err := etcdLine(addr)
	if err != nil {
		return err
	}
	b.host.Cleanup(end)
	b.line = line
	return nil
}

func (s *servers) redis(ctx context.Context, b *backend, persistence ...string) error {
	addr, err := freeAddr(ctx)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	args := append([]string{"--bind", "127.0.0.1", "--port", port, "--save", ""}, persistence...)
	d, err := startDaemon(ctx, b.host, b.host.TempDir(), addr, func(ctx context.Context, addr string) error {
		return asks(ctx, addr, "PING\r\nQUIT\r\n", "+PONG")
	}, "redis-server", args...)
	if err != nil {
		return err
	}
	b.addr, b.pid = addr, d.pid
	b.weight = func(ctx context.Context) (float64, error) { return redisMemory(ctx, addr) }
	return nil
}

// asksZooKeeper returns nil when the server at addr says in which mode it serves.
func asksZooKeeper(ctx context.Context, addr string) error {
	return asks(ctx, addr, "srvr", "Mode: ")
}

// asks returns nil when the server at addr answers the request with a text that has want in it.
func asks(ctx context.Context, addr, request, want string) error {
	text, err := measure.Ask(ctx, addr, request)
	if err == nil && !strings.Contains(text, want) {
		err = fmt.Errorf("the answer is %q", text)
	}
	return err
}
