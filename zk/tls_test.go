package zk_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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
	"github.com/seed-a3166700/turnstile/server"
	"github.com/seed-a3166700/turnstile/zk"
)

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

// serveOne serves one connection and sends the paths of its requests.
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
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key, a.cert = a.sign(t, template, template, nil)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(
	t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey,
) (*ecdsa.PrivateKey, *x509.Certificate) {
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
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter:    time.Now().Add(time.Hour),
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
		Certificates: []tls.Certificate{ca.issue(t, "localhost")},
		ClientCAs:    ca.pool, ClientAuth: tls.RequireAndVerifyClientCert,
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
		if _, ok := errors.AsType[x509.HostnameError](c.LastError()); ok {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := c.Session(ctx); err == nil {
			t.Fatal("a server with another name's certificate was trusted")
		}
		cancel()
	}
}

func writeKeyPair(t *testing.T, dir string, cert tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	must(t, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	must(t, os.WriteFile(filepath.Join(dir, "client.new"), text, 0o600))
	must(t, os.Rename(filepath.Join(dir, "client.new"), filepath.Join(dir, "client.pem")))
}

// Promise: 18
func TestRenewedCertificateIsUsedForTheNextConnection(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ca := newAuthority(t)
	srv, err := server.Start(ctx, server.Config{
		InMemory: true, TLSListen: []string{"localhost:0"},
		TLS: &tls.Config{
			Certificates: []tls.Certificate{ca.issue(t, "localhost")},
			ClientCAs:    ca.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		},
	})
	must(t, err)
	defer srv.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "client.pem")
	authorities := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	must(t, os.WriteFile(filepath.Join(dir, "ca.pem"), authorities, 0o600))
	files := zk.TLSFiles{Cert: file, Key: file, CA: filepath.Join(dir, "ca.pem")}
	if _, err := zk.LoadTLS(files); err == nil {
		t.Error("a missing file is accepted")
	}
	writeKeyPair(t, dir, ca.issue(t, "one"))
	var log bytes.Buffer
	files.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg, err := zk.LoadTLS(files)
	must(t, err)
	_, port, _ := net.SplitHostPort(srv.Addrs()[0].String())
	open := func() *zk.Client {
		c, err := zk.Open(ctx, zk.Config{Servers: "localhost:" + port, TLS: cfg})
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	wantName := func(c *zk.Client, want string) {
		t.Helper()
		s, err := c.Session(ctx)
		must(t, err)
		ids, err := s.WhoAmI(ctx)
		if !slices.Contains(ids, zk.ID{Scheme: "x509", ID: "CN=" + want}) || err != nil {
			t.Errorf("got %v, %v; want %s", ids, err, want)
		}
	}
	first := open()
	wantName(first, "one")
	writeKeyPair(t, dir, ca.issue(t, "two"))
	wantName(open(), "two")
	wantName(first, "one") // its connection stays
	must(t, os.WriteFile(file, []byte("broken"), 0o600))
	wantName(open(), "two")
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the broken file is not logged: %s", log.String())
	}
}
