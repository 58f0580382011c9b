package command

// The TLS flags.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// TLS is the TLS flags.
type TLS struct {
	on         bool
	ca         string
	cert       string
	key        string
	serverName string
}

func (t *TLS) clientFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&t.on, "tls", false, "connect with TLS; any other --tls flag implies it")
	flags.StringVar(&t.ca, "tls-ca", "",
		"PEM `file` of the authorities to verify servers with (default: the system's)")
	flags.StringVar(&t.cert, "tls-cert", "", "PEM `file` of the client's certificate")
	flags.StringVar(&t.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&t.serverName, "tls-server-name", "",
		"`name` to verify in the servers' certificates (default: the host connected to)")
}

// ServerFlags adds the flags of a server.
func (t *TLS) ServerFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.cert, "tls-cert", "",
		"PEM `file` of the server's certificate; the TCP addresses of --listen then use TLS")
	flags.StringVar(&t.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&t.ca, "tls-ca", "",
		"PEM `file` of authorities; clients must then have a certificate signed by one of them")
}

// used reports whether a client uses TLS.
func (t *TLS) used() bool {
	return t.on || t.ca != "" || t.cert != "" || t.key != "" || t.serverName != ""
}

// client returns the configuration of a client, nil for plain connections.
func (t *TLS) client() (*tls.Config, error) {
	if !t.used() {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	if err := t.keyPair(cfg); err != nil {
		return nil, err
	}
	var err error
	cfg.RootCAs, err = t.authorities()
	return cfg, err
}

// Server returns the configuration of a server, nil for plain listeners.
func (t *TLS) Server() (*tls.Config, error) {
	if t.cert == "" && t.key == "" {
		if t.ca != "" {
			return nil, errors.New("--tls-ca needs --tls-cert and --tls-key")
		}
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := t.keyPair(cfg); err != nil {
		return nil, err
	}
	var err error
	if cfg.ClientCAs, err = t.authorities(); cfg.ClientCAs != nil {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, err
}

func (t *TLS) keyPair(cfg *tls.Config) error {
	if (t.cert == "") != (t.key == "") {
		return errors.New("--tls-cert and --tls-key need each other")
	}
	if t.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", t.cert, t.key, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}

// authorities reads --tls-ca; without it they are the system's.
func (t *TLS) authorities() (*x509.CertPool, error) {
	if t.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca: %s contains no PEM certificate", t.ca)
	}
	return pool, nil
}
