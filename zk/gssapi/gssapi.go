// Package gssapi authenticates a zk client by Kerberos: it is the SASL mechanism GSSAPI, with mutual authentication. It
// is a module of its own, so that programs without Kerberos do not depend on its library.
//
//	kerberos, err := gssapi.New(gssapi.Config{Principal: "app@EXAMPLE.COM", Keytab: "/etc/app.keytab"})
//	client, err := zk.Open(ctx, zk.Config{Servers: "zk1.example.com:2181", SASL: kerberos})
package gssapi

// The mechanism: credentials, and tickets for servers.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/seed-a3166700/turnstile/zk"
)

// Config says who the client is. Exactly one of Keytab, Password and CCache is required.
type Config struct {
	Principal string // "app@EXAMPLE.COM"; without a realm that of krb5.conf; not needed with CCache
	Keytab    string // the file with the principal's keys
	Password  string
	CCache    string // the file in which kinit keeps tickets (FILE:…), read again for every connection

	Krb5Conf string // the file krb5.conf; that of KRB5_CONFIG, else /etc/krb5.conf, if empty
	Service  string // the first part of the servers' principals; "zookeeper" if empty
	Host     string // their second part; if empty each server's host, as zk.Config.Servers names it

	_ struct{}
}

// A Mechanism authenticates clients, as zk.Config.SASL. Several clients may share one.
type Mechanism struct {
	cfg  Config
	krb5 *config.Config
	wg   sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	login  *client.Client // of Keytab and Password; it keeps tickets and renews them
}

var errClosed = fmt.Errorf("%w: the Kerberos mechanism is closed", zk.ErrAuthFailed)

// New reads the files that cfg names. It does not ask a KDC: that happens when a client connects. The caller closes the
// mechanism after its clients.
func New(cfg Config) (*Mechanism, error) {
	given := 0
	for _, s := range []string{cfg.Keytab, cfg.Password, cfg.CCache} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return nil, errors.New("gssapi: want exactly one of Keytab, Password and CCache")
	}
	if cfg.Principal == "" && cfg.CCache == "" {
		return nil, errors.New("gssapi: Principal must not be empty")
	}
	cfg.Service = cmp.Or(cfg.Service, "zookeeper")
	krb5, err := config.Load(cmp.Or(cfg.Krb5Conf, os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"))
	if _, unsupported := errors.AsType[config.UnsupportedDirective](err); err != nil && !unsupported {
		return nil, fmt.Errorf("gssapi: %w", err)
	}
	m := &Mechanism{cfg: cfg, krb5: krb5}
	name, realm, _ := strings.Cut(cfg.Principal, "@")
	realm = cmp.Or(realm, krb5.LibDefaults.DefaultRealm)
	switch {
	case cfg.CCache != "":
	case realm == "":
		return nil, fmt.Errorf("gssapi: principal %s has no realm, and krb5.conf has no default_realm", cfg.Principal)
	case cfg.Keytab != "":
		keys, err := keytab.Load(cfg.Keytab)
		if err != nil {
			return nil, fmt.Errorf("gssapi: keytab %s: %w", cfg.Keytab, err)
		}
		m.login = client.NewWithKeytab(name, realm, keys, krb5, client.DisablePAFXFAST(true))
	default:
		m.login = client.NewWithPassword(name, realm, cfg.Password, krb5, client.DisablePAFXFAST(true))
	}
	return m, nil
}

// Close ends the renewal of tickets, and waits for requests to a KDC. Clients that connect later end with
// zk.ErrAuthFailed.
func (m *Mechanism) Close() {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	m.mu.Unlock()
	m.wg.Wait()
	if first && m.login != nil {
		m.login.Destroy()
	}
}

// A grant is a ticket for a server.
type grant struct {
	who    *credentials.Credentials
	ticket messages.Ticket
	key    types.EncryptionKey
}

// Begin implements zk.SASL: it gets a ticket for the server. An error wraps zk.ErrAuthFailed if the KDC knows the
// client or the server not, or refuses the client's key. Other errors may pass, such as that of a KDC that does not
// answer, and of a ticket that has expired until kinit gets another.
func (m *Mechanism) Begin(ctx context.Context, host string) (zk.SASLExchange, error) {
	if host = cmp.Or(m.cfg.Host, host); host == "" {
		return nil, fmt.Errorf("%w: a unix socket has no host: set Host of gssapi.Config", zk.ErrAuthFailed)
	}
	server := m.cfg.Service + "/" + strings.ToLower(host)
	type result struct {
		grant grant
		err   error
	}
	done := make(chan result, 1)
	m.mu.Lock()
	closed := m.closed
	if !closed {
		m.wg.Go(func() { // Close waits for it: the library cannot be interrupted, but gives up after some seconds
			g, err := m.grant(server)
			done <- result{g, err}
		})
	}
	m.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("ticket of Kerberos for %s: %w", server, explain(r.err))
		}
		return &exchange{grant: r.grant, server: server}, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("ticket of Kerberos for %s: no answer from the KDC: %w", server, context.Cause(ctx))
	}
}

// grant gets a ticket for a server, perhaps one from before.
func (m *Mechanism) grant(server string) (grant, error) {
	from := m.login
	if m.cfg.CCache != "" {
		cache, err := credentials.LoadCCache(strings.TrimPrefix(m.cfg.CCache, "FILE:"))
		if err != nil {
			return grant{}, fmt.Errorf("tickets of kinit: %w", err)
		}
		if from, err = client.NewFromCCache(cache, m.krb5, client.DisablePAFXFAST(true)); err != nil {
			return grant{}, fmt.Errorf("tickets of kinit: %w", err)
		}
		defer from.Destroy()
	}
	ticket, key, err := from.GetServiceTicket(server)
	return grant{who: from.Credentials, ticket: ticket, key: key}, err
}

// refusals are errors that do not pass by themselves, as the library spells them, and what they mean.
var refusals = [...]struct{ text, meaning string }{
	{"matching key not found", "the keytab has no key for the principal"},
	{"password/keytab incorrect", "the client's key or password is wrong"},
	{"KDC_ERR_PREAUTH_FAILED", "the client's key or password is wrong"},
	{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC does not know the client's principal"},
	{"KDC_ERR_S_PRINCIPAL_UNKNOWN", "the KDC does not know the server's principal"},
	{"KDC_ERR_CLIENT_REVOKED", "the client's principal is locked"},
	{"KDC_ERR_KEY_EXPIRED", "the client's password has expired"},
	{"KDC_ERR_ETYPE_NOSUPP", "the KDC supports none of the client's encryption types"},
}

// explain adds what an error of the library means.
func explain(err error) error {
	text := err.Error()
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			return fmt.Errorf("%w: %s: %w", zk.ErrAuthFailed, r.meaning, err)
		}
	}
	switch {
	case strings.Contains(text, "TKT_EXPIRED"), strings.Contains(text, "no valid existing session"),
		strings.Contains(text, "expired"):
		return fmt.Errorf("the ticket has expired: get another with kinit, or use a keytab: %w", err)
	case strings.Contains(text, "communication error"), strings.Contains(text, "Networking_Error"):
		return fmt.Errorf("the KDC cannot be reached: %w", err)
	default:
		return err
	}
}
