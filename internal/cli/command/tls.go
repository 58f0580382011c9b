package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// security is the TLS flags.
type security struct {
	on         bool
	ca         string
	cert       string
	key        string
	serverName string
}

func (s *security) clientFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&s.on, "tls", false, "connect with TLS; any other --tls flag implies it")
	flags.StringVar(&s.ca, "tls-ca", "", "PEM `file` of the authorities that servers are verified with (default: the system's)")
	flags.StringVar(&s.cert, "tls-cert", "", "PEM `file` of the client's certificate")
	flags.StringVar(&s.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&s.serverName, "tls-server-name", "", "`name` to verify in the servers' certificates (default: the host connected to)")
}

func (s *security) serverFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.cert, "tls-cert", "", "PEM `file` of the server's certificate; the TCP addresses of --listen then speak TLS")
	flags.StringVar(&s.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&s.ca, "tls-ca", "", "PEM `file` of authorities; clients must then show a certificate by one of them")
}

// used reports whether a client is to use TLS.
func (s *security) used() bool {
	return s.on || s.ca != "" || s.cert != "" || s.key != "" || s.serverName != ""
}

// client returns the configuration of a client, nil for plain connections.
func (s *security) client() (*tls.Config, error) {
	if !s.used() {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.serverName}
	if err := s.keyPair(cfg); err != nil {
		return nil, err
	}
	var err error
	cfg.RootCAs, err = s.authorities()
	return cfg, err
}

// server returns the configuration of a server, nil for plain listeners.
func (s *security) server() (*tls.Config, error) {
	if s.cert == "" && s.key == "" {
		if s.ca != "" {
			return nil, errors.New("--tls-ca needs --tls-cert and --tls-key")
		}
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := s.keyPair(cfg); err != nil {
		return nil, err
	}
	var err error
	if cfg.ClientCAs, err = s.authorities(); cfg.ClientCAs != nil {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return cfg, err
}

func (s *security) keyPair(cfg *tls.Config) error {
	if (s.cert == "") != (s.key == "") {
		return errors.New("--tls-cert and --tls-key need each other")
	}
	if s.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", s.cert, s.key, err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}

// authorities reads --tls-ca; without it they are the system's.
func (s *security) authorities() (*x509.CertPool, error) {
	if s.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca: %s holds no certificate in PEM", s.ca)
	}
	return pool, nil
}
