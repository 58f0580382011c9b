package server

// TLS configurations that change while the server runs.

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/seed-a3166700/turnstile/internal/certfile"
)

var errNoTLS = errors.New("server: there is no listener with TLS")

// ReloadTLS replaces Config.TLS, for example by one with a renewed certificate. Connections stay as they are, and new
// ones use cfg. It returns an error, and changes nothing, if cfg has no certificate or the server does not use TLS.
func (s *Server) ReloadTLS(cfg *tls.Config) error {
	switch {
	case s.tls.Load() == nil:
		return errNoTLS
	case cfg == nil || len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil:
		return errors.New("server: ReloadTLS needs a certificate")
	}
	s.tls.Store(cfg.Clone())
	s.warnOpen()
	return nil
}

// secure returns the configuration of listeners with TLS. It leads to the one that is in use at each handshake.
func (s *Server) secure() *tls.Config {
	return &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := s.tls.Load()
		if cfg.GetConfigForClient == nil {
			return cfg, nil
		}
		own, err := cfg.GetConfigForClient(hello)
		if own == nil {
			own = cfg
		}
		return own, err
	}}
}

// loadTLS takes the configuration into use. Files that ParseZooCfg has read are read again when they change.
func (s *Server) loadTLS() error {
	if s.cfg.TLS == nil {
		return nil
	}
	cfg, err := s.withFiles(s.cfg.TLS, s.cfg.tlsFiles)
	if err == nil {
		s.tls.Store(cfg)
	}
	return err
}

// withFiles returns a copy of cfg that follows the files that ParseZooCfg has read, if any.
func (s *Server) withFiles(cfg *tls.Config, names certfile.Names) (*tls.Config, error) {
	cfg = cfg.Clone()
	if names.Cert == "" {
		return cfg, nil
	}
	files, err := certfile.Load(names, s.cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("server: certificate %s, authorities %q: %w", names.Cert, names.CA, err)
	}
	files.Server(cfg)
	return cfg, nil
}
