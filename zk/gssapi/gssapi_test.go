package gssapi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
	"github.com/seed-a3166700/turnstile/zk"
	"github.com/seed-a3166700/turnstile/zk/gssapi"
	"github.com/seed-a3166700/turnstile/zktest"
)

// startZooKeeper starts a server that knows its principal, and requires clients to log in.
func startZooKeeper(t *testing.T, k *kdc) *peer.Cluster {
	t.Helper()
	k.write(t, "jaas.conf", fmt.Sprintf(`Server {
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false
  principal="zookeeper/localhost@%s";
};
`, k.path("zookeeper.keytab"), realm))
	return peer.ZooKeeper(t, peer.Options{
		Keys: map[string]string{"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
		Properties: map[string]string{
			"java.security.auth.login.config":        k.path("jaas.conf"),
			"java.security.krb5.conf":                k.path("krb5.conf"),
			"zookeeper.sessionRequireClientSASLAuth": "true",
		},
	})
}

func mechanism(t *testing.T, k *kdc, cfg gssapi.Config) *gssapi.Mechanism {
	t.Helper()
	cfg.Krb5Conf = k.path("krb5.conf")
	m, err := gssapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func open(t *testing.T, servers string, m zk.SASL) *zk.Client {
	t.Helper()
	c, err := zk.Open(t.Context(), zk.Config{Servers: servers, SASL: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wantUser(t *testing.T, c *zk.Client, name string) {
	t.Helper()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	ids, err := s.WhoAmI(t.Context())
	if err != nil || !slices.Contains(ids, zk.ID{Scheme: "sasl", ID: "app@" + realm}) {
		t.Errorf("%s: who am I: %v, %v; want sasl app@%s", name, ids, err, realm)
	}
}

// Promise: 18
func TestKerberosWorksWithApacheZooKeeper(t *testing.T) {
	t.Parallel()
	k := startKDC(t)
	apache := startZooKeeper(t, k)
	_, port, _ := strings.Cut(apache.Addr(0), ":")
	byName := "localhost:" + port

	keytab := mechanism(t, k, gssapi.Config{Principal: "app@" + realm, Keytab: k.path("app.keytab")})
	wantUser(t, open(t, byName, keytab), "keytab")
	wantUser(t, open(t, byName, keytab), "the same mechanism again")
	secret := gssapi.Config{Principal: "app", Password: password, Host: "localhost"}
	wantUser(t, open(t, apache.Addr(0), mechanism(t, k, secret)), "password, and a configured host")
	k.kinit(t, "10m")
	tickets := mechanism(t, k, gssapi.Config{CCache: "FILE:" + k.path("ccache")})
	wantUser(t, open(t, byName, tickets), "tickets of kinit")

	link := zktest.Proxy(t, apache.Addr(0))
	c := open(t, link.Addr(), mechanism(t, k, gssapi.Config{Principal: "app", Password: password, Host: "localhost"}))
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.stop() // the ticket from before still counts
	_, changed := s.State()
	link.Drop()
	<-changed
	wantUser(t, c, "after a reconnect without the KDC")
	if live, err := c.Session(t.Context()); live != s || err != nil {
		t.Errorf("got %v, %v; want the same session", live, err)
	}
}

// Promise: 18
func TestKerberosFailuresAreClear(t *testing.T) {
	t.Parallel()
	k := startKDC(t)
	apache := startZooKeeper(t, k)
	_, port, _ := strings.Cut(apache.Addr(0), ":")
	byName := "localhost:" + port
	const passes = "" // the client goes on trying
	try := func(name string, cfg gssapi.Config, want, outcome string) {
		t.Helper()
		c := open(t, byName, mechanism(t, k, cfg))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if outcome == passes {
			for c.LastError() == nil || !strings.Contains(c.LastError().Error(), want) {
				if ctx.Err() != nil {
					t.Fatalf("%s: got %v; want %q", name, c.LastError(), want)
				}
				time.Sleep(10 * time.Millisecond) // nothing tells of errors
			}
			ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
		}
		_, err := c.Session(ctx)
		ended := errors.Is(err, zk.ErrAuthFailed)
		if err == nil || !strings.Contains(err.Error(), want) || ended == (outcome == passes) {
			t.Errorf("%s: got %v; want %q, final: %v", name, err, want, outcome != passes)
		}
	}
	const final = "final"
	app := gssapi.Config{Principal: "app", Password: password}

	wrong := app
	wrong.Principal = "nobody"
	try("unknown client", wrong, "does not know the client's principal", final)
	wrong = app
	wrong.Password = "guess"
	try("wrong password", wrong, "key or password is wrong", final)
	others := gssapi.Config{Principal: "bob", Keytab: k.path("app.keytab")}
	try("keytab of another", others, "no key for the principal", final)
	wrong = app
	wrong.Service = "kafka"
	try("unknown server", wrong, "does not know the server's principal", final)
	wrong = app
	wrong.Host = "elsewhere"
	try("another server's principal", wrong, "", final)

	try("no tickets", gssapi.Config{CCache: k.path("none")}, "tickets of kinit", passes)
	k.kinit(t, "1s")
	<-time.After(1500 * time.Millisecond)
	cached := gssapi.Config{CCache: k.path("ccache")}
	try("expired tickets", cached, "expired", passes)
	c := open(t, byName, mechanism(t, k, cached))
	k.kinit(t, "10m")
	wantUser(t, c, "after another kinit")

	k.stop()
	try("no KDC", app, "KDC", passes)
}

// Promise: 18
func TestServerThatCannotReadTheTicketIsNotTrusted(t *testing.T) {
	t.Parallel()
	k := startKDC(t)
	m := mechanism(t, k, gssapi.Config{Principal: "app", Password: password})
	x, err := m.Begin(t.Context(), "LOCALHOST")
	if err != nil {
		t.Fatal(err)
	}
	request, done, err := x.Next(nil)
	if err != nil || done || len(request) == 0 {
		t.Fatalf("got %x, %v, %v", request, done, err)
	}
	for _, token := range [][]byte{nil, {}, []byte("junk"), request} {
		x, err := m.Begin(t.Context(), "localhost")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Next(nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Next(token); !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("token %q: got %v, want ErrAuthFailed", token, err)
		}
	}
	if _, err := m.Begin(t.Context(), ""); !errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("a unix socket without Host: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Begin(canceled, "other"); err == nil {
		t.Error("a ticket after the end of the context")
	}
	m.Close()
	m.Close()
	if _, err := m.Begin(t.Context(), "localhost"); !errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	conf := t.TempDir() + "/krb5.conf"
	if err := os.WriteFile(conf, []byte("[libdefaults]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]gssapi.Config{
		"nothing":         {Krb5Conf: conf},
		"no credentials":  {Krb5Conf: conf, Principal: "app@X"},
		"two credentials": {Krb5Conf: conf, Principal: "app@X", Password: "x", CCache: "y"},
		"no principal":    {Krb5Conf: conf, Password: "x"},
		"no realm":        {Krb5Conf: conf, Principal: "app", Password: "x"},
		"no keytab":       {Krb5Conf: conf, Principal: "app@X", Keytab: conf + "none"},
		"no krb5.conf":    {Krb5Conf: conf + "none", Principal: "app@X", Password: "x"},
	} {
		if m, err := gssapi.New(cfg); err == nil {
			m.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}
