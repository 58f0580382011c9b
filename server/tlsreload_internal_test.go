package server

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// Promise: 18
func TestReloadTLSChangesNewConnectionsAndKeepsOthers(t *testing.T) {
	t.Parallel()
	one, two := newAuthority(t), newAuthority(t)
	serverConfig := func(a *authority) *tls.Config {
		return &tls.Config{
			Certificates: []tls.Certificate{a.issue(t, pkix.Name{CommonName: "server"})},
			ClientCAs:    a.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		}
	}
	s := serve(t, Config{TLSListen: []string{"127.0.0.1:0"}, TLS: serverConfig(one)}, disk{})
	connect := func(a *authority) (*rawClient, error) {
		certs := []tls.Certificate{a.issue(t, pkix.Name{CommonName: "bob"})}
		dialer := &tls.Dialer{Config: &tls.Config{RootCAs: a.pool(), Certificates: certs}}
		nc, err := dialer.DialContext(t.Context(), "tcp", s.Addrs()[0].String())
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = nc.Close() })
		c := &rawClient{nc: nc}
		_, err = c.handshake(&wire.ConnectRequest{Timeout: 10_000})
		return c, err
	}
	before, err := connect(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []*tls.Config{nil, {}} {
		if err := s.ReloadTLS(bad); err == nil {
			t.Error("a configuration without a certificate is accepted")
		}
	}
	if _, err := connect(one); err != nil {
		t.Errorf("after a refused reload: %v", err)
	}
	if err := s.ReloadTLS(serverConfig(two)); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(two); err != nil {
		t.Errorf("with the new authority: %v", err)
	}
	if _, err := connect(one); err == nil {
		t.Error("the former authority is still accepted")
	}
	if got := before.whoAmI(t); len(got) != 2 {
		t.Errorf("the connection from before: got %v", got)
	}
	plain := serve(t, Config{}, disk{})
	if err := plain.ReloadTLS(serverConfig(one)); !errors.Is(err, errNoTLS) {
		t.Errorf("without TLS: got %v", err)
	}
}
