package certfile_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/certfile"
)

// write writes a certificate that is its own authority, and its key.
func write(t *testing.T, names certfile.Names, subject string) {
	t.Helper()
	writeUntil(t, names, subject, time.Now().Add(time.Hour))
}

// writeUntil is write of a certificate that is valid until then.
func writeUntil(t *testing.T, names certfile.Names, subject string, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject}, DNSNames: []string{"server"},
		NotAfter: end, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	replace(t, names.Cert, cert)
	replace(t, names.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	replace(t, names.CA, cert)
}

// replace replaces a file as tools for certificates do.
func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T) certfile.Names {
	t.Helper()
	dir := t.TempDir()
	return certfile.Names{
		Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), CA: filepath.Join(dir, "ca"),
	}
}

// meet does a handshake and returns the names that the client and the server show.
func meet(t *testing.T, client, server *tls.Config) (clientName, serverName string, err error) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ours, err := new(net.Dialer).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, s := tls.Client(ours, client), tls.Server(theirs, server)
	done := make(chan error)
	go func() {
		err := s.HandshakeContext(t.Context())
		_ = theirs.Close()
		done <- err
	}()
	if err := c.HandshakeContext(t.Context()); err == nil {
		_, _ = io.Copy(io.Discard, ours) // takes session tickets
	} else {
		_ = ours.Close()
	}
	if err := <-done; err != nil {
		return "", "", err
	}
	name := func(conn *tls.Conn) string { return conn.ConnectionState().PeerCertificates[0].Subject.CommonName }
	return name(s), name(c), nil
}

// Promise: 18
func TestChangedFilesAreUsedByTheNextHandshake(t *testing.T) {
	t.Parallel()
	names := files(t)
	write(t, names, "one")
	var log bytes.Buffer
	f, err := certfile.Load(names, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
	f.Server(server)
	client := func() *tls.Config {
		fresh, err := certfile.Load(names, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		cfg := &tls.Config{ServerName: "server"}
		fresh.Client(cfg)
		return cfg
	}
	first := client()
	wantNames := func(client *tls.Config, want string) {
		t.Helper()
		if c, s, err := meet(t, client, server); c != want || s != want || err != nil {
			t.Errorf("got %q, %q, %v; want %q twice", c, s, err, want)
		}
	}
	wantNames(first, "one")
	write(t, names, "two")
	wantNames(client(), "two")
	if _, _, err := meet(t, first, server); err == nil {
		t.Error("a client of the former authority is accepted")
	}
	second := client()
	for _, broken := range []string{names.Cert, names.Key, names.CA} {
		text, err := os.ReadFile(broken)
		if err != nil {
			t.Fatal(err)
		}
		log.Reset()
		replace(t, broken, []byte("broken"))
		wantNames(second, "two")
		wantNames(second, "two")
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("a broken %s is logged %d times, want once: %s", broken, n, log.String())
		}
		if err := os.Remove(broken); err != nil {
			t.Fatal(err)
		}
		wantNames(second, "two")
		replace(t, broken, text)
		wantNames(second, "two")
	}
	write(t, names, "three")
	wantNames(client(), "three")
}

// Promise: 18
func TestInvalidFilesAreRefusedAtFirst(t *testing.T) {
	t.Parallel()
	names := files(t)
	write(t, names, "one")
	for _, bad := range []certfile.Names{
		{Cert: names.Cert},
		{Key: names.Key},
		{Cert: names.Cert, Key: names.Cert},
		{Cert: names.Cert, Key: names.Key, CA: names.Key},
		{CA: names.CA + "none"},
	} {
		if _, err := certfile.Load(bad, nil); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	f, err := certfile.Load(certfile.Names{CA: names.CA}, nil)
	if err != nil || f.Cert() != nil {
		t.Errorf("authorities alone: %v", err)
	}
}

func TestKeyWithPasswordIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	names := files(t)
	write(t, names, "one")
	for _, block := range []*pem.Block{
		{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}},
		{Type: "EC PRIVATE KEY", Headers: map[string]string{"DEK-Info": "AES-256-CBC,00"}, Bytes: []byte{1}},
	} {
		replace(t, names.Key, pem.EncodeToMemory(block))
		_, err := certfile.Load(names, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "has a password") || !strings.Contains(err.Error(), names.Key) {
			t.Errorf("%s: got %v, want that the key has a password", block.Type, err)
		}
	}
}

func TestCertificateOutOfDateIsWarnedOf(t *testing.T) {
	t.Parallel()
	names := files(t)
	for end, warns := range map[time.Duration]bool{-time.Hour: true, time.Hour: false} {
		writeUntil(t, names, "one", time.Now().Add(end))
		var log bytes.Buffer
		if _, err := certfile.Load(names, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "level=WARN") != warns {
			t.Errorf("it ends in %v: got %q, want a warning %v", end, &log, warns)
		}
	}
}

func TestNamesThatNoCertificateHasAreOdd(t *testing.T) {
	t.Parallel()
	for name, odd := range map[string]bool{
		"": false, "CN=ann": false, "CN=ann,O=Acme Inc": false, `CN=ann,O=Acme\, Inc`: false, `CN=\ ann\ ,O=b`: false,
		"1.2.3=#0c": false, "CN=ann+UID=a,C=CH": false, "spiffe://acme/ann": false, "ann of acme": false,
		`CN=a \, b`: false,

		"CN=ann, O=Acme": true, "CN=ann ,O=Acme": true, "O = Acme,CN=ann": true, "CN= ann": true, " CN=ann": true,
		"CN=ann ": true, "CN=ann + UID=a": true, "/O=Acme/CN=ann": true,
	} {
		if got := certfile.OddName(name); (got != "") != odd {
			t.Errorf("%q: got %q, want odd %v", name, got, odd)
		}
	}
}
