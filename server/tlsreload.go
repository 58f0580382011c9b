package server

// TLS configurations that change while the server runs.

import (
	"crypto/tls"
	"errors"
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
