package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// shortDir returns a directory with a name short enough for a socket in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ts") //nolint:usetesting // the test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestUnixSocketIsReplacedOnlyIfItsServerIsDead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	s := serve(t, Config{Listen: []string{"unix:" + path}}, disk{})
	c := mustConnect(t, s, wire.ConnectRequest{})
	if got := c.whoAmI(t); !slices.Equal(got, []string{"ip:127.0.0.1"}) {
		t.Errorf("got %q, want the identity of this machine", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v %v, want a socket that only the user may use", info.Mode(), err)
	}
	if _, err := Start(t.Context(), Config{InMemory: true, Listen: []string{"unix:" + path}}); err == nil ||
		!strings.Contains(err.Error(), "another server") {
		t.Errorf("got %v, want an error for a live server's socket", err)
	}
	file := filepath.Join(filepath.Dir(path), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Config{InMemory: true, Listen: []string{"unix:" + file}}); err == nil {
		t.Error("regular file in place of the socket: got success, want an error")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file: got %q %v, want it unchanged", text, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("got %v after Close, want no socket", err)
	}
}

func TestListeningOnTheNetworkLogsAWarning(t *testing.T) {
	t.Parallel()
	for addr, warns := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "0.0.0.0:0": true, ":0": true} {
		var log bytes.Buffer
		s, err := Start(t.Context(), Config{
			InMemory: true, Listen: []string{addr},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Logf("%s: %v", addr, err) // perhaps this machine has no IPv6
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(log.String(), "level=WARN"); got != warns {
			t.Errorf("%s: got warning %t, want %t: %s", addr, got, warns, log.String())
		}
	}
}

func TestTLSThatAdmitsAnyClientLogsAWarning(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	certs := []tls.Certificate{a.issue(t, pkix.Name{CommonName: "server"})}
	for name, row := range map[string]struct {
		auth  tls.ClientAuthType
		pool  *x509.CertPool
		warns bool
	}{
		"no certificate requested":     {tls.NoClientCert, a.pool(), true},
		"certificate not required":     {tls.VerifyClientCertIfGiven, a.pool(), true},
		"any certificate accepted":     {tls.RequireAnyClientCert, a.pool(), true},
		"public authorities accepted":  {tls.RequireAndVerifyClientCert, nil, true},
		"certificate of ours required": {tls.RequireAndVerifyClientCert, a.pool(), false},
	} {
		var log bytes.Buffer
		cfg := Config{
			InMemory: true, TLSListen: []string{"0.0.0.0:0"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			TLS: &tls.Config{Certificates: certs, ClientAuth: row.auth, ClientCAs: row.pool},
		}
		s, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(log.String(), "level=WARN"); got != row.warns {
			t.Errorf("%s: got warning %t, want %t: %s", name, got, row.warns, log.String())
		}
	}
}

func TestServerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Config{InMemory: true, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-s.Done()
	if s.Err() != nil || s.Close() != nil {
		t.Errorf("got %v and %v, want nil, as the context ended the server", s.Err(), s.Close())
	}
	if s.ExpireSession(1) || s.Sessions() != nil || s.PresetSequence("/", 1) == nil {
		t.Error("methods of a stopped server: got success, want failure")
	}
}

// authority issues certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *authority) issue(t *testing.T, subject pkix.Name) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestVerifiedClientCertificateIsAnIdentity(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := serve(t, Config{TLSListen: []string{"127.0.0.1:0"}, X509SuperUser: "CN=root", TLS: &tls.Config{
		Certificates: []tls.Certificate{a.issue(t, pkix.Name{CommonName: "server"})}, ClientCAs: a.pool(),
		ClientAuth: tls.VerifyClientCertIfGiven,
	}}, disk{})
	connect := func(certs ...tls.Certificate) *rawClient {
		t.Helper()
		nc, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.pool(), Certificates: certs}}).DialContext(t.Context(),
			"tcp", s.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		c := &rawClient{nc: nc}
		if _, err := c.handshake(&wire.ConnectRequest{Timeout: 10_000}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	name := pkix.Name{CommonName: "bob, the builder", Organization: []string{"Acme"}, Country: []string{"DE"}}
	bob := connect(a.issue(t, name))
	if got, want := bob.whoAmI(t), []string{
		"ip:127.0.0.1",
		`x509:CN=bob\, the builder,O=Acme,C=DE`,
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth"}}}
	if err := bob.call(wire.OpCreate, &wire.CreateRequest{Path: "/bobs", ACL: mine}, nil); err != nil {
		t.Fatal(err)
	}
	if got := connect().whoAmI(t); !slices.Equal(got, []string{"ip:127.0.0.1"}) {
		t.Errorf("without a certificate: got %q, want only the address", got)
	}
	if _, _, err := connect().get("/bobs"); err == nil {
		t.Error("another client reads bob's node: got success, want an error")
	}
	if _, _, err := connect(a.issue(t, pkix.Name{CommonName: "root"})).get("/bobs"); err != nil {
		t.Errorf("superuser: got %v, want OK", err)
	}
	if err := bob.call(wire.OpCloseSession, &wire.Empty{}, nil); err != nil || !bob.ended() {
		t.Errorf("closeSession over TLS: got %v, want OK", err)
	}
}

func TestClientThatFailsTheTLSHandshakeIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var log bytes.Buffer
	s, err := Start(t.Context(), Config{
		InMemory: true, TLSListen: []string{"127.0.0.1:0"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		TLS: &tls.Config{Certificates: []tls.Certificate{a.issue(t, pkix.Name{CommonName: "server"})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // the first is still silent when the server stops; the next only checks whether the port is open
		nc, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addrs()[0].String())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			defer func() { _ = nc.Close() }()
			continue
		}
		if i > 1 {
			_, _ = nc.Write([]byte("no TLS at all"))
			_, _ = io.Copy(io.Discard, nc)
		}
		_ = nc.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	warned := strings.Count(log.String(), "level=WARN msg=\"server: TLS handshake failed\"")
	if all := strings.Count(log.String(), "TLS handshake failed"); warned != 2 || all < 3 {
		t.Errorf("got %d warnings in %d lines, want 2, for the first and second of three failures:\n%s", warned, all,
			log.String())
	}
}
