package zk

// Certificates from files.

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/seed-a3166700/turnstile/internal/certfile"
)

// TLSFiles names PEM files for LoadTLS.
type TLSFiles struct {
	Cert   string // the client's certificate, followed by those between it and the authority; none if empty
	Key    string // its key; may be the same file
	CA     string // the authorities to verify servers with; the system's if empty
	Logger *slog.Logger

	_ struct{}
}

// LoadTLS returns a configuration for Config.TLS. It returns an error if a file cannot be read. Later the certificate
// and its key are read again whenever a connection is made and they have changed, so that a client that runs for long
// uses certificates that were renewed. Connections stay as they are. If the new files are invalid, the former
// certificate stays in use, and the logger is told. The authorities are read once.
func LoadTLS(files TLSFiles) (*tls.Config, error) {
	log := cmp.Or(files.Logger, slog.New(slog.DiscardHandler))
	f, err := certfile.Load(certfile.Names{Cert: files.Cert, Key: files.Key, CA: files.CA}, log)
	if err != nil {
		return nil, fmt.Errorf("zk: certificate %q, key %q, authorities %q: %w", files.Cert, files.Key, files.CA, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	f.Client(cfg)
	return cfg, nil
}
