package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/internal/test/soak"
	"github.com/seed-a3166700/turnstile/server"
)

// superDigest is the digest of super:test, which kazoo's suite expects.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// A host is a server for other projects' clients.
type host struct {
	name   string
	apache bool
	addr   string
	stop   func() error
	start  func() error
}

// options are the options of a host.
type options struct {
	sasl    bool // with the users of kazoo's suite
	foreign bool // clients of ours take no part: on Apache ZooKeeper in soaks alone, to show that the test is right
	own     bool // a server of the test's own, which it may stop, and with long sessions

	requireSASL bool
}

// minSession is ZooKeeper's default, and so what the authors of a suite have. Kazoo's asks for 0.8 s.
const minSession = 4 * time.Second

// onEach runs f on Apache ZooKeeper and on the embedded server.
func onEach(t *testing.T, opts options, f func(t *testing.T, h *host)) {
	t.Helper()
	if !opts.foreign || soak.All() {
		t.Run("Apache", func(t *testing.T) {
			t.Parallel()
			f(t, apache(t, opts))
		})
	}
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		cfg := server.Config{Data: t.TempDir()}
		if opts.sasl {
			cfg.SASLUsers = saslUsers
		}
		cfg.RequireSASL = opts.requireSASL
		if opts.own {
			cfg.MinSessionTimeout = minSession
		}
		f(t, ours(t, cfg))
	})
}

// saslUsers are the users of servers with SASL. The first two are those of kazoo's suite. The names and passwords of
// the others are in ISO 8859-1, which DIGEST-MD5 hashes in a special way, and beyond it.
var saslUsers = map[string]string{
	"super": "super_secret", "jaasuser": "jaas_password",
	"jürgen": "schlüssel", "yang": "密码", "ö": "ж",
}

// jaas returns a server's JAAS file.
func jaas() string {
	var b strings.Builder
	b.WriteString("Server {\n    org.apache.zookeeper.server.auth.DigestLoginModule required")
	for user, password := range saslUsers {
		fmt.Fprintf(&b, "\n    user_%s=%q", user, password)
	}
	b.WriteString(";\n};\n")
	return b.String()
}

// common is the Apache ZooKeeper of all tests that need no other. Each uses paths of its own.
var common = peer.Shared{Start: func(t peer.T) *peer.Cluster { return peer.ZooKeeper(t, apacheOptions()) }}

// fips is the property by which ZooKeeper 3.9.6 refuses DIGEST-MD5 unless it is false.
const fips = "zookeeper.fips-mode"

func apacheOptions() peer.Options {
	return peer.Options{
		Keys: map[string]string{"maxSessionTimeout": "120000"},
		Properties: map[string]string{
			"zookeeper.forceSync":                                "no",
			"znode.container.checkIntervalMs":                    "100",
			"zookeeper.DigestAuthenticationProvider.superDigest": superDigest,
		},
		Heap: "256m",
	}
}

func apache(t *testing.T, opts options) *host {
	t.Helper()
	const name = "Apache ZooKeeper"
	if !opts.sasl && !opts.own {
		return &host{name: name, apache: true, addr: common.Get(t).Addr(0)}
	}
	p := apacheOptions()
	p.Keys["minSessionTimeout"] = millis(minSession)
	if opts.sasl {
		login := filepath.Join(t.TempDir(), "jaas.conf")
		if err := os.WriteFile(login, []byte(jaas()), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Keys["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
		p.Properties["java.security.auth.login.config"] = login
		p.Properties[fips] = "false"
		if opts.requireSASL {
			p.Properties["zookeeper.sessionRequireClientSASLAuth"] = "true"
		}
	}
	zk := peer.ZooKeeper(t, p)
	return &host{
		name:   name,
		apache: true,
		addr:   zk.Addr(0),
		stop:   func() error { zk.Kill(0); return nil },
		start:  func() error { zk.Restart(0); return nil },
	}
}

func ours(t *testing.T, cfg server.Config) *host {
	t.Helper()
	cfg.Listen = []string{peer.FreeAddr(t)}
	cfg.TickTime, cfg.MaxSessionTimeout = 200*time.Millisecond, 2*time.Minute
	cfg.ContainerInterval = 100 * time.Millisecond
	cfg.ExtendedTypes = true
	cfg.FourLetterWords = []string{"*"}
	cfg.SuperDigest = superDigest
	srv, err := server.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	h := &host{name: "the embedded server", addr: srv.Addrs()[0].String()}
	h.stop = func() error { return srv.Close() }
	h.start = func() error {
		again, err := server.Start(context.Background(), cfg)
		if err == nil {
			srv = again
		}
		return err
	}
	return h
}

// control listens for the lines "stop" and "start", executes them, and returns its address.
func (h *host) control(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			h.obey(conn)
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	return ln.Addr().String()
}

func (h *host) obey(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var err error
		switch lines.Text() {
		case "stop":
			err = h.stop()
		case "start":
			err = h.start()
		default:
			err = fmt.Errorf("unknown command %q", lines.Text())
		}
		if _, err := fmt.Fprintf(conn, "%v\n", err); err != nil {
			return
		}
	}
}

// run runs a program, whose exit status says whether it succeeded.
func run(t *testing.T, limit time.Duration, program string, args ...string) string {
	t.Helper()
	return runInput(t, limit, "", program, args...)
}

// runInput is run with an input for the program.
func runInput(t *testing.T, limit time.Duration, input, program string, args ...string) string {
	t.Helper()
	out, err := output(t.Context(), limit, input, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("INTEROP_VERBOSE") != "" {
		t.Log(out)
	}
	return out
}

// output returns the output of a program. An error includes it, too.
func output(ctx context.Context, limit time.Duration, input, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), err
}
