package zk_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
	"github.com/seed-a3166700/turnstile/zk"
)

func TestBadConfigIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	cases := map[string]zk.Config{
		"no servers":       {},
		"empty entry":      {Servers: "a,,b"},
		"no host":          {Servers: ":2181"},
		"bad port":         {Servers: "a:port"},
		"port 0":           {Servers: "a:0"},
		"IPv6 as it is":    {Servers: "::1"},
		"bad chroot":       {Servers: "a/b//c"},
		"chroot with dots": {Servers: "a/../b"},
		"unix nowhere":     {Servers: "unix:"},
		"space in a host":  {Servers: "a b"},
		"negative timeout": {Servers: "a", Timeout: -1},
		"huge timeout":     {Servers: "a", Timeout: 1 << 62},
		"margin too large": {Servers: "a", Timeout: time.Second, Margin: time.Second},
		"small frames":     {Servers: "a", MaxFrame: 10},
		"SASL for nobody":  {Servers: "a", SASL: &zk.SASL{}},
		"auth for nothing": {Servers: "a", Auth: []zk.Auth{{}}},
	}
	for name, cfg := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := zk.Open(t.Context(), cfg)
			if err == nil {
				_ = c.Close()
				t.Fatal("was taken")
			}
			if !strings.HasPrefix(err.Error(), "zk: ") {
				t.Errorf("error %q does not say where it comes from", err)
			}
		})
	}
}

func TestOpenWithAContextThatHasEndedFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := zk.Open(ctx, zk.Config{Servers: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClientOutlivesTheContextOfOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		c, err := zk.Open(ctx, f.config())
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := c.Session(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOneBadNameIsNotFatal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(nil)
		})
		var mu sync.Mutex
		asked := map[string]int{}
		cfg := f.config()
		cfg.Servers = "good,bad,worse"
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			asked[address]++
			mu.Unlock()
			if address != "good:2181" {
				return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
			}
			return f.Dial(ctx, network, address)
		}
		_, s := f.open(cfg)
		for range 3 { // the names are given to the dialer at every attempt, never an address from before
			f.cut()
			waitState(s, zk.Suspended)
			waitState(s, zk.Connected)
		}
		if asked["good:2181"] != 4 {
			t.Errorf("dialled %v, want the good one 4 times", asked)
		}
	})
}

func TestFailedAttemptsBackOffWithJitter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		cfg := zk.Config{Servers: "a", Dial: func(context.Context, string, string) (net.Conn, error) {
			times = append(times, time.Now())
			return nil, errors.New("no route")
		}}
		c, err := zk.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		_ = c.Close()
		if n := len(times); n < 30 || n > 80 {
			t.Errorf("%d attempts in a minute, want one every one or two seconds", n)
		}
		gaps := map[time.Duration]bool{}
		for i := range times[1:] {
			gaps[times[i+1].Sub(times[i])] = true
		}
		if len(gaps) < 10 {
			t.Errorf("only %d different gaps between attempts, want jitter", len(gaps))
		}
	})
}

func TestUnixSocketWithChroot(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "zk,sock")
	if len(socket) > 100 {
		t.Skipf("the temporary directory's path is too long for a unix socket: %s", socket)
	}
	socket = strings.ReplaceAll(socket, ",", "-")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	paths := serveOne(t, ln)
	get(t, zk.Config{Servers: "unix:" + socket + "!/app"})
	if got := <-paths; got != "/app/a" {
		t.Errorf("the server was asked for %q, want /app/a", got)
	}
}

// serveOne serves one connection and yields the paths that are asked for.
func serveOne(t *testing.T, ln net.Listener) <-chan string {
	t.Helper()
	paths := make(chan string, 10)
	f := newFake(t, nil)
	t.Cleanup(func() { _ = ln.Close() })
	f.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			p := &peer{conn: conn, in: make(chan []byte, 100)}
			f.wg.Go(p.pump)
			f.wg.Go(func() {
				defer conn.Close()
				p.open()
				p.loop(func(r request) bool {
					if r.Op == wire.OpGetData {
						paths <- r.path()
						p.answer(r, 1, wire.OK, &wire.DataResponse{})
						return true
					}
					return false
				})
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close() })
	return paths
}

// get opens a client, reads /a and closes.
func get(t *testing.T, cfg zk.Config) {
	t.Helper()
	c, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
}

// authority is a certificate authority for tests.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, a.cert = a.sign(t, template, template, nil)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

