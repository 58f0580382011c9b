package command

// The TLS flags.

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/seed-a3166700/turnstile/internal/certfile"
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
		"PEM `file` of the server's certificate, also when it is renewed; the TCP addresses of --listen then use TLS")
	flags.StringVar(&t.key, "tls-key", "", "PEM `file` of its key")
	flags.StringVar(&t.ca, "tls-ca", "",
		"PEM `file` of authorities; clients must then have a certificate signed by one of them")
}

// used reports whether a client uses TLS.
func (t *TLS) used() bool {
	return t.on || t.ca != "" || t.cert != "" || t.key != "" || t.serverName != ""
}

// client returns the configuration of a client, nil for plain connections. The logger is told when files have changed.
func (t *TLS) client(log *slog.Logger) (*tls.Config, error) {
	if !t.used() {
		return nil, nil
	}
	files, err := t.load(log)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	files.Client(cfg)
	return cfg, nil
}

// Server returns the configuration of a server, nil for plain listeners. The logger is told when files have changed.
func (t *TLS) Server(log *slog.Logger) (*tls.Config, error) {
	if t.cert == "" && t.key == "" {
		if t.ca != "" {
			return nil, errors.New("--tls-ca needs --tls-cert and --tls-key")
		}
		return nil, nil
	}
	files, err := t.load(log)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	}
	files.Server(cfg)
	return cfg, nil
}

// load reads the files that the flags name.
func (t *TLS) load(log *slog.Logger) (*certfile.Files, error) {
	if (t.cert == "") != (t.key == "") {
		return nil, errors.New("--tls-cert and --tls-key need each other")
	}
	if _, err := certfile.Load(certfile.Names{CA: t.ca}, log); err != nil { // to say which flag it is
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	files, err := certfile.Load(certfile.Names{Cert: t.cert, Key: t.key, CA: t.ca}, log)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", t.cert, t.key, err)
	}
	return files, nil
}