// issue returns a certificate for a name.
func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key, cert := a.sign(t, template, a.cert, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

func TestTLSVerifiesTheHostNameAndShowsTheClientsCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	names := make(chan string, 10)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, "localhost")}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		VerifyConnection: func(cs tls.ConnectionState) error {
			names <- cs.PeerCertificates[0].Subject.CommonName
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	serveOne(t, ln)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	cfg := zk.Config{
		Servers: "localhost:" + port, Timeout: 30 * time.Second,
		TLS: &tls.Config{RootCAs: ca.pool, Certificates: []tls.Certificate{ca.issue(t, "turnstile")}},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
		},
	}
	get(t, cfg)
	if got := <-names; got != "turnstile" {
		t.Errorf("the server saw a client named %q, want turnstile", got)
	}
	if cfg.TLS.ServerName != "" {
		t.Error("the caller's TLS config was changed")
	}

	cfg.Servers = "otherhost:" + port
	c, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		var wrong x509.HostnameError
		if errors.As(c.LastError(), &wrong) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := c.Session(ctx); err == nil {
			t.Fatal("a server with another name's certificate was trusted")
		}
		cancel()
	}
}

func TestReadOnlyServerIsTakenOnlyIfAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan bool, 10)
		f := newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			asked <- req.ReadOnly
			resp := wire.ConnectResponse{Timeout: req.Timeout, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: req.ReadOnly}
			p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
			p.loop(nil)
		})
		cfg := f.config()
		_, s := f.open(cfg)
		if state, _ := s.State(); <-asked || state != zk.Connected {
			t.Errorf("plain client: state %v, want connected", state)
		}
		cfg.ReadOnly = true
		_, s = f.open(cfg)
		if state, _ := s.State(); !<-asked || state != zk.ConnectedReadOnly {
			t.Errorf("client that accepts read-only: state %v, want connected read-only", state)
		}
	})
}

func TestReadOnlyServerIsLeftForOneThatWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f *fake
		f = newFake(t, func(p *peer) {
			req, ok := p.connect()
			if !ok {
				return
			}
			resp := wire.ConnectResponse{Timeout: req.Timeout, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: p.nth == 0}
			p.raw(wire.EndFrame(resp.Append(wire.BeginFrame(nil)), 0))
			p.loop(nil)
		})
		var probed sync.Once
		cfg := f.config()
		cfg.Servers, cfg.ReadOnly = "reads,writes", true
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			f.mu.Lock()
			first := f.dials == 0
			f.mu.Unlock()
			switch probe := false; {
			case address == "reads:2181" && !first, address == "writes:2181" && first:
				return nil, errors.New("no route")
			case address == "writes:2181":
				if probed.Do(func() { probe = true }); !probe {
					break
				}
				near, far := net.Pipe()
				f.wg.Go(func() {
					defer far.Close()
					word := make([]byte, 4)
					if _, err := io.ReadFull(far, word); err != nil || string(word) != "isro" {
						t.Errorf("probe sent %q, %v; want isro", word, err)
					}
					_, _ = far.Write([]byte("rw"))
				})
				return near, nil
			}
			return f.Dial(ctx, network, address)
		}
		_, s := f.open(cfg)
		if state, _ := s.State(); state != zk.ConnectedReadOnly {
			t.Errorf("state %v, want connected read-only", state)
		}
		waitState(s, zk.Connected)
	})
}

func TestHooksTellWhatHappens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, s)
		}
		f := newFake(t, func(p *peer) {
			p.open()
			p.loop(func(r request) bool {
				if r.Op == wire.OpDelete {
					p.answer(r, 1, wire.NoNode, nil)
				}
				return r.Op == wire.OpDelete
			})
		})
		cfg := f.config()
		cfg.Hooks = zk.Hooks{
			Request: func(_ context.Context, r zk.RequestDone) {
				note(strings.TrimSpace(r.Op + " " + r.Path))
				if (r.Err != nil) != (r.Op == "delete") {
					t.Errorf("request %s: error %v", r.Op, r.Err)
				}
			},
			State:        func(s zk.State) { note(s.String()) },
			Connected:    func(addr string) { note("to " + addr) },
			Disconnected: func(addr string, _ error) { note("from " + addr) },
		}
		c, s := f.open(cfg)
		_ = s.Delete(t.Context(), "/a", -1)
		b := s.Batch()
		future := b.Get("/b")
		b.Send()
		for range 2 {
			_, _ = future.Get(t.Context())
		}
		f.cut()
		waitState(s, zk.Suspended)
		waitState(s, zk.Connected)
		synctest.Wait()
		_ = c.Close()
		want := "to fake:2181|connected|delete /a|getData /b|from fake:2181|suspended|to fake:2181|connected|ended"
		if all := strings.Join(got, "|"); all != want {
			t.Errorf("hooks told %s, want %s", all, want)
		}
	})
}
